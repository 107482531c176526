"""A buffer used as a ring: regions are taken one after the other, and never from a region that is still needed.

:class:`LoadedRegions` are the regions of what is loaded of one kind, taken in the order of the steps that need them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.compiler.plan.footprint import ring_space
from tilewright.compiler.schedule.steps import Need

__all__ = ["LoadedRegions", "Region", "Ring"]


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

    def allocate(self, size: int, *, but: Iterable[Region] = (), around: bool = False) -> Region | None:
        """Return the next region of ``size``, or None if it would overlap one still taken or one of ``but``.

        With ``around`` a place behind those taken will do.
        """
        avoided = (*self.taken, *but)
        behind = [-(-each.stop // self.alignment) * self.alignment for each in avoided] if around else []
        ahead = sorted(behind, key=lambda start: (start < self.cursor, start))
        for place in (self.cursor, *ahead, *([0] if around else [])):
            start = place if place + size <= self.size else 0
            region = Region(start, start + size)
            if size <= self.size and not any(region.overlaps(other) for other in avoided):
                self.cursor = start + ring_space(size, self.size, self.alignment)
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

    def begin_turns(self, size: int) -> None:
        """Let the next regions, of ``size`` each, never be the place of the one before, if two fit.

        From just behind the start, a second one would not fit up to the end, nor before the first.
        """
        if self.cursor < size <= self.size // 2 and self.cursor + 2 * size > self.size:
            self.cursor = -(-size // self.alignment) * self.alignment

    def move_up(self, size: int, following: int) -> None:
        """Let the next region, of ``size``, lie at the end, if more regions of ``following`` then fit before it.

        One behind it that does not fit up to the end begins at 0, and the gap is of no use.
        """
        last = (self.size - size) // self.alignment * self.alignment
        moved = Region(last, last + size)
        if self.cursor <= last < self.cursor + following and last // following > self.cursor // following \
                and not any(moved.overlaps(other) for other in self.taken):
            self.cursor = last

    def take(self, region: Region) -> None:
        """Take ``region``, which was found to be free otherwise."""
        self.taken.append(region)

    def release(self, region: Region) -> None:
        """Give ``region`` back."""
        self.taken.remove(region)


@dataclass(slots=True)
class LoadedRegions:
    """The loads of one kind: a ring, the needs in order, and the regions of those in use."""

    ring: Ring
    needs: tuple[Need, ...]
    loaded: int = 0
    regions: dict[int, Region] = field(default_factory=dict)
    served: int = 0
    recent: list[Region] = field(default_factory=list)

    def current(self, step: int) -> Region | None:
        """Return the region that ``step`` uses, if it has such a need."""
        return next((self.regions[i] for i in range(self.served, self.loaded)
                     if self.needs[i].serves(step)), None)

    def due(self, step: int) -> bool:
        """Tell whether the next need not yet loaded is one of ``step``."""
        return self.loaded < len(self.needs) and self.needs[self.loaded].first <= step

    def take(self, size: int, *, ahead: bool = False, around: bool = False) -> Region | None:
        """Allocate for the next need; None while the room is taken, or with ``ahead`` also if the latest step uses it.

        A load ahead of time must not wait for the array, because those behind it would wait too. With ``around``
        it goes behind regions that stay taken.
        """
        region = self.ring.allocate(size, but=self.recent if ahead else (), around=around)
        if region is not None:
            self.regions[self.loaded] = region
            self.loaded += 1
        return region

    def release(self, step: int) -> None:
        """Give back what no step after ``step`` uses."""
        self.recent.clear()
        while self.served < self.loaded and self.needs[self.served].last <= step:
            region = self.regions.pop(self.served)
            self.ring.release(region)
            self.recent.append(region)
            self.served += 1
