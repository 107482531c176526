"""The unit of rows alone: its results, its rate, and the cycles that the model of time says."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.support.streams import simulate
from tilewright.isa.machine import Machine, preset
from tilewright.isa.numerics import requantise
from tilewright.isa.rows.row_norm import RowNorm, norm_row
from tilewright.isa.rows.row_softmax import RowSoftmax, row_factor, softmax_row
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.post.parameter_buffer import ParameterBuffer
from tilewright.rtl.post.row_factor import RowFactor
from tilewright.rtl.post.row_unit import RowUnit
from tilewright.rtl.post.value_table import ValueTables
from tilewright.sim.timing.command_work import row_cycles

CLAMP = {"zero_point": -128, "low": -128, "high": 127}

row_unit = cache(RowUnit)


def settings_of(rows, machine):
    """Return the inputs of the unit besides what an act.rows gives it; parameters begin with the second vector."""
    found = {"mantissa": rows.mantissa, "shift": rows.shift}
    if isinstance(rows, RowNorm):
        found |= {"norm": 1, "norms": {"extra": rows.extra, "offset": rows.offset, "centred": rows.centred,
                                       "fine": rows.fine, "parameter_base": machine.post_lanes}}
    return found


def normalised(machine, x, softmax, base=5):
    """Return the results of int8 (rows, length), and the cycles from the start to the last of them."""
    rows, length = x.shape
    unit, lanes = row_unit(machine), machine.post_lanes
    memory = np.zeros(machine.result_bytes, np.int64)
    memory[base:base + x.size] = x.ravel()
    found, cycles = [], []

    async def bench(ctx):
        for name, value in {"base": base, "length": length, "rows": rows, "start": 1,
                            **settings_of(softmax, machine)}.items():
            ctx.set(getattr(unit, name), value)
        await ctx.tick()
        ctx.set(unit.start, 0)
        reads, asked = [None] * ResultBuffer.READ_LATENCY, [None] * ValueTables.LATENCY
        gains = [None] * ParameterBuffer.LATENCY
        cycle = 1
        while ctx.get(unit.busy):
            assert cycle < 100 + (rows + 2) * (2 * length + 100)
            data = reads.pop(0)
            if data is not None:
                address, count = data
                ctx.set(unit.data, [int(memory[address + k]) if k < count else 77 for k in range(lanes)])
            entries = asked.pop(0)
            if entries is not None:
                ctx.set(unit.entries, [softmax.table[k] for k in entries])
            vector = gains.pop(0)
            if vector is not None:
                for name in ("gains", "shifts"):
                    mine = [0] * lanes + list(getattr(softmax, name)) + [99] * lanes
                    ctx.set(getattr(unit, name), mine[lanes * vector:lanes * (vector + 1)])
            if ctx.get(unit.o.valid):
                o = unit.o.payload
                place, count = ctx.get(o.address), ctx.get(o.count)
                for lane in range(count):
                    level = requantise(ctx.get(o.entries[lane]), bias=0, mantissa=ctx.get(o.mantissa),
                                       shift=ctx.get(o.shift), **CLAMP)
                    found.append(level)
                assert place == base + len(found) - count
                cycles.append(cycle)
                assert ctx.get(o.final) == (len(found) == x.size)
            reads.append((ctx.get(unit.read.payload.address), ctx.get(unit.read.payload.count))
                         if ctx.get(unit.read.valid) else None)
            asked.append([ctx.get(unit.index.payload[k]) for k in range(lanes)] if ctx.get(unit.index.valid) else None)
            gains.append(ctx.get(unit.ask.payload) if ctx.get(unit.ask.valid) else None)
            await ctx.tick()
            cycle += 1

    simulate(unit, bench, deadline=100_000)
    return np.array(found).reshape(x.shape), cycles[-1]


def machine_of(lanes):
    """Return a machine with so many lanes of post-processing."""
    return Machine(name=f"{lanes} lanes", lanes=lanes, clusters=max(1, lanes // 4), post_lanes=lanes, row_unit=True,
                   parameter_channels=2048)


SHAPES = [(1, 1), (2, 1), (9, 1), (1, 300), (5, 8), (6, 9), (4, 17), (8, 40), (6, 65), (3, 197)]


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
@pytest.mark.parametrize(("rows", "length"), SHAPES)
def test_rows_are_those_of_the_reference(lanes, rows, length):
    rng = np.random.default_rng((lanes, rows, length))
    softmax = RowSoftmax.of(float(np.float32(rng.choice((0.001, 0.04, 0.6)))), float(np.float32(1 / 255)))
    x = np.clip(np.rint(rng.normal(rng.integers(-100, 100), 40, (rows, length))), -128, 127).astype(np.int8)
    machine = machine_of(lanes)
    found, cycles = normalised(machine, x, softmax)
    np.testing.assert_array_equal(found, [softmax_row(row.tolist(), softmax) for row in x])
    assert cycles == row_cycles(machine, rows, length)


NORMS = [(1, 32), (2, 33), (4, 128), (3, 196), (2, 512), (3, 514), (4, 768), (2, 1024)]


def norm_of(rng, length, about):
    """Return a normalisation with gains and shifts of some levels."""
    return RowNorm.of(rng.uniform(-60, 60, length), rng.normal(0, 20, length), 10.0**rng.uniform(-3, 1),
                      zero_point=CLAMP["zero_point"], about=about)


@pytest.mark.parametrize("lanes", [1, 8, 32])
@pytest.mark.parametrize(("rows", "length"), NORMS)
@pytest.mark.parametrize("about", [None, -3])
def test_normalised_rows_are_those_of_the_reference(lanes, rows, length, about):
    if (lanes == 1 and rows * length > 400) or (length == 512 and about is not None):
        return      # slow, or beyond what a root takes
    rng = np.random.default_rng((lanes, rows, length))
    norm, machine = norm_of(rng, length, about), machine_of(lanes)
    x = np.clip(np.rint(rng.normal(rng.integers(-100, 100), 40, (rows, length))), -128, 127).astype(np.int8)
    x[-1] = rng.choice((-128, 127), length) if rows > 2 else 7
    found, cycles = normalised(machine, x, norm)
    np.testing.assert_array_equal(found, [norm_row(row.tolist(), norm) for row in x])
    assert cycles == row_cycles(machine, rows, length, norm=True)


@pytest.mark.parametrize(("length", "most"), [(65, 0.40), (197, 0.28), (32, 0.80)])
def test_the_rate_of_base(length, most):
    machine = replace(preset("base"), row_unit=True)
    more, less = (row_cycles(machine, rows, length) for rows in (60, 20))
    assert (more - less) / (40 * length) <= most


@pytest.mark.parametrize("seed", range(3))
def test_a_factor_is_that_of_the_reference(seed):
    rng = np.random.default_rng(seed)
    cases = [(int(rng.integers(1 << 23, 1 << 24)), int(rng.integers(1 << 23, 1 << rng.integers(24, 37))))
             for _ in range(20)]
    cases += [(1 << 23, 4095 * ((1 << 24) - 1)), ((1 << 24) - 1, 1 << 23), (1 << 23, 1 << 23)]
    unit, found = RowFactor(), []

    async def bench(ctx):
        for mantissa, total in cases:
            ctx.set(unit.mantissa, mantissa)
            ctx.set(unit.total, total)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            for _ in range(RowFactor.CYCLES):
                await ctx.tick()
            assert ctx.get(unit.left) == 0
            found.append((ctx.get(unit.factor), ctx.get(unit.places)))

    simulate(unit, bench)
    assert found == [row_factor(*case) for case in cases]
