"""A few designs out of many drawn ones that together have every pair of traits: array, sizes, and units."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from tests.fuzz.designs import fits, random_design
from tilewright.isa.machine import UNITS, Machine

__all__ = ["covering_designs", "pairs", "traits"]

Trait = tuple[str, object]


def traits(machine: Machine) -> list[Trait]:
    """Return what a design is like, with its sizes in two or three classes each."""
    return [
        ("array", machine.array),
        ("lanes", min(machine.lanes.bit_length() // 2, 2)),  # 1, 2 to 4, more
        ("tiles", machine.tiles > 1),
        ("lanes of a cluster", machine.lanes_per_cluster > machine.lanes_per_fetch),
        ("post-processing", machine.post_lanes < machine.lanes),
        ("bus", min(machine.bus_bytes.bit_length() // 4, 1)),  # up to 4 bytes, more
        ("queue", machine.queue_depth > 4),
        *((unit, getattr(machine, unit)) for unit in UNITS),
    ]


def pairs(machine: Machine) -> set[frozenset[Trait]]:
    """Return every pair of a design's traits."""
    return set(map(frozenset, combinations(traits(machine), 2)))


def covering_designs(seed: int, draws: int, lanes_range: tuple[int, int]) -> Iterator[Machine]:
    """Yield those of ``draws`` random designs that meet every pair which any of them has.

    Each is the one with most pairs that none before it had, for the multipliers that Verilator must translate.
    """
    rng = np.random.default_rng(seed)
    drawn = [random_design(rng, lanes_range=lanes_range) for _ in range(draws)]
    left = set().union(*map(pairs, drawn))
    while left:
        best = max(drawn, key=lambda each: len(pairs(each) & left) / (32 + each.multipliers))
        drawn.remove(best)
        if fits(best):
            left -= pairs(best)
            yield best
