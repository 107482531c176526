"""Test the unit of an extension: compare its component, under back-pressure, with its NumPy function."""

from dataclasses import dataclass

import numpy as np

from tilewright.isa.extension import BufferUnit, ExtensionError
from tilewright.sim.verilog.elaborate import unit_results

__all__ = ["UnitCheck", "UnitDifference", "check_unit"]

_LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 100)
"""Bytes of an item that are tried, and random ones besides."""


class UnitDifference(ExtensionError):
    """The component computes something else than the file's NumPy function, or at another time."""


@dataclass(frozen=True, slots=True)
class UnitCheck:
    """Counts of what has been compared, all of it equal."""

    items: int
    bytes: int


def check_unit(unit: BufferUnit, *, seed: int = 0, items: int = 24) -> UnitCheck:
    """Compare RTL and NumPy on random fields and items of several lengths.

    Once without a gap, where each result must come ``LATENCY`` cycles after its last word, and once with random gaps
    between words and results that are held up.

    Raises
    ------
    UnitDifference
        At the first item that differs, comes late, or never.
    ExtensionError
        If the component has not the members of the contract, or the function returns something else than int8.
    """
    random = np.random.default_rng(seed)
    lengths = [each for each in _LENGTHS if each >= unit.result_bytes] + random.integers(4, 200, 3).tolist()
    compared = 0
    for length in lengths:
        settings = {each.name: int(random.integers(each.range.start, each.range.stop)) for each in unit.fields[1]}
        low, high = ((-128, 128), (-2, 2), (126, 128), (-128, -126))[int(random.integers(4))]
        values = random.integers(low, high, (items, length)).astype(np.int8)
        wanted = unit.compute(values.copy(), settings).tolist()
        for gaps, holds in (([0], [0]), (random.integers(0, 4, 13).tolist(), random.integers(0, 5, 7).tolist())):
            found, latencies = unit_results(unit, settings, values.tolist(), gaps, holds)
            _compare(unit, wanted, found, values, settings)
            late = [each for each in latencies if each != unit.latency]
            if not any(gaps) and not any(holds) and late:
                raise UnitDifference(f"Extension {unit.path}: LATENCY must be the cycles from an item's last word to "
                                     f"its result, not {unit.latency}: the component takes {late[0]}")
            compared += items
    return UnitCheck(compared, 2 * items * sum(lengths))


def _compare(unit: BufferUnit, wanted: list[list[int]], found: list[list[int]], values: np.ndarray,
             settings: dict[str, int]) -> None:
    for index, (one, other) in enumerate(zip(wanted, found, strict=False)):
        if one != other:
            raise UnitDifference(f"Extension {unit.path}: item {index} must become {one}, as compute says, but the "
                                 f"component returns {other}: {values[index].tolist()}, fields {settings}")
    if len(wanted) != len(found):
        raise UnitDifference(f"Extension {unit.path}: {len(wanted)} items of {values.shape[1]} bytes must give as many "
                             f"results, but the component gives {len(found)}")
