"""Random choices that can be written down, replayed and made smaller; of a seed, or hypothesis's."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
Source = int | Sequence[int] | Callable[[int], int]


class Choices:
    """A sequence of choices, random or replayed; where a replay has ended, every choice is the first option.

    Parameters
    ----------
    source : int, sequence of int, or callable
        A seed, the ``taken`` of an earlier sequence, or a function from a count to one of 0 .. count - 1.
    """

    def __init__(self, source: "Source") -> None:
        if callable(source):
            self._next: Callable[[int], int] = source
        elif isinstance(source, int):
            rng = np.random.default_rng(source)
            self._next = lambda count: int(rng.integers(count))
        else:
            given = iter(source)
            self._next = lambda count: next(given, 0) % count
        self.taken: list[int] = []

    def below(self, count: int) -> int:
        """Return one of 0 .. count - 1."""
        choice = self._next(count)
        self.taken.append(choice)
        return choice

    def between(self, low: int, high: int) -> int:
        """Return one of low .. high."""
        return low + self.below(high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of ``options``; the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Return True in so many of a hundred cases; False is the simpler."""
        return self.below(100) >= 100 - percent


def shrink(taken: Sequence[int], fails: Callable[[Sequence[int]], bool], tries: int = 400) -> list[int]:
    """Return a shorter or smaller sequence of choices that fails too: pieces are left out, then choices lowered."""
    best, left = list(taken), tries
    size = max(1, len(best) // 2)
    while size and left > 0:
        at = 0
        while at < len(best) and left > 0:
            fewer = best[:at] + best[at + size:]
            left -= 1
            if fails(fewer):
                best = fewer
            else:
                at += size
        size //= 2
    for at, value in enumerate(best):
        for lower in (0, value // 2):
            if lower < value and left > 0:
                left -= 1
                if fails([*best[:at], lower, *best[at + 1:]]):
                    best[at] = lower
                    break
    return best
