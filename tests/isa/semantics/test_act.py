"""act.run against isa.numerics, value by value: requantisation, residual, table."""

import numpy as np
import pytest

from tests.support.coprocessor_state import CLAMP, MACHINES, OUTPUT, WHOLE, engine_of, run, set_parameters, sums_for
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa import numerics
from tilewright.isa.memory import MAIN_BASE
from tilewright.sim.values.executor import CommandFailedError


@MACHINES
@pytest.mark.parametrize("winograd", [0, 1])
def test_act_requantises_and_drops_what_is_outside(machine, winograd):
    engine = engine_of(machine)
    parameters = set_parameters(engine, 64)
    rows, channels, first = 3, 11, machine.lanes
    sums = sums_for(engine, winograd, rows, channels)
    expected = engine.state.results.copy()
    for y in range(rows):
        for x in range(5):
            for n in range(channels):
                expected[40 + 120 * y + 13 * x + n] = numerics.requantise(
                    int(sums[y, x, n]), **parameters[first + n], **CLAMP)
    run(engine, ("act.set_output", OUTPUT), ("act.set_clamp", CLAMP),
        ("act.run", {"base": 40, "rows": rows, "winograd": winograd, "parameter_base": first, "channels": channels}))
    np.testing.assert_array_equal(engine.state.results, expected)


@MACHINES
@pytest.mark.parametrize("winograd", [0, 1])
def test_act_leaves_whole_sums(machine, winograd):
    engine = engine_of(machine)
    biases = [each["bias"] for each in set_parameters(engine, 64)]
    rows, channels, first = 3, 11, machine.lanes
    sums = sums_for(engine, winograd, rows, channels)
    sums[0, 0, :2] = -(1 << 31), (1 << 31) - 1
    expected = engine.state.results.copy()
    for y in range(rows):
        for x in range(5):
            for n in range(channels):
                place = 40 + 240 * y + 47 * x + 4 * n
                total = (int(sums[y, x, n]) + biases[first + n]) % (1 << 32)
                expected[place:place + 4] = np.frombuffer(total.to_bytes(4, "little"), np.int8)
    run(engine, ("act.set_output", OUTPUT | {"pixel_step": 47, "row_step": 240}), ("act.set_clamp", WHOLE), (
        "act.run", {"base": 40, "rows": rows, "winograd": winograd, "parameter_base": first, "channels": channels,
                    "whole": 1}))
    np.testing.assert_array_equal(engine.state.results, expected)


@pytest.mark.parametrize(("clamp", "operands"), [
    ({"zero_point": 1}, {}), ({"low": -127}, {}), ({"high": 126}, {}), ({}, {"table": 1}), ({}, {"residual": 1}),
    ({}, {"pooled": 1})])
def test_nothing_may_change_whole_sums(clamp, operands):
    engine = engine_of(WINOGRAD_MACHINES["base"])
    set_parameters(engine, 8)
    sums_for(engine, 0, 2, 6)
    settings = ("act.set_output", OUTPUT), ("act.set_clamp", WHOLE | clamp)
    with pytest.raises(CommandFailedError, match="whole sums"):
        run(engine, *settings, ("act.run", {"base": 40, "rows": 2, "channels": 6, "whole": 1} | operands))


@pytest.mark.parametrize(("own_second", "unsigned"), [(0, 0), (1, 0), (0, 1)])
def test_act_adds_the_residual_that_lies_there(own_second, unsigned):
    engine = engine_of(WINOGRAD_MACHINES["base"])
    parameters = set_parameters(engine, 8)
    sums = sums_for(engine, 0, 2, 6)
    scales = {"mantissa_a": 0xC00000, "shift_a": 24, "mantissa_b": 0x900001, "shift_b": 23}
    offset = {"offset_mantissa": 0x900000, "offset_shift": 20, "offset_negative": 1, "unsigned": unsigned}
    settings = numerics.ResidualSettings(**scales, **offset, low=-90, high=120)
    expected = engine.state.results.copy()
    for y in range(2):
        for x in range(5):
            for n in range(6):
                place = 40 + 120 * y + 13 * x + n
                own = numerics.requantise(int(sums[y, x, n]), **parameters[n], **CLAMP)
                operands = (int(expected[place]), own) if own_second else (own, int(expected[place]))
                expected[place] = numerics.add_residual(*operands, settings)
    run(engine, ("act.set_output", OUTPUT), ("act.set_clamp", CLAMP), ("act.set_residual_scale", scales),
        ("act.set_residual_offset", offset | {"residual_low": -90, "residual_high": 120, "own_second": own_second}),
        ("act.run", {"base": 40, "rows": 2, "channels": 6, "residual": 1}))
    np.testing.assert_array_equal(engine.state.results, expected)


@pytest.mark.parametrize(("residual", "pooled"), [(0, 0), (1, 0), (0, 1)])
def test_a_table_maps_sums_behind_the_residual_and_before_the_pooling(residual, pooled):
    machine = WINOGRAD_MACHINES["base"]
    engine = engine_of(machine)
    set_parameters(engine, 8)
    table = np.random.default_rng(3).permutation(256).astype(np.uint8).view(np.int8)
    engine.memory.bytes[256:512] = table
    scales = {"mantissa_a": 0xC00000, "shift_a": 24, "mantissa_b": 0x900001, "shift_b": 23}
    settings = (("act.set_output", OUTPUT), ("act.set_clamp", CLAMP), ("act.set_residual_scale", scales),
                ("act.set_residual_offset", {"residual_low": -90, "residual_high": 120}),
                ("pool.window", {"kernel_y": 1, "kernel_x": 1, "stride_y": 1, "stride_x": 1, "rows": 2, "width": 5}),
                ("ldw.table", {"address": MAIN_BASE + 256, "base": 3 * 256 // machine.bus_bytes,
                               "words": 256 // machine.bus_bytes}))
    act = {"base": 40, "rows": 2, "channels": 6, "residual": residual, "pooled": pooled}
    before = engine.state.results.copy()
    sums_for(engine, 0, 2, 6)
    run(engine, *settings, ("act.run", act))
    unmapped, engine.state.results[:] = engine.state.results.copy(), before
    sums_for(engine, 0, 2, 6)
    run(engine, ("act.run", act | {"table": 1, "table_slot": 3}))
    for y in range(2):
        for x in range(5):
            for n in range(6):
                place = 40 + 120 * y + 13 * x + n
                before[place] = table[int(unmapped[place]) + 128]
    np.testing.assert_array_equal(engine.state.results, before)


@pytest.mark.parametrize("table_first", [0, 1])
def test_a_table_may_come_before_the_residual(table_first):
    machine = WINOGRAD_MACHINES["base"]
    engine = engine_of(machine)
    set_parameters(engine, 8)
    table = np.random.default_rng(3).permutation(256).astype(np.uint8).view(np.int8)
    engine.memory.bytes[256:512] = table
    # A scale of 1 for both operands, and no offset: the sum of the two, saturated.
    scales = {"mantissa_a": 1 << 23, "shift_a": 23, "mantissa_b": 1 << 23, "shift_b": 23}
    settings = (("act.set_output", OUTPUT), ("act.set_clamp", CLAMP), ("act.set_residual_scale", scales),
                ("act.set_residual_offset", {"offset_mantissa": 0, "residual_low": -128, "residual_high": 127}),
                ("ldw.table", {"address": MAIN_BASE + 256, "base": 0, "words": 256 // machine.bus_bytes}))
    act = {"base": 40, "rows": 2, "channels": 6}
    before = engine.state.results.copy()
    sums_for(engine, 0, 2, 6)
    run(engine, *settings, ("act.run", act))
    own, engine.state.results[:] = engine.state.results.copy(), before
    sums_for(engine, 0, 2, 6)
    run(engine, ("act.run", act | {"table": 1, "residual": 1, "table_first": table_first}))
    for place in (40 + 120 * y + 13 * x + n for y in range(2) for x in range(5) for n in range(6)):
        q, other = int(own[place]), int(before[place])
        if table_first:
            q = int(table[q + 128])
        total = min(max(q + other, -128), 127)
        assert engine.state.results[place] == (total if table_first else table[total + 128])
