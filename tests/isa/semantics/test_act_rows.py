"""act.rows against isa.rows, element by element, and that against ONNX Runtime's softmax of levels."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.coprocessor_state import engine_of, run
from tests.support.softmax_models import quantised_softmax
from tilewright.isa.machine import preset
from tilewright.isa.rows.row_softmax import RowSoftmax, row_factor, softmax_row
from tilewright.isa.semantics.act_rows import softmax_rows
from tilewright.sim.values.executor import CommandFailedError

LENGTHS = (32, 65, 197, 1024)
NANO = replace(preset("nano"), row_unit=True)
CLAMP = {"zero_point": -7, "low": -100, "high": 90}


def rows_of(rng, count, length, kind):
    """Return int8 (count, length): levels all over, or those of attention."""
    if kind == "wide":
        return rng.integers(-128, 128, (count, length)).astype(np.int8)
    return np.clip(np.rint(rng.normal(0, 32, (count, length))), -128, 127).astype(np.int8)


def as_machine(softmax, x, zero_point=-128):
    """Return the levels that the machine makes of rows."""
    return softmax_rows(x, np.array(softmax.table, np.uint32), (softmax.mantissa, softmax.shift),
                        (zero_point, -128, 127))


@pytest.mark.parametrize("name", ["nano", "base", "large"])
@pytest.mark.parametrize(("rows", "length"), [(1, 1), (3, 2), (5, 65), (2, 1000), (1, 4095)])
def test_rows_are_normalised_where_they_lie(name, rows, length):
    rng = np.random.default_rng(length)
    machine = replace(preset(name), row_unit=True)
    softmax, base = RowSoftmax.of(float(np.float32(0.05)), 1 / 256, CLAMP["zero_point"]), 37
    engine = engine_of(machine)
    engine.state.results[:] = rng.integers(-128, 128, machine.result_bytes).astype(np.int8)
    engine.state.tables.reshape(-1).view("<u4")[:] = np.array(softmax.table) | 0x5A << 24   # the upper byte is idle
    expected = engine.state.results.copy()
    for row in range(rows):
        here = slice(base + row * length, base + (row + 1) * length)
        expected[here] = softmax_row(expected[here].tolist(), softmax, low=CLAMP["low"], high=CLAMP["high"])
    run(engine, ("act.set_clamp", CLAMP), ("act.set_rows", {"mantissa": softmax.mantissa, "shift": softmax.shift}),
        ("act.rows", {"base": base, "length": length, "rows": rows, "norm": 0}))
    np.testing.assert_array_equal(engine.state.results, expected)


def test_a_machine_without_the_unit_has_no_such_command():
    for lacking, unit in ((preset("nano"), "row_unit"), (replace(NANO, value_tables=False), "value_tables")):
        with pytest.raises(CommandFailedError, match=unit):
            run(engine_of(lacking), ("act.rows", {"base": 0, "length": 4, "rows": 1, "norm": 0}))


def test_rows_behind_the_end_of_the_buffer_are_refused():
    engine = engine_of(NANO)
    engine.state.tables.reshape(-1).view("<u4")[0] = 1 << 23
    settings = ("act.set_clamp", CLAMP), ("act.set_rows", {"mantissa": 1 << 23, "shift": 16})
    with pytest.raises(CommandFailedError, match="result"):
        run(engine, *settings, ("act.rows", {"base": 100, "length": 1000, "rows": 9, "norm": 0}))


def test_a_table_without_a_one_is_refused():
    engine = engine_of(NANO)
    engine.state.tables.reshape(-1).view("<u4")[0] = (1 << 23) - 1
    settings = ("act.set_clamp", CLAMP), ("act.set_rows", {"mantissa": 1 << 23, "shift": 16})
    with pytest.raises(CommandFailedError, match=str((1 << 23) - 1)):
        run(engine, *settings, ("act.rows", {"base": 0, "length": 4, "rows": 1, "norm": 0}))


@pytest.mark.parametrize("total", [1 << 23, (1 << 24) - 1, 1 << 24, 4095 * ((1 << 24) - 1), 123_456_789])
@pytest.mark.parametrize("mantissa", [1 << 23, 255 << 16, (1 << 24) - 1])
def test_a_factor_is_the_quotient_cut_off_behind_24_bits(mantissa, total):
    factor, places = row_factor(mantissa, total)
    assert factor.bit_length() == 24
    assert factor * total <= mantissa << places < (factor + 1) * total


@pytest.mark.parametrize("scale", [1e-5, 0.003, 0.07, 3.0])
def test_whole_arrays_are_computed_as_single_rows(scale):
    rng = np.random.default_rng(3)
    softmax = RowSoftmax.of(float(np.float32(scale)), float(np.float32(1 / 255)), 3)
    for length in (1, 2, 63, 500):
        x = rows_of(rng, 6, length, "wide")
        expected = [softmax_row(row.tolist(), softmax) for row in x]
        np.testing.assert_array_equal(as_machine(softmax, x, 3), expected)


def compared(elements):
    """Return how many elements are a level beside QLinearSoftmax's, of how many; none is further off."""
    off, seen, rng = 0, 0, np.random.default_rng(7)
    for length in LENGTHS:
        for dtype, zero_point in ((np.uint8, 0), (np.int8, -128)):
            for x_scale in map(np.float32, (0.02, 0.04, 0.1)):
                for y_scale in map(np.float32, (1 / 255, 1 / 256, 0.7 / 255)):
                    session = quantised_softmax(length, dtype, x_scale, y_scale, zero_point)
                    softmax = RowSoftmax.of(float(x_scale), float(y_scale))
                    for kind in ("wide", "attention"):
                        x = rows_of(rng, max(2, elements // length), length, kind)
                        raw = x if dtype == np.int8 else (x.astype(np.int16) + 128).astype(np.uint8)
                        (theirs,) = session.run(None, {"x": raw})
                        ours = as_machine(softmax, x).astype(int) + (128 if dtype == np.uint8 else 0)
                        difference = np.abs(ours - theirs)
                        assert difference.max() <= 1
                        off, seen = off + int(np.count_nonzero(difference)), seen + difference.size
    return off, seen


def test_at_most_two_elements_in_a_million_are_a_level_beside_onnx_runtime_s():
    off, seen = compared(7_500)
    assert seen > 1_000_000
    assert off <= 2 * seen / 1e6 + 1


@pytest.mark.slow
def test_at_most_two_in_a_million_of_thirty_million_are_a_level_beside():
    off, seen = compared(210_000)
    assert seen > 30_000_000
    assert off <= 2 * seen / 1e6
    assert off, "the difference is declared, and there is none"
