"""The command ``calibrate`` writes where it is told, into a new folder too, and says what is wrong."""

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli import app as cli
from tilewright.energy.sram import SramPoint, parse_tables
from tilewright.hardware.gates.cells import cacti

RUNNER = CliRunner()


@pytest.fixture
def cheap_cacti(monkeypatch):
    """CACTI's answers, made up: its own are tested where it is called."""
    monkeypatch.setattr(cacti, "run", lambda macro: SramPoint(macro.size * 1.0, macro.bits * 1.0, 1.0, 2.0))


def test_static_ram_goes_into_a_new_folder(tmp_path, cheap_cacti):
    folder = tmp_path / "new" / "folder"
    result = RUNNER.invoke(cli.app, ["calibrate", "--tech", "sram", "-o", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0
    assert set(parse_tables((folder / "sram.toml").read_text())) == set(cacti.TABLES)


def refusal(*arguments):
    """Return the sentence on standard error of a command that must end with status 2."""
    result = RUNNER.invoke(cli.app, ["calibrate", *map(str, arguments)])
    assert result.exit_code == 2
    return result.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path, cheap_cacti):
    (tmp_path / "file").write_text("")
    said = refusal("--tech", "sram", "-o", tmp_path / "file" / "below")
    assert "cannot be made: Not a directory; name another with -o" in " ".join(said.split())


def test_options_of_netlists_are_refused_for_memories(tmp_path):
    said = refusal("--tech", "sram", "-o", tmp_path / "x", "--blocks", "array")
    assert "--blocks need a library of cells as --tech, not sram" in " ".join(said.split())
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_figures_to_put_the_core_into_must_be_a_calibrations(tmp_path, text):
    (tmp_path / "earlier.json").write_text(text)
    said = refusal("--tech", "osu018", "-o", tmp_path / "x", "--core", tmp_path / "earlier.json")
    assert "must be the calibration.json of an earlier run" in " ".join(said.split())


def test_figures_to_put_the_core_into_must_be_of_the_same_cells(tmp_path):
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps({"technology": "osu018", "machine": "base", "workloads": {}, "blocks": {}}))
    said = refusal("--tech", "sky130", "-o", tmp_path / "x", "--core", earlier)
    assert "must be a calibration of sky130, not of 'osu018'" in " ".join(said.split())


@pytest.mark.parametrize("change", [{"sum_of_blocks": {}}, {"blocks": {"array": 3}},
                                    {"workloads": {"x": {"layer": 1}}}])
def test_figures_of_an_earlier_run_that_are_damaged_are_refused(tmp_path, change):
    whole = {"technology": "osu018", "machine": "base", "rtl": "", "workloads": {}, "blocks": {},
             "sum_of_blocks": {"held_out": {}, "held_out_gated": {}}}
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(whole | change))
    said = refusal("--tech", "osu018", "-o", tmp_path / "x", "--core", earlier)
    assert "and does not have its form" in " ".join(said.split())


def test_the_core_alone_goes_with_no_choice_of_blocks(tmp_path):
    said = refusal("--tech", "osu018", "-o", tmp_path / "x", "--core", tmp_path / "c.json", "--blocks", "array")
    assert "Option --core excludes --machine and --blocks" in " ".join(said.split())
