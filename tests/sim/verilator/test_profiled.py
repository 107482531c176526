"""A simulator that is compiled by a profile: when, that it takes the place of the other, and the same results."""

import numpy as np
import pytest

from tilewright.isa.machine import preset
from tilewright.runtime.execution import engines
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.inputs import random_inputs
from tilewright.runtime.session import InferenceSession
from tilewright.sim.verilator import build, worth
from tilewright.tools.progress import Silence


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    (tmp_path / "simulators").mkdir()
    return tmp_path


def test_long_runs_on_one_simulator_add_up(cache, monkeypatch):
    monkeypatch.setattr(worth, "_is_gcc", lambda: True)
    nano, base = preset("nano"), preset("base")
    runs = [worth.is_worth_profiling(nano, cycles) for cycles in (60_000_000, worth.LONG_RUN - 1, 39_999_999)]
    assert runs == [False, False, False]
    assert not worth.is_worth_profiling(base, 99_999_999)
    assert worth.is_worth_profiling(nano, 10_000_000)
    worth.keep_unprofiled(nano)
    assert not worth.is_worth_profiling(nano, 1_000_000_000)


def test_clang_makes_no_profile_that_the_same_makefile_could_use(cache, monkeypatch):
    monkeypatch.setattr(worth, "_is_gcc", lambda: False)
    assert not worth.is_worth_profiling(preset("nano"), 1_000_000_000)


def test_the_profiled_simulator_takes_the_place_of_the_other(cache):
    nano = preset("nano")
    place = build.profiled_place(nano)
    place.parent.mkdir(parents=True)
    place.write_text("built")
    assert build.build_simulator(nano) == place
    assert not worth.is_worth_profiling(nano, 1_000_000_000)


def test_a_profile_that_cannot_be_used_is_no_error(cache, monkeypatch):
    def fail(*_, **__):
        raise build.BuildError("Simulator could not be compiled by a profile")

    monkeypatch.setattr(worth, "WORTH_PROFILING", 0)
    monkeypatch.setattr(worth, "LONG_RUN", 0)
    monkeypatch.setattr(engines, "train_rtl", fail)
    monkeypatch.delenv("TILEWRIGHT_CACHE")
    session = InferenceSession(find_model("lenet5", Silence()).path, machine="nano", engine="rtl")
    counter = worth._counter(build.profiled_place(preset("nano")))
    before = counter.read_text() if counter.exists() else None
    try:
        with pytest.warns(RuntimeWarning, match="stays as it is"):
            session.run(None, random_inputs(session.quantised_inputs).arrays)
    finally:
        counter.unlink() if before is None else counter.write_text(before)


@pytest.mark.slow
def test_a_profile_changes_no_result(tmp_path, monkeypatch):
    session = InferenceSession(find_model("lenet5", Silence()).path, machine="nano", engine="rtl")
    inputs = random_inputs(session.quantised_inputs).arrays
    plain, cycles = session.run(None, inputs), session.report.cycles
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(worth, "WORTH_PROFILING", 0)
    monkeypatch.setattr(worth, "LONG_RUN", 0)
    profiled = session.run(None, inputs)
    assert build.profiled_place(preset("nano")).exists()
    assert session.report.cycles == cycles
    np.testing.assert_array_equal(profiled, plain)
