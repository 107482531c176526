"""Machines that the area model is fitted to: the presets, then machines drawn at random from the space."""

import random
from typing import Any

from tilewright.isa.machine import ARRAYS, LIMITS, PRESETS, UNITS, Machine

__all__ = ["designs"]

_MOST = {"lanes": 8, "post_lanes": 8}
"""Of what makes synthesis slow: larger machines are left to the presets."""


def designs(count: int, seed: int = 13) -> list[Machine]:
    """Return the presets and ``count`` machines drawn at random, every second of them without some of its units.

    Powers of two are drawn evenly. Machine n of a seed is the same whatever ``count`` is.
    """
    source = random.Random(seed)
    return [*PRESETS.values(), *(_draw(source, number) for number in range(count))]


def _draw(source: random.Random, number: int) -> Machine:
    while True:
        values: dict[str, Any] = {
            name: 1 << source.randint(low.bit_length() - 1, min(high, _MOST.get(name, high)).bit_length() - 1)
            for name, (low, high) in LIMITS.items()}
        absent = [unit for unit in UNITS if source.random() < 0.4]
        array = source.choice(list(ARRAYS))
        units = dict.fromkeys(absent, False) if number % 2 else {}
        try:
            return Machine(name=f"fit-{number}", array=array if number % 2 else "winograd", **values, **units)
        except ValueError:  # lanes that do not go with clusters, for one
            continue
