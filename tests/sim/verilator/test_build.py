"""Builds of simulators: one that was killed is not in the way of the next, even while its tools still write."""

import pytest

from tilewright.isa.machine import preset
from tilewright.sim.verilator import build


def test_a_killed_build_is_not_in_the_way_of_the_next(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    folders = []

    def build_in(_machine, _core, folder, _variant):
        folders.append(folder)
        (folder / "model").mkdir()
        if len(folders) == 1:
            raise KeyboardInterrupt
        (folders[0] / "model").mkdir(parents=True)  # as make does that was left behind
        (folder / "model" / "simulator").write_text("built")
        (folder / "build.log").write_text("")

    monkeypatch.setattr(build, "_build", build_in)
    with pytest.raises(KeyboardInterrupt):
        build.build_simulator(preset("nano"))
    assert build.build_simulator(preset("nano")).read_text() == "built"
    assert len(set(folders)) == 2
