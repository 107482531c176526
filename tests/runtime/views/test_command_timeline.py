"""Slices of a run lie in it, one after another in each unit; buffers hold no more than they can."""

import numpy as np
import pytest

from tilewright.compiler.network.options import BEST
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_run import predict_model
from tilewright.runtime.views.command_timeline import BUFFERS, UNITS, levels, occupancy, slices
from tilewright.tools.progress import Silence


@pytest.fixture(scope="module")
def run():
    return predict_model(find_model("lenet5_accel", Silence()), design_of("base"), BEST, Silence())


def test_slices_of_a_unit_follow_each_other_and_end_with_the_run(run):
    free = dict.fromkeys(UNITS, 0)
    for each in slices(run.job, run.times):
        assert free[each.unit] <= each.begin < each.end <= run.report.cycles
        free[each.unit] = each.end
    assert all(free.values())


def test_every_command_that_works_is_asked_for_sent_taken_begun_and_ended_in_this_order(run):
    times = run.times
    commands = list(run.job.program.commands())
    assert len(times.asked) == len(times.functions) == len(commands)
    for number, (function, command) in enumerate(commands):
        assert times.functions[number] == function
        steps = [times.asked[number], times.sent[number], times.taken[number], times.begun[number], times.ended[number]]
        if command.variant.unit == "host":
            steps.remove(times.sent[number])        # a fence is sent when it is passed
        assert steps == sorted(steps)


def test_the_array_is_busy_for_the_cycles_in_which_it_issues_and_waits_for_room(run):
    counted = sum(layer.counts["mac_issue"] + layer.counts["mac_wait_post"] for layer in run.report.layers)
    array = sum(each.end - each.begin for each in slices(run.job, run.times) if each.unit == "array")
    assert array == pytest.approx(counted, rel=0.01)


def test_loads_move_the_bytes_that_the_counter_counts(run):
    loads = sum(moved for moved, (_, command) in zip(run.times.moved, run.job.program.commands(), strict=True)
                if command.variant.unit == "load")
    assert loads == sum(layer.bytes_read for layer in run.report.layers)


def test_buffers_hold_something_and_no_more_than_they_can(run):
    machine = run.job.machine
    held = occupancy(run.job, run.times)
    assert list(held) == list(BUFFERS.values())
    for (moments, filled), capacity in zip(held.values(), (
            machine.activation_bytes, machine.weight_bytes, machine.result_bytes), strict=True):
        assert 0 < filled.max() <= capacity
        assert filled.min() == filled[-1] == 0
        assert (np.diff(moments) > 0).all()


def test_levels_are_the_greatest_of_each_part_and_last_until_they_change():
    changes = np.array([10, 20, 21]), np.array([5, 9, 0])
    assert levels(changes, 40, 4) == [0, 5, 9, 0]
    assert levels((np.array([], np.int64),) * 2, 40, 2) == [0, 0]
