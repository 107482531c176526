"""A buffer used as a ring: regions are taken one behind the other, and never from one still needed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

REGIONS = 24
"""Regions in a lap round the ring, at most: each may have a signal under way, and semaphores count to 63."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes (or words, or channels) [start, stop) of a buffer."""

    start: int
    stop: int

    def overlaps(self, other: "Region") -> bool:
        """Tell whether the two share anything."""
        return self.start < other.stop and other.start < self.stop


@dataclass(slots=True)
class Ring:
    """Allocate regions of a buffer in the order of the program.

    A region stays taken until the command that used it last has been put into the program. That the hardware is
    done with it when the place is used again is not decided here, but by the semaphores (compiler/sync.py).
    """

    size: int
    alignment: int
    cursor: int = 0
    taken: list[Region] = field(default_factory=list)

    def allocate(self, size: int, *, but: Iterable[Region] = ()) -> Region | None:
        """Return the next region of ``size``, or None if it would overlap one still taken or one of ``but``."""
        start = self.cursor if self.cursor + size <= self.size else 0
        region = Region(start, start + size)
        if size > self.size or any(region.overlaps(other) for other in (*self.taken, *but)):
            return None
        self.cursor = -(-max(region.stop, start + self.size // REGIONS) // self.alignment) * self.alignment
        self.taken.append(region)
        return region

    def release(self, region: Region) -> None:
        """Give ``region`` back."""
        self.taken.remove(region)
