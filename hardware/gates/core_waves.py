"""Waveforms of the core under the names of its netlist: slang has one level of hierarchy, and arrays as one signal."""

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tilewright.hardware.gates.mapping import plain_name
from tilewright.hardware.gates.waves import Waves

__all__ = ["SCOPE", "CoreCounts", "counts_of", "flattened"]

SCOPE = "TOP.simulated_soc.core"
"""Where the core is in the waveforms of the simulator of a core alone."""

_LEVEL = plain_name(".")
_ELEMENT = re.compile(f"(.*){plain_name('[')}(\\d+){plain_name(']')}")


def flattened(waves: Waves) -> Waves:
    """Return the signals below ``SCOPE`` with their path as one name, and arrays joined, the first element highest.

    So SystemVerilog has arrays that are declared by their size, as the register file is.
    """
    codes: dict[str, tuple[str, int]] = {}
    arrays: defaultdict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    for name, entry in waves.codes.items():
        if not name.startswith(f"{SCOPE}."):
            continue
        flat = name.removeprefix(f"{SCOPE}.").replace(".", _LEVEL)
        if match := _ELEMENT.fullmatch(flat):
            arrays[match[1]][int(match[2])] = entry
        else:
            codes[f"{SCOPE}.{flat}"] = entry
    joined: dict[str, list[tuple[str, int]]] = {}
    for flat, elements in arrays.items():
        entries = [elements[place] for place in sorted(elements, reverse=True)]
        code = f"array{len(joined)}"
        joined[code] = entries
        codes[f"{SCOPE}.{flat}"] = code, sum(width for _, width in entries)
    return Waves(codes, _with_arrays(waves, joined))


def _with_arrays(waves: Waves, arrays: dict[str, list[tuple[str, int]]]) -> tuple[dict[str, str], ...]:
    """Return the values with those of ``arrays``, each of which consists of signals, lowest bits first."""
    state: dict[str, str] = {}
    values: list[dict[str, str]] = []
    for changes in waves.values:
        state |= changes
        whole = dict(changes)
        for code, entries in arrays.items():
            if not values or any(each in changes for each, _ in entries):
                whole[code] = "".join(state.get(each, "0").rjust(width, "0") for each, width in reversed(entries))
        values.append(whole)
    return tuple(values)


@dataclass(frozen=True, slots=True)
class CoreCounts:
    """Counts of a window without its first cycle: instructions retired, loads and stores begun."""

    retired: int
    accesses: int


def counts_of(waves: Waves) -> CoreCounts:
    """Return the counts from flattened waves.

    Raises
    ------
    WaveError
        If they are not of a core.
    """
    def port(name: str) -> np.ndarray:
        return waves.bits(f"{SCOPE}.{name}")[1:, 0]

    return CoreCounts(int(port("retired").sum()), int((port("data_req") & port("data_gnt")).sum()))
