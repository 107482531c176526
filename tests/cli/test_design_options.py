"""Designs from outside: ``--machine`` with changes or files, ``--memory``, ``--clock``, ``--technology FILE``."""

import json

import pytest

from tests.cli.test_app import invoke, refused
from tilewright.cli.options.arguments import designs_listed
from tilewright.energy.technology_text import FOLDER
from tilewright.runtime.design.design_flags import design_of

DESIGN = ("--machine", "base,lanes=8,clusters=2,bus_bytes=16", "--memory", "latency=60,bytes=16", "--clock", "80MHz")


def report(path, *arguments):
    done = invoke("run", "lenet5", *arguments, "--json", path)
    assert done.exit_code == 0, done.output
    return json.loads(path.read_text()), done.stdout


def test_a_changed_preset_runs_and_states_time_and_power(tmp_path):
    content, shown = report(tmp_path / "report.json", *DESIGN)
    assert "time at 80 MHz" in shown
    assert " mW" in shown
    assert content["milliseconds"] == content["cycles"] / 80_000
    assert content["milliwatts"] == pytest.approx(content["energy"]["total_uj"] / content["milliseconds"])
    assert (content["design"]["machine"]["lanes"], content["multipliers"]) == (8, 80)
    assert content["memory"] == {"latency_cycles": 60, "bytes_per_cycle": 16}


@pytest.mark.slow
def test_a_changed_preset_runs_in_rtl(tmp_path):
    hardware, _ = report(tmp_path / "rtl.json", *DESIGN, "--engine", "rtl")
    model, _ = report(tmp_path / "fast.json", *DESIGN)
    assert hardware["matches_reference"] is True
    assert hardware["cycles"] == pytest.approx(model["cycles"], rel=0.02)


def test_flags_beat_the_file_and_the_file_beats_the_defaults(tmp_path):
    design = tmp_path / "mine.toml"
    design.write_text('[memory]\nlatency_cycles = 100\n[clock]\nmhz = 50\n[energy]\ntechnology = "sky130"\n')
    content, _ = report(tmp_path / "report.json", "--machine", design)
    assert (content["memory"]["latency_cycles"], content["energy"]["clock_mhz"]) == (100, 50)
    assert content["energy"]["technology"] == "sky130"
    content, _ = report(tmp_path / "report.json", "--machine", design, "--clock", "70", "--memory", "latency=30",
                        "--technology", "generic45")
    assert (content["memory"]["latency_cycles"], content["energy"]["clock_mhz"]) == (30, 70)
    assert content["energy"]["technology"] == "generic45"


def test_a_technology_of_ones_own(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text((FOLDER / "generic45.toml").read_text().replace('name = "generic45"', 'name = "own45"'))
    content, _ = report(tmp_path / "report.json", "--technology", own)
    assert content["energy"]["technology"] == "own45"


def test_a_compiled_model_is_simulated_with_another_memory(tmp_path):
    assert invoke("compile", "lenet5", "-o", tmp_path / "lenet5", "--machine", "nano,lanes=2").exit_code == 0
    cycles = []
    for latency in (20, 200):
        path = tmp_path / "report.json"
        done = invoke("simulate", tmp_path / "lenet5", "--memory", f"latency={latency}", "--json", path)
        assert done.exit_code == 0, done.output
        content = json.loads(path.read_text())
        assert content["multipliers"] == 32
        cycles.append(content["cycles"])
    assert cycles[0] < cycles[1]


def test_check_predicts_with_the_memory_and_the_clock(tmp_path):
    path = tmp_path / "check.json"
    found = []
    for words in (["--memory", "latency=20"], ["--memory", "latency=200"], ["--clock", "40MHz"]):
        done = invoke("check", "lenet5", "--machine", "nano", *words, "--json", path)
        assert done.exit_code == 0, done.output
        found.append(json.loads(path.read_text()))
    default, slow, halved = found
    assert slow["predicted_cycles"] > default["predicted_cycles"]
    assert slow["design"]["memory"]["latency_cycles"] == 200
    assert halved["milliseconds"] == halved["predicted_cycles"] / 40_000


def test_the_size_of_memory_is_no_timing():
    assert "--capacity 8" in refused(2, "check", "lenet5", "--memory", "8")


def test_changes_follow_their_design_in_a_list():
    assert designs_listed("nano,base,lanes=8,clusters=2,mine.toml,lanes=2") == (
        "nano", "base,lanes=8,clusters=2", "mine.toml,lanes=2")


def test_flags_make_a_design_in_python():
    design = design_of("nano", memory="latency=60", clock="80MHz", technology="sky130")
    assert (design.machine.name, design.timing.latency_cycles, design.timing.bytes_per_cycle) == ("nano", 60, 4)
    assert (design.mhz, design.pricing.technology) == (80, "sky130")


@pytest.mark.parametrize(("words", "fact"), [
    (["--machine", "base,lanse=8"], "lanse"), (["--machine", "base,lanes=5"], "5"), (["--memory", "speed=4"], "speed"),
    (["--clock", "quick"], "quick"), (["--technology", "none.toml"], "none.toml"),
    (["--machine", "no.toml"], "no.toml"),
])
def test_what_is_no_design_is_refused_in_one_sentence(words, fact):
    assert fact in refused(2, "run", "lenet5", *words)
