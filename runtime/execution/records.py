"""Status records: what ``sta.status`` stored at the end of each layer, differenced into counts per layer."""

from collections.abc import Iterable, Sequence

import numpy as np

from tilewright.errors import SimulationError
from tilewright.isa.counters import (
    COUNTERS,
    CYCLES_HIGH_WORD,
    FAULT_ADDRESS_WORD,
    FAULT_WORD,
    FAULTS,
    RECORD_WORDS,
)

__all__ = ["CAUSES", "RECORD_BYTES", "STALLS", "Counts", "differences", "read_record", "total"]

RECORD_BYTES = 4 * RECORD_WORDS
CAUSES = tuple(counter.name for counter in COUNTERS if counter.name.startswith("mac_"))
"""Exactly one of these steps in each cycle."""

STALLS = tuple(name for name in CAUSES if name != "mac_issue")

_WORD = 1 << 32

Counts = dict[str, int]


def read_record(raw: bytes) -> Counts:
    """Return the counters of one record by name.

    Raises
    ------
    SimulationError
        If it was never stored, or reports a fault.
    """
    words = np.frombuffer(raw, "<u4", RECORD_WORDS).tolist()
    if words[FAULT_WORD]:
        what = FAULTS.get(words[FAULT_WORD], f"fault {words[FAULT_WORD]}")
        raise SimulationError(f"Coprocessor stopped by a fault: {what} at {words[FAULT_ADDRESS_WORD]:#010x}")
    counts = {counter.name: words[i] for i, counter in enumerate(COUNTERS)}
    counts["cycles"] += _WORD * words[CYCLES_HIGH_WORD]
    if not counts["cycles"]:
        raise SimulationError("Status record of a layer must count cycles since reset, not 0: the program did not "
                              "store it")
    return counts


def differences(records: Sequence[Counts]) -> list[Counts]:
    """Return each layer's increments of the counters; the first layer counts from reset.

    ``cycles`` has 64 bits; the others wrap at 32, so of a layer of 2**32 cycles or more they are known modulo that.

    Raises
    ------
    SimulationError
        If the causes of a layer's cycles do not add up to its cycles.
    """
    before = dict.fromkeys((counter.name for counter in COUNTERS), 0)
    layers = []
    for index, record in enumerate(records):
        added = {name: (value - before[name]) % _WORD for name, value in record.items()}
        if (explained := sum(added[name] for name in CAUSES) % _WORD) != added["cycles"]:
            raise SimulationError(f"Causes of the cycles of layer {index} must add up to {added['cycles']}, not "
                                  f"{explained}")
        added["cycles"] = record["cycles"] - before["cycles"]
        layers.append(added)
        before = record
    return layers


def total(layers: Iterable[Counts]) -> Counts:
    """Return the sum of counts."""
    sums = dict.fromkeys((counter.name for counter in COUNTERS), 0)
    for layer in layers:
        for name, value in layer.items():
            sums[name] += value
    return sums
