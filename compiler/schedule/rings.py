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
    done with it when the place is used again is not decided here, but by the semaphores
    (compiler/schedule/synchronisation.py).
    """

    size: int
    alignment: int
    cursor: int = 0
    taken: list[Region] = field(default_factory=list)

    @staticmethod
    def space(size: int, whole: int, alignment: int) -> int:
        """Return how far behind the start of a region of ``size`` the next one starts, in a ring of ``whole``."""
        return -(-max(size, whole // REGIONS) // alignment) * alignment

    def allocate(self, size: int, *, but: Iterable[Region] = (), around: bool = False) -> Region | None:
        """Return the next region of ``size``, or None if it would overlap one still taken or one of ``but``.

        With ``around`` a place behind those taken will do.
        """
        avoided = (*self.taken, *but)
        behind = [-(-each.stop // self.alignment) * self.alignment for each in avoided] if around else []
        ahead = sorted(behind, key=lambda start: (start < self.cursor, start))
        for place in (self.cursor, *ahead):
            start = place if place + size <= self.size else 0
            region = Region(start, start + size)
            if size <= self.size and not any(region.overlaps(other) for other in avoided):
                self.cursor = start + self.space(size, self.size, self.alignment)
                self.taken.append(region)
                return region
        return None

    def make_room(self, size: int, but: Iterable[Region]) -> None:
        """Let the next regions, of ``size`` together, lie in one piece, if possible where none of ``but`` is."""
        last = (self.size - size) // self.alignment * self.alignment
        starts = [start for start in (self.cursor, 0, last) if 0 <= start <= last]
        free = [start for start in starts
                if not any(Region(start, start + size).overlaps(other) for other in but)]
        self.cursor = (free or starts)[0]

    def release(self, region: Region) -> None:
        """Give ``region`` back."""
        self.taken.remove(region)
