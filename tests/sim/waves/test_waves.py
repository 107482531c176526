"""Waveforms in FST, read as Surfer reads them: what they show of a run, of a part of it, and under which names."""

import re
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from tests.support.waves import read_waveform
from tilewright.errors import InputError
from tilewright.models import builtin, data
from tilewright.runtime.session import InferenceSession
from tilewright.sim.measured_times import only_sets
from tilewright.sim.waves.scopes import SCOPES, TOP
from tilewright.sim.waves.wave import Wave

TRACKS = {"load": "load_command", "mac": "array_command", "post": "post_command", "store": "store_command"}
MOST_BYTES = 5 * 1000 * 1000


@dataclass
class Run:
    """Runs of LeNet-5 of 3x3 kernels on `nano`, each with a waveform."""

    session: InferenceSession
    folder: Path

    def waveform(self, name, **shown):
        path = self.folder / f"{name}.fst"
        self.session.run(None, {"image": data.samples().images[:1]}, wave=Wave(path, **shown))
        return path

    @property
    def ends(self):
        """Cycles at which the layers end."""
        return list(accumulate(layer.cycles for layer in self.session.report.layers))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(InferenceSession(builtin("lenet5_accel"), "nano", "rtl"), tmp_path_factory.mktemp("waves"))


@pytest.fixture(scope="module")
def whole(run):
    return run.waveform("whole")


def test_a_waveform_of_the_whole_run_is_small(whole):
    assert 100_000 < whole.stat().st_size < MOST_BYTES


def test_a_waveform_replaces_the_one_before_and_leaves_no_draft(run, whole):
    again = run.waveform("again")
    assert again.read_bytes()
    run.waveform("again", cycles=range(10, 20))
    assert again.stat().st_size < whole.stat().st_size / 5
    assert {path.name for path in run.folder.iterdir() if "again" in path.name} == {"again.fst", "again.gtkw"}


def test_names_are_those_of_the_gateware(whole):
    shown = read_waveform(whole)
    assert not [name for name in shown.changes if "$" in name or "_hidden" in name]
    unit = f"{TOP}.soc.coprocessor.coprocessor.load"
    assert shown.widths[f"{unit}.commands__payload.funct3"] == 3
    assert {f"{unit}.{name}" for name in ("commands__valid", "commands__ready", "act_free_take", "busy")} <= set(
        shown.changes)


def test_everything_can_be_shown_and_has_no_name_with_a_dollar_either(run):
    shown = read_waveform(run.waveform("all", scope=("all",), cycles=range(500, 600)))
    assert not [name for name in shown.changes if "$" in name or "_hidden" in name]
    assert {f"{TOP}.soc.host.pc", f"{TOP}.soc.coprocessor.coprocessor.mac.sequencer.step_go",
            f"{TOP}.soc.coprocessor.coprocessor.load.front.running"} <= set(shown.changes)
    assert len(shown.changes) > 4000


def test_units_show_the_commands_that_they_work_on(run, whole):
    shown, times = read_waveform(whole), run.session.times
    free = dict.fromkeys(TRACKS, 0)
    checked = set()
    for number, (_, command) in enumerate(run.session.job.program.commands()):
        unit = command.variant.unit
        if unit == "host" or only_sets(command.variant.name):
            continue
        begin = max(times.begun[number], free[unit])
        free[unit] = end = times.ended[number]
        if end <= begin:
            continue
        name, track = f"{command.instruction.mnemonic}.{command.variant.name}", f"{TOP}.{TRACKS[unit]}"
        assert {shown.named_at(track, begin), shown.named_at(track, end - 1)} == {name}, number
        checked.add(name)
    assert checked >= {"ldw.main", "lda.blocked", "conv23.run", "act.run", "sta.memory", "sta.status"}
    assert shown.named_at(f"{TOP}.array_command", 10) == "idle"
    assert shown.named_at(f"{TOP}.array_command", run.session.report.cycles - 1) == "idle"


def test_the_core_shows_the_command_that_it_offers(run, whole):
    shown, times = read_waveform(whole), run.session.times
    for number, (_, command) in enumerate(run.session.job.program.commands()):
        name = f"{command.instruction.mnemonic}.{command.variant.name}"
        for cycle in (times.asked[number], times.sent[number]):
            assert shown.named_at(f"{TOP}.core_command", cycle) == name


def test_a_cycle_is_a_nanosecond_from_the_first_one_on(run, whole):
    clock = read_waveform(whole).changes[f"{TOP}.clk"]
    cycles = run.session.report.cycles
    assert clock[:3] == [(0.0, 1), (0.5, 0), (1.0, 1)]
    assert clock[-1] in ((cycles - 1, 1), (cycles - 0.5, 0))
    assert len(clock) in (2 * cycles - 1, 2 * cycles)


def test_a_window_of_cycles_shows_just_these(run):
    shown = read_waveform(run.waveform("cycles", cycles=range(1000, 1100)))
    moments = [when for each in shown.changes.values() for when, _ in each]
    assert (min(moments), max(moments)) == (1000, 1099.5)


def test_a_window_of_layers_shows_from_one_record_to_another(run):
    shown = read_waveform(run.waveform("layers", layers=range(1, 3)))
    clock = [when for when, _ in shown.changes[f"{TOP}.clk"]]
    first, last = run.ends[0], run.ends[2]
    # A record counts up to the cycle in which it is taken: some cycles behind its request, which ends the window.
    assert 0 <= first - clock[0] <= 30
    assert 0 <= last - clock[-1] <= 30
    assert {value for _, value in shown.changes[f"{TOP}.layer"]} == {1, 2}


@pytest.mark.parametrize("name", [name for name in SCOPES if name not in ("overview", "all")])
def test_a_scope_shows_the_modules_of_its_unit_and_of_no_other(run, name):
    shown = read_waveform(run.waveform(name, scope=(name,), cycles=range(2000, 2010)))
    modules = SCOPES[name].modules
    places = {found.rpartition(".")[0] for found in shown.changes}
    for module in modules:
        assert any(place.startswith(module) for place in places), module
    others = [each for other, scope in SCOPES.items() if other not in (name, "all") for each in scope.modules]
    assert not [place for place in places if place.startswith(tuple(f"{each}." for each in others))]
    assert f"{TOP}.array_command" in shown.changes


def test_the_save_file_names_signals_that_are_there(run):
    path = run.waveform("saved", scope=("load", "array"), cycles=range(300, 310))
    text = path.with_suffix(".gtkw").read_text()
    shown = read_waveform(path)
    named = [line for line in text.splitlines() if line.startswith("TOP.")]
    for line in named:
        name, _, bits = line.partition("[")
        assert shown.widths[name] == (int(bits.partition(":")[0]) + 1 if bits else 1)
    assert [line.partition("[")[0].removeprefix(f"{TOP}.") for line in named[:6]] == [
        "layer", "core_command", "load_command", "array_command", "post_command", "store_command"]
    groups = re.findall(r"^-(\w+)$", text, re.MULTILINE)
    assert groups == ["core", "core", "load", "load", "array", "array"]
    assert f'[dumpfile] "{path}"' in text


def test_a_save_file_that_is_there_stays(run):
    own = run.folder / "kept.gtkw"
    own.write_text("mine")
    run.waveform("kept", cycles=range(5, 6))
    assert own.read_text() == "mine"


def test_layers_that_are_not_there_are_refused_and_nothing_is_written(run):
    with pytest.raises(InputError, match="0 to"):
        run.waveform("none", layers=range(90, 91))
    assert not list(run.folder.glob("*none*"))
