"""A small netlist gives NumPy's sums; it toggles as in Icarus Verilog, and costs what OpenSTA says."""

import numpy as np
import pytest

from tests.support.icarus import toggles
from tests.support.small_block import signals, small_block, stimulus
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.gates.electrical import electrical_of
from tilewright.hardware.gates.events import EventError, Stimulus, simulate
from tilewright.hardware.gates.fit import fit
from tilewright.hardware.gates.mapping import MappingError, map_verilog
from tilewright.hardware.gates.measure import Measurement, Meter
from tilewright.hardware.gates.netlist import read_netlist
from tilewright.hardware.gates.opensta import sta_power
from tilewright.hardware.gates.power import energy_of, register_cycles, register_toggles
from tilewright.tools.debian import debian_data
from tilewright.tools.toolchain import ToolMissingError

BUSY = {"cycles": 60, "hold": 4, "a_scale": 60, "b_scale": 120, "busy": 0.8}


@pytest.fixture(autouse=True)
def _library():
    try:
        debian_data("osu018_stdcells.lib")
    except ToolMissingError as error:
        pytest.skip(str(error))


def run(block, seed=0, **given):
    driven = stimulus(block, signals(seed, **{**BUSY, **given}))
    return driven, simulate(block.netlist, driven, block.electrical)


def test_an_output_that_differs_is_found():
    block = small_block()
    driven = stimulus(block, signals(0, **BUSY))
    outputs = driven.outputs.copy()
    outputs[17, 3] ^= 1
    with pytest.raises(EventError, match=r"1 bits differ, first .* in cycle 17"):
        simulate(block.netlist, Stimulus(driven.inputs, outputs, driven.registers), block.electrical)


def test_icarus_counts_the_same_toggles(tmp_path):
    block = small_block()
    driven, activity = run(block)
    expected = toggles(block.netlist, block.electrical, driven, tmp_path)
    assert activity.toggles.sum() > 10_000
    # Two simulators may order what happens in the same picosecond differently.
    differing = np.abs(activity.toggles.astype(int) - expected.astype(int)).sum()
    assert differing <= 0.005 * expected.sum()


def test_a_registers_toggles_are_numpys():
    block = small_block()
    given = signals(3, **{**BUSY, "busy": 1.0, "hold": 1})
    activity = simulate(block.netlist, stimulus(block, given), block.electrical)
    held = [net for net, names in block.netlist.names.items() if any(name == "a_held" for name, _ in names)]
    a = ((given.a[:, :, None] >> np.arange(10)) & 1).reshape(len(given.a), -1)
    # It holds in cycle c what came in c - 1; the first was zero.
    expected = np.abs(np.diff(np.concatenate([np.zeros_like(a[:1]), a[:-1]]), axis=0)).sum()
    assert activity.toggles[held].sum() == expected


def test_opensta_agrees_within_15_percent():
    block = small_block()
    for given in ({}, {"hold": 1, "a_scale": 250, "b_scale": 1000, "busy": 1.0}):
        _, activity = run(block, **given)
        ours = energy_of(block.netlist, activity, block.electrical)
        theirs = sta_power(block.netlist, activity, debian_data("osu018_stdcells.lib"))
        clock_net = 0.5 * block.netlist.library.voltage**2 * block.electrical.loads[block.netlist.clock] * 2
        assert ours.per_cycle - clock_net == pytest.approx(theirs.per_cycle, rel=0.15)


def measured(block, seed, **given):
    _, activity = run(block, seed, **given)
    energy = energy_of(block.netlist, activity, block.electrical)
    return Measurement(
        cycles=activity.cycles, registers=len(block.netlist.flops),
        register_cycles=register_cycles(block.netlist, activity),
        register_toggles=register_toggles(block.netlist, activity), switching=energy.switching,
        internal=energy.internal, clock=energy.clock, leakage=energy.leakage,
        area=block.netlist.area, cells=len(block.netlist.instances))


def test_two_prices_explain_ten_workloads_left_out_one_by_one():
    block = small_block()
    kinds = [(hold, scale, busy) for hold in (1, 4, 16) for scale in (15, 40, 80) for busy in (0.5, 1.0)]
    found = {str(kind): measured(block, seed, hold=kind[0], a_scale=kind[1], b_scale=2 * kind[1], busy=kind[2])
             for seed, kind in enumerate(kinds)}
    fitted = fit(found)
    assert len(found) >= 10
    assert fitted.rms <= 0.10
    assert fitted.largest <= 0.20
    assert fitted.prices["register_cycle"] > 0.1
    assert fitted.prices["register_toggle"] > 1.0


def test_clock_gates_change_no_value_and_save_the_clock_of_idle_registers():
    plain, gated = small_block(), small_block(gated=True)
    assert gated.netlist.latches
    assert not plain.netlist.latches
    for seed, busy in ((1, 0.9), (2, 0.1)):
        before, after = (measured(block, seed, busy=busy, hold=16) for block in (plain, gated))
        assert before.register_toggles == after.register_toggles
        assert after.register_cycles < before.register_cycles == before.registers * before.cycles
    assert after.energy < 0.7 * before.energy


RESET = """
module kept (input clk, input rst, input load, input [8:0] d, output reg [8:0] q);
  always @(posedge clk) if (rst) q <= 9'h155; else if (load) q <= d;
endmodule
"""


def test_a_register_with_a_reset_is_gated_too_and_reset_with_its_enable_low():
    path = debian_data("osu018_stdcells.lib")
    netlist = read_netlist(map_verilog(RESET, "kept", path, gated=True), "kept", read_library(path))
    assert len(netlist.flops) == 9
    assert len(netlist.latches) == 1
    rng = np.random.default_rng(3)
    reset, load, data = rng.random(200) < 0.1, rng.random(200) < 0.3, rng.integers(0, 512, 200)
    held, values = 0, []
    for cycle in range(200):
        values.append(held)
        held = 0x155 if reset[cycle] else data[cycle] if load[cycle] else held
    columns = {"rst": reset, "load": load, "d": data}
    inputs = [columns[names[0][0]] >> names[0][1] & 1 for _, names in netlist.inputs]
    outputs = [np.array(values) >> names[0][1] & 1 for _, names in netlist.outputs]
    given = Stimulus(np.stack(inputs, axis=1).astype(np.uint8), np.stack(outputs, axis=1).astype(np.int8),
                     np.zeros(9, np.uint8))
    activity = simulate(netlist, given, electrical_of(netlist))
    clocked = register_cycles(netlist, activity)
    assert clocked <= 9 * (np.count_nonzero(reset | load) + 1) < 9 * 150


def test_an_idle_netlist_is_not_held_in_a_reset_that_is_low(tmp_path, monkeypatch):
    path = debian_data("osu018_stdcells.lib")
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))  # what an earlier run has kept would hide an error
    verilog = RESET.replace("input rst,", "input rst_n,").replace("if (rst)", "if (!rst_n)")
    plain, gated = (Meter(map_verilog(verilog, "kept", path, gated=gates), "kept", read_library(path)).idle_clock()
                    for gates in (False, True))
    assert 0 < gated < 0.5 * plain


def test_a_library_without_a_cell_to_drive_inputs_is_refused(tmp_path):
    library = tmp_path / "cells.lib"
    library.write_text("library (cells) {\n  cell (AND2) {}\n}\n")
    with pytest.raises(MappingError, match=r"cells\.lib .*BUFX2"):
        map_verilog(RESET, "kept", library, gated=False)
