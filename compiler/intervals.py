"""Intervals that can be asked for by overlap: those on the same page of addresses lie together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

PAGE = 4096


class Interval(Protocol):
    """Places [start, stop)."""

    start: int
    stop: int


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
        """Add ``new`` and drop what it covers: what lies inside it, as far as ``covers`` agrees."""
        for page in range(new.start // PAGE, (new.stop - 1) // PAGE + 1):
            low, high = page * PAGE, (page + 1) * PAGE
            # On its page, an interval is as good as covered if its part there is.
            kept = [each for each in self.pages.get(page, ())
                    if not (new.start <= max(each.start, low) and min(each.stop, high) <= new.stop and covers(each))]
            kept.append(new)
            self.pages[page] = kept
