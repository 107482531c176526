"""Rows of costs carry the terminal's advice on the host core, and the options of changes that save cycles."""

from tilewright.runtime.advice.largest_costs import CORE, WORK, CycleCost
from tilewright.runtime.advice.machine_changes import OUTPUTS_ONLY, RunChange, TriedChange
from tilewright.runtime.execution.core_share import CorePart, core_share
from tilewright.runtime.views.cost_rows import cost_rows


def cost_of(cause, cycles, core=None):
    return CycleCost(cause=cause, core=core, cycles=cycles, share=cycles / 1000, layers=((0, cycles),))


def test_the_host_core_has_the_terminals_cause_and_way_out():
    (cause,) = core_share([CorePart("s", "Softmax", "the datapath has no such operator", 510)], 1000).causes
    (row,) = cost_rows([cost_of(CORE, 510, cause)], (), "base")
    assert cause.reason in row["cause"]
    assert cause.way_out[1:] in row["change"]
    assert row["saved"] == 510
    assert row["most"]


def test_a_change_is_named_with_its_option_and_a_second_time_marked():
    bus = TriedChange(RunChange("bus_bytes", 16), 700, 1000)
    rows = cost_rows([cost_of("mac_wait_weights", 300), cost_of("mac_idle_load", 200)], [bus], "base,lanes=4")
    assert [row["option"] for row in rows] == ["--machine base,lanes=4,bus_bytes=16"] * 2
    assert [row["saved"] for row in rows] == [300, 300]
    assert [row["again"] for row in rows] == [False, True]


def test_a_change_that_costs_cycles_is_no_saving():
    (row,) = cost_rows([cost_of(WORK, 600)], [TriedChange(RunChange("lanes", 16), 1200, 1000)], "base")
    assert row["saved"] is None
    assert row["option"] == ""
    assert "200" in row["change"]


def test_of_several_changes_the_one_that_saves_most_is_told():
    tried = [TriedChange(RunChange("bus_bytes", 16), 900, 1000), TriedChange(RunChange(OUTPUTS_ONLY, 1), 800, 1000)]
    (row,) = cost_rows([cost_of("mac_wait_activations", 300)], tried, "base")
    assert row["option"] == "--outputs-only"
    assert row["saved"] == 200
