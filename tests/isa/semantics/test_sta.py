"""Rows of sta against docs/datapath.md, byte by byte, and status records."""

import numpy as np
import pytest

from tests.support.coprocessor_state import blocked, engine_of, run, set_store
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.memory import MAIN_BASE


@pytest.mark.parametrize("local", [False, True])
def test_store_rows(local):
    engine = engine_of(WINOGRAD_MACHINES["base"])
    target = engine.state.activations if local else engine.memory.bytes
    expected = target.copy()
    for r in range(2):
        for i in range(3):
            expected[333 + 100 * r + 9 * i:][:7] = engine.state.results[11 + 90 * r + 20 * i:][:7]
    source = {"base": 11, "rows": 2}
    run(engine, *set_store(9, 100), ("sta.linear", source | {"target": 333}) if local else
        ("sta.memory", source | {"address": MAIN_BASE + 333}))
    np.testing.assert_array_equal(target, expected)


def test_store_blocked():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    expected = engine.state.activations.copy()
    block, row = 16 * 40, 16 * 40 * 3
    for r in range(3):
        for i in range(3):
            for c in range(7):
                place = blocked(64, 2 + i, 3 + r, 16 * 2 + c, block, row)
                expected[place] = engine.state.results[11 + 90 * r + 20 * i + c]
    run(engine, *set_store(block, row), ("sta.blocked", {"target": 64, "x": 2, "y": 3, "channel": 2, "base": 11,
                                                         "rows": 3}))
    np.testing.assert_array_equal(engine.state.activations, expected)


def test_status_stores_the_record_it_is_given():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    record = np.arange(RECORD_WORDS, dtype=np.uint32) + len(COUNTERS)
    engine.state.counters = lambda: record
    run(engine, ("sta.status", {"address": MAIN_BASE + 256}), ("sta.fence", {}))
    np.testing.assert_array_equal(engine.memory.bytes[256:256 + 4 * RECORD_WORDS].view("<u4"), record)
