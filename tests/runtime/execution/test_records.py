"""Status records are differenced into counts per layer, and every cycle has one cause."""

import re

import numpy as np
import pytest

from tilewright.errors import SimulationError
from tilewright.isa.counters import COUNTERS, CYCLES_HIGH_WORD, FAULT_ADDRESS_WORD, FAULT_WORD, RECORD_WORDS
from tilewright.runtime.execution.records import CAUSES, STALLS, differences, read_record, total

NAMES = [counter.name for counter in COUNTERS]


def record(cycles=100, **counts):
    """Return counters whose cycles are all issue cycles but those of ``counts``."""
    stalled = sum(value for name, value in counts.items() if name in CAUSES)
    return dict.fromkeys(NAMES, 0) | {"cycles": cycles, "mac_issue": cycles - stalled} | counts


def raw(values, **words):
    array = np.zeros(RECORD_WORDS, "<u4")
    array[:len(NAMES)] = [values[name] for name in NAMES]
    for index, value in words.items():
        array[int(index.removeprefix("w"))] = value
    return array.tobytes()


def test_a_record_is_read_by_name():
    values = record(1000, mac_setup=10, memory_read=512)
    assert read_record(raw(values)) == values


def test_a_fault_is_named_with_its_address():
    faulty = raw(record(), **{f"w{FAULT_WORD}": 2, f"w{FAULT_ADDRESS_WORD}": 0x8000_1000})
    with pytest.raises(SimulationError, match=r"write .*0x80001000$"):
        read_record(faulty)


def test_a_record_never_stored_is_noticed():
    with pytest.raises(SimulationError, match="must count cycles since reset, not 0"):
        read_record(bytes(4 * RECORD_WORDS))


def test_layers_are_what_they_added():
    first, second = record(100, mac_idle_load=30, memory_read=8), record(250, mac_idle_load=30, memory_read=24)
    layers = differences([first, second])
    assert layers[0] == first
    assert (layers[1]["cycles"], layers[1]["mac_idle_load"], layers[1]["memory_read"]) == (150, 0, 16)
    assert total(layers) == second


def test_counters_may_wrap():
    near = 2**32 - 50
    layers = differences([record(near), record(near) | {"cycles": 2**32 + 30, "mac_issue": 30}])
    assert layers[1]["cycles"] == layers[1]["mac_issue"] == 80


def test_cycles_have_64_bits():
    values = record(5)
    assert read_record(raw(values, **{f"w{CYCLES_HIGH_WORD}": 3})) == values | {"cycles": 3 * 2**32 + 5}
    assert differences([record(5), record(5) | {"cycles": 3 * 2**32 + 5}])[1]["cycles"] == 3 * 2**32


def test_a_cycle_without_cause_is_refused():
    sentence = "Causes of the cycles of layer 1 must add up to 10, not 9"
    with pytest.raises(SimulationError, match=f"^{re.escape(sentence)}$"):
        differences([record(100), record(100) | {"cycles": 110, "mac_issue": 109}])


def test_stalls_are_all_causes_but_issue():
    assert set(STALLS) == set(CAUSES) - {"mac_issue"}
    assert len(CAUSES) == 8
