"""Rows of lda against docs/datapath.md, byte by byte: both layouts, padding, residuals."""

import numpy as np
import pytest

from tests.support.coprocessor_state import MACHINES, blocked, engine_of, run
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.memory import MAIN_BASE

LAYOUT = {"chunk_step": 40, "channels": 3, "left": 2, "right": 1, "value": -7}


@MACHINES
@pytest.mark.parametrize("fill", [False, True])
def test_linear_rows(machine, fill):
    engine = engine_of(machine)
    expected = engine.state.activations.copy()
    source = engine.memory.bytes
    base, rows, chunks, size = 101, 3, 2, 9
    for r in range(rows):
        start = base + 200 * r
        expected[start:start + 6] = -7
        for i in range(chunks):
            first = start + 6 + 40 * i
            expected[first:first + size] = -7 if fill else source[1003 + 77 * r + 13 * i:][:size]
        end = start + 6 + 40 + size
        expected[end:end + 3] = -7
    run(engine, ("lda.set_row", {"chunk_bytes": size, "chunks": chunks, "memory_chunk_step": 13}),
        ("lda.set_step", {"memory_row_step": 77, "row_step": 200}), ("lda.set_layout", LAYOUT),
        ("lda.fill_linear", {"base": base, "rows": rows}) if fill else
        ("lda.linear", {"address": MAIN_BASE + 1003, "base": base, "rows": rows}))
    np.testing.assert_array_equal(engine.state.activations, expected)


@MACHINES
@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize(("channels", "y"), [(3, 0), (5, 3), (16, 2), (40, 1)])
def test_blocked_rows(machine, fill, channels, y):
    engine = engine_of(machine)
    expected = engine.state.activations.copy()
    base, row_step, rows, chunks, pixels = 64, 16 * channels * 3, 6, 2, 3
    for r in range(rows):
        row = [-7] * 2 * channels
        for i in range(chunks):
            first = 1001 + 500 * r + 150 * i
            row += [-7] * pixels * channels if fill else engine.memory.bytes[first:first + pixels * channels].tolist()
        row += [-7] * channels
        for index, value in enumerate(row):
            expected[blocked(base, index // channels, y + r, index % channels, 16 * channels, row_step)] = value
    run(engine, ("lda.set_row", {"chunk_bytes": pixels * channels, "chunks": chunks, "memory_chunk_step": 150}),
        ("lda.set_step", {"memory_row_step": 500, "row_step": row_step}),
        ("lda.set_layout", LAYOUT | {"channels": channels}),
        ("lda.fill_blocked", {"base": base, "rows": rows, "y": y}) if fill else
        ("lda.blocked", {"address": MAIN_BASE + 1001, "base": base, "rows": rows, "y": y}))
    np.testing.assert_array_equal(engine.state.activations, expected)


def test_residual_rows_have_no_padding():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    expected = engine.state.results.copy()
    for r in range(3):
        for i in range(2):
            expected[55 + 300 * r + 40 * i:][:10] = engine.memory.bytes[9 + 64 * r + 20 * i:][:10]
    run(engine, ("lda.set_row", {"chunk_bytes": 10, "chunks": 2, "memory_chunk_step": 20}),
        ("lda.set_step", {"memory_row_step": 64, "row_step": 300}), ("lda.set_layout", LAYOUT),
        ("lda.residual", {"address": MAIN_BASE + 9, "base": 55, "rows": 3}))
    np.testing.assert_array_equal(engine.state.results, expected)
