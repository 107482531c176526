"""The options of energy on the command line: technology, memory, clock gating, toggles, an imported power report."""

import json

import pytest

from tests.cli.test_app import invoke
from tests.energy.test_imported_power import LATTICE


def report_of(tmp_path, *options):
    done = invoke("run", "lenet5", "--json", tmp_path / "report.json", *options)
    assert done.exit_code == 0, done.output
    return json.loads((tmp_path / "report.json").read_text()), done.stdout


def test_energy_names_its_prices_and_its_toggles(tmp_path):
    report, text = report_of(tmp_path)
    energy = report["energy"]
    assert f"in {energy['technology']}, " in text
    assert f"main memory {energy['dram']}: " in text
    assert "in the coprocessor, predicted" in text
    assert report["toggles_from"] == "predicted"
    assert energy["absolute_low_uj"] < energy["relative_low_uj"] < energy["total_uj"]
    assert energy["absolute_high_uj"] > energy["relative_high_uj"] > energy["total_uj"]
    assert sum(each["uj"] for each in energy["components"].values()) == pytest.approx(energy["total_uj"])
    assert sum(report["toggles"].values()) >= sum(sum(each["toggles"].values()) for each in report["layers"]) > 0


def test_the_part_that_main_memory_is_changes_its_energy_alone(tmp_path):
    (lpddr4, _), (ddr3, text) = report_of(tmp_path, "--dram", "lpddr4"), report_of(tmp_path, "--dram", "ddr3")
    assert "main memory ddr3" in text
    old, new = lpddr4["energy"]["by_component"], ddr3["energy"]["by_component"]
    assert {name for name in old if old[name] != new[name]} == {"main_memory"}


def test_energy_on_an_fpga_needs_a_report(tmp_path):
    (tmp_path / "power.json").write_text(json.dumps(LATTICE))
    report, text = report_of(tmp_path, "--import-power", tmp_path / "power.json")
    assert report["imported_power"]["total_uj"] == pytest.approx(0.3 * report["cycles"] / 80)
    assert "energy on LFE5U-85F: " in text


@pytest.mark.parametrize(("options", "message"), [
    (["--technology", "generic7"], "Technology must be one of "),
    (["--dram", "drum"], "Main memory must be one of "),
    (["--activity"], "Engine must be rtl to count toggles, not 'fast'"),
    (["--activity", "--engine", "rtl", "--layers", "0:1"], "exclude --wave, --explain, --activity"),
    (["--import-power", "no-such.rpt"], "Power report 'no-such.rpt' cannot be read"),
])
def test_what_makes_no_sense_is_refused(options, message):
    done = invoke("run", "lenet5", *options)
    assert done.exit_code == 2
    assert message in done.output
