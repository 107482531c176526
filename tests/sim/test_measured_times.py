"""Times measured in RTL are the hardware's: its counters and records agree with them, in order, and none is missing."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tilewright.errors import SimulationError
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.program import Call, Function, Operand, Program, issue
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.views.command_timeline import slices
from tilewright.sim.measured_times import Note, measured_times
from tilewright.tools.progress import Silence


@pytest.fixture(scope="module", params=["lenet5_accel", "mlperf-kws"])
def run(request):
    """LeNet-5 of 3x3 kernels, and a network with depthwise layers and a softmax of the core."""
    found = run_model(find_model(request.param, Silence()), design_of("nano").machine, "rtl", None, run=RunOptions())
    assert found.report.matches_reference
    return found


@pytest.fixture
def commands(run):
    return [command for _, command in run.job.program.commands()]


def test_every_command_is_asked_for_sent_taken_begun_and_ended_in_this_order(run, commands):
    times = run.times
    assert times.measured
    assert len(times.asked) == len(times.ended) == len(times.functions) == len(commands)
    for number, command in enumerate(commands):
        steps = [each[number] for each in (times.asked, times.sent, times.taken, times.begun, times.ended)]
        if command.variant.unit == "host":
            steps = [times.asked[number], times.ended[number]]
        assert steps == sorted(steps), (number, command)
        if command.variant.unit != "host" and not command.variant.name.startswith("set_"):
            assert times.begun[number] < times.ended[number] or command.variant.name == "window"
    for before, after in pairwise(range(len(commands))):
        assert times.sent[before] < times.sent[after]


def test_each_record_counts_cycles_between_begin_and_end_of_its_command(run, commands):
    records = [number for number, command in enumerate(commands) if command.variant.name == "status"]
    assert len(records) == len(run.report.layers)
    counted = 0
    for number, layer in zip(records, run.report.layers, strict=True):
        counted += layer.cycles
        assert run.times.begun[number] < counted < run.times.ended[number]


def test_units_are_busy_for_the_cycles_that_the_counters_count(run, commands):
    lengths = Counter()
    for each in slices(run.job, run.times):
        lengths[each.unit] += each.end - each.begin
    counts = Counter()
    for layer in run.report.layers:
        counts.update(layer.counts)
    assert lengths["post"] == counts["post_busy"]
    assert abs(lengths["load"] - counts["load_busy"]) <= 1
    # Words of a record leave when the unit is at rest again, and acknowledgements come when the last word has left.
    assert abs(lengths["store"] - counts["store_busy"]) <= 40 * len(run.report.layers)


def test_the_array_works_for_the_cycles_in_which_it_issues_and_waits_for_room(run, commands):
    times = run.times
    counted = sum(layer.counts["mac_issue"] + layer.counts["mac_wait_post"] for layer in run.report.layers)
    setup = sum(layer.counts["mac_setup"] for layer in run.report.layers)
    worked = sum(times.ended[number] - times.begun[number] for number, command in enumerate(commands)
                 if command.variant.unit == "mac")
    assert counted <= worked <= counted + setup


def test_bytes_on_the_bus_are_those_that_the_records_count(run):
    traffic, layers = run.times.traffic, run.report.layers
    last_record = 4 * RECORD_WORDS      # does not count itself
    calls = [each for _, each in run.job.program.actions() if isinstance(each, Call)]
    of_core = sum(operand.span_bytes for call in calls for operand in call.inputs)
    assert traffic.read.sum() == sum(layer.counts["memory_read"] for layer in layers) - of_core
    of_core = sum(call.output.span_bytes for call in calls)
    assert traffic.written.sum() == sum(layer.counts["memory_written"] for layer in layers) - of_core + last_record
    most = traffic.interval * run.job.machine.bus_bytes
    assert max(traffic.read.max(), traffic.written.max()) <= most


def test_operators_of_the_core_lie_between_the_commands_around_them(run):
    times = run.times
    calls = [(function, each) for function, each in run.job.program.actions() if isinstance(each, Call)]
    assert [(each.function, each.kernel) for each in times.calls] == [(function, call.kernel)
                                                                      for function, call in calls]
    for each in times.calls:
        assert times.sent[each.before - 1] < each.begin < each.end <= times.asked[each.before]


def note(cycle, kind, value=0):
    return cycle << 24 | kind << 16 | value


def program(*names):
    issues = [issue(*name.split("."), **({"rows": 1} if name == "lda.linear" else {})) for name in names]
    return Program((Function("layer", "", tuple(issues)),))


def notes_of(*words):
    return np.array(words, np.uint64)


def load(cycle):
    return [note(cycle, Note.OFFERED, code("lda.linear")), note(cycle, Note.SENT, code("lda.linear")),
            note(cycle + 2, Note.TAKEN, 0), note(cycle + 30, Note.LOAD_ENDS)]


def code(name):
    (_, command), = program(name).commands()
    return command.instruction.funct3 << 3 | command.variant.code


def fence(asked, sent):
    return [note(asked, Note.OFFERED, code("sta.fence")), note(sent, Note.SENT, code("sta.fence"))]


def test_a_fence_that_was_issued_again_is_one():
    wanted = program("sta.fence", "lda.linear", "sta.fence")
    times = measured_times(wanted, notes_of(*fence(5, 9), *fence(12, 13), *load(20), *fence(24, 60)))
    assert (times.asked, times.sent) == ([5, 20, 24], [13, 20, 60])
    assert (times.begun[1], times.ended[1]) == (22, 51)


def test_two_fences_of_the_program_stay_two():
    times = measured_times(program("sta.fence", "sta.fence"), notes_of(*fence(5, 9), *fence(40, 44), *fence(46, 47)))
    assert (times.asked, times.sent) == ([5, 40], [9, 47])


def with_two_operators():
    (fence_issue,) = program("sta.fence").functions[0].body
    operand = Operand(MAIN_BASE, "int8", (4,), (1,))
    call = Call("Relu", (operand,), operand, {}, staged=False)
    return Program((Function("layer", "", (fence_issue, call, call, fence_issue)),))


def test_operators_between_two_commands_follow_each_other():
    ends = [note(8, Note.CALL_ENDS), note(30, Note.CALL_ENDS), note(50, Note.CALL_ENDS)]    # the first is the port's
    times = measured_times(with_two_operators(), notes_of(*fence(3, 5), *ends, *fence(60, 66)))
    assert [(each.begin, each.end, each.before) for each in times.calls] == [(6, 31, 1), (31, 51, 1)]


def test_operators_without_an_end_are_refused():
    with pytest.raises(SimulationError):
        measured_times(with_two_operators(), notes_of(*fence(3, 5), note(30, Note.CALL_ENDS), *fence(60, 66)))


@pytest.mark.parametrize("words", [
    pytest.param([*load(20)], id="a command too few"),
    pytest.param([*load(20), *fence(60, 70)], id="another command"),
    pytest.param([*load(20)[:3], *load(21)], id="an end too few"),
    pytest.param([*load(20)[:2], note(60, Note.LOAD_ENDS), *load(21)], id="not taken"),
])
def test_notes_of_another_program_are_refused(words):
    with pytest.raises(SimulationError):
        measured_times(program("lda.linear", "lda.linear"), notes_of(*words))

