"""Intervals that can be asked for by overlap: those on the same page of addresses lie together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Generic, Protocol, TypeVar

PAGE = 4096


class Interval(Protocol):
    """Places [start, stop); with a ``step`` only ``size`` of them from start, start + step, .. on, as of a comb."""

    @property
    def start(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def size(self) -> int: ...


def mesh(first: Interval, second: Interval) -> bool:
    """Tell whether two combs share no place because the teeth of one lie between those of the other.

    What has no gaps is one tooth.
    """
    step = gcd(first.step, second.step)
    size, other = (each.size if each.step else each.stop - each.start for each in (first, second))
    return step > 0 and (second.start - first.start) % step >= size and (first.start - second.start) % step >= other


def same_teeth(first: Interval, second: Interval) -> bool:
    """Tell whether, where two intervals overlap, what meets the second meets the first: it has no gaps, or the same."""
    step = first.step
    return step == 0 or (second.step == step and second.size == first.size and (second.start - first.start) % step == 0)


T = TypeVar("T", bound=Interval)


@dataclass(slots=True)
class Intervals(Generic[T]):
    """A collection of intervals."""

    pages: dict[int, list[T]] = field(default_factory=dict)

    def overlapping(self, start: int, stop: int) -> Iterator[T]:
        """Yield what overlaps [start, stop); an interval on several pages comes several times."""
        for page in range(start // PAGE, (stop - 1) // PAGE + 1):
            for each in self.pages.get(page, ()):
                if each.start < stop and start < each.stop:
                    yield each

    def replace(self, new: T, covers: Callable[[T], bool]) -> None:
        """Add ``new`` and drop what it covers: what lies inside it and touches no more, as far as ``covers`` agrees."""
        for page in range(new.start // PAGE, (new.stop - 1) // PAGE + 1):
            low, high = page * PAGE, (page + 1) * PAGE
            # On its page, an interval is as good as covered if its part there is.
            kept = [each for each in self.pages.get(page, ())
                    if not (new.start <= max(each.start, low) and min(each.stop, high) <= new.stop
                            and same_teeth(new, each) and covers(each))]
            kept.append(new)
            self.pages[page] = kept
