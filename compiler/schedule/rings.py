"""A buffer used as a ring: regions are taken one after the other, and never from a region that is still needed.

:class:`LoadedRegions` are the regions of what is loaded of one kind, taken in the order of the steps that need them.

Data that several layers load alike stay on the chip from the first of them to the last, where there is room: the steps
of a recurrence read the same weights, and heads of a detector may. They get a place of their own at the end of the
buffer; all else goes round in the rest, which must hold two of the largest. Data that stay between calls have their
place there too, and are loaded before the first call: no layer loads them.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.compiler.plan.footprint import block_words, parameter_channels, ring_space, table_bytes
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.schedule.steps import Need
from tilewright.compiler.schedule.weight_image import BlockImage, Span
from tilewright.compiler.weights.kept_groups import chosen_groups
from tilewright.isa.machine import TILE_BYTES, Machine

__all__ = [
    "LEAST_PIECE", "Lasting", "LoadedRegions", "Piece", "Region", "Ring", "content_of", "pieces_of", "units_of",
    "with_lasting",
]


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
    """The loads of one kind: a ring, the needs in order, and the regions of those in use.

    ``lasting`` are the regions, outside the ring, of needs that have places of their own; ``resident`` are needs that
    are there before the first step, with theirs.
    """

    ring: Ring
    needs: tuple[Need, ...]
    loaded: int = 0
    regions: dict[int, Region] = field(default_factory=dict)
    recent: list[Region] = field(default_factory=list)
    lasting: Mapping[int, Region] = field(default_factory=dict)
    resident: Sequence[tuple[Need, Region]] = ()

    def current(self, step: int) -> Region | None:
        """Return the region that ``step`` uses, if it has such a need."""
        return next((region for i, region in self.regions.items() if self.needs[i].serves(step)), None) \
            or next((region for need, region in self.resident if need.serves(step)), None)

    def due(self, step: int) -> bool:
        """Tell whether the next need not yet loaded is one of ``step``."""
        return self.loaded < len(self.needs) and self.needs[self.loaded].first <= step

    def next_layer(self) -> int | None:
        """Return the layer of the next need not yet loaded; None if there is none."""
        return self.needs[self.loaded].layer if self.loaded < len(self.needs) else None

    def take(self, size: int, *, ahead: bool = False, around: bool = False) -> Region | None:
        """Allocate for the next need; None while its room is taken, or, with ``ahead``, used by the latest step.

        A load ahead of time must not wait for the array, because those behind it would wait too. With ``around``
        it goes behind regions that stay taken.
        """
        region = self.lasting.get(self.loaded) or self.ring.allocate(
            size, but=self.recent if ahead else (), around=around)
        if region is not None:
            self.regions[self.loaded] = region
            self.loaded += 1
        return region

    def release(self, step: int) -> None:
        """Give back what no step after ``step`` uses."""
        self.recent.clear()
        for index in [index for index in self.regions if self.needs[index].last <= step]:
            region = self.regions.pop(index)
            if index not in self.lasting:
                self.ring.release(region)
            self.recent.append(region)


@dataclass(frozen=True, slots=True)
class Lasting:
    """The needs of a kind with those merged that last, the units of the buffer for the others, and places by need.

    ``resident`` are needs that stay between calls, which are not among the others, with their places; needs of the same
    content have one place.
    """

    needs: tuple[Need, ...]
    left: int
    places: Mapping[int, tuple[int, int]]
    resident: tuple[tuple[Need, tuple[int, int]], ...] = ()


def with_lasting(needs: Sequence[Need], content: Callable[[Need], Hashable], size: Callable[[Need], int],
                 capacity: int, *, between_calls: bool = False) -> Lasting:
    """Return ``needs`` with one in place of those of the same content, or without what stays between calls.

    Parameters
    ----------
    needs
        Of one kind, in the order of their first steps.
    content
        Equal for needs of the same content; None for what is computed.
    size
        Units of the buffer that a need takes.
    capacity
        Units of the buffer.
    between_calls
        Let stay what is needed once, too, and all from call to call.
    """
    alike: dict[Hashable, list[int]] = {}
    for index, need in enumerate(needs):
        if not need.among and (between_calls or need.every == 1) and (what := content(need)) is not None:
            alike.setdefault(what, []).append(index)
    groups = [group for group in alike.values() if between_calls or len(group) > 1]
    sizes = [size(need) for need in needs]
    # Layers that are computed by bands keep their loads side by side, in a piece that may be the whole ring.
    if any(need.among for need in needs):
        return Lasting(tuple(needs), capacity, {})
    kept = {group[0]: group for group in chosen_groups(groups, sizes, capacity, between_calls=between_calls)}
    left = capacity - sum(sizes[first] for first in kept)
    if not kept:
        return Lasting(tuple(needs), capacity, {})
    return _resident(needs, kept, sizes, left) if between_calls else _merged(needs, kept, sizes, left)


def _resident(needs: Sequence[Need], kept: Mapping[int, Sequence[int]], sizes: Sequence[int], left: int) -> Lasting:
    """Return the needs without those kept between calls, whose places begin at ``left``."""
    places: dict[int, tuple[int, int]] = {}
    start = left
    for first, group in kept.items():
        places |= dict.fromkeys(group, (start, start + sizes[first]))
        start += sizes[first]
    return Lasting(tuple(need for index, need in enumerate(needs) if index not in places), left, {},
                   tuple((needs[index], place) for index, place in sorted(places.items())))


def _merged(needs: Sequence[Need], kept: Mapping[int, Sequence[int]], sizes: Sequence[int], left: int) -> Lasting:
    """Return the needs with the first of each group for all of it; places begin at ``left``."""
    gone = {index for group in kept.values() for index in group[1:]}
    found: list[Need] = []
    places: dict[int, tuple[int, int]] = {}
    start = left
    for index, need in enumerate(needs):
        if index in gone:
            continue
        if index in kept:
            members = [needs[each] for each in kept[index]]
            among = frozenset(step for each in members for step in range(each.first, each.last + 1))
            places[len(found)] = start, start + sizes[index]
            start += sizes[index]
            need = replace(need, last=members[-1].last, among=among)
        found.append(need)
    return Lasting(tuple(found), left, places)


LEAST_PIECE = 512
"""Bytes of weights that are worth a command of their own."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a block of weights that is still to be loaded, and its place, in bytes over all clusters."""

    kind: str
    source: Span
    target: Region

    def fits(self, free: int, machine: Machine) -> bool:
        """Tell whether its first load may be as short as that of ``free`` bytes: coded blocks are not cut."""
        return not self.source.parts or self.source.parts[0].cycles * machine.bus_bytes <= free

    def cut(self, most: int, machine: Machine) -> tuple["Piece", int, "Piece | None"]:
        """Return what is loaded first, its bytes, or as many as would take as long, and the rest.

        That is a coded block, or at most ``most`` bytes where the rest is worth a command. What is first keeps the
        whole place: how the parts share it does not matter, for every reader waits for the last.
        """
        source, target = self.source, self.target
        if source.parts:
            part, *others = source.parts
            first = Span(part.start, part.start + part.size, (part,))
            rest = Span(first.stop, source.stop, tuple(others))
            moved, size = part.cycles * machine.bus_bytes, part.decoded
        else:
            size = moved = source.size
            if size - most >= LEAST_PIECE:
                size = moved = most // machine.padded_bytes * machine.padded_bytes
            first, rest = Span(source.start, source.start + size), Span(source.start + size, source.stop)
        behind = Piece(self.kind, rest, Region(target.start + size, target.stop)) if rest.size else None
        return Piece(self.kind, first, target), moved, behind


def pieces_of(image: BlockImage, region: Region, machine: Machine) -> list[Piece]:
    """Return the parts of a block of weights whose words are ``region``."""
    word = TILE_BYTES * machine.clusters
    pieces = [Piece("main", image.main, Region(region.start * word, region.stop * word))]
    if image.ninths.size:
        ninths = Region(region.start // 8 * word, region.stop // 8 * word)
        pieces.append(Piece("ninths", image.ninths, ninths))
    return pieces


def units_of(need: Need, plan: LayerPlan, machine: Machine) -> int:
    """Return the words of weights, the channels of parameters or the bytes of a table that are loaded for a need."""
    if need.kind == "table":
        return table_bytes(plan.layer)
    block = plan.blocks[need.block]
    if need.kind == "weights":
        return block_words(block, plan.nest, machine)
    channels = parameter_channels(block, plan.nest, machine)
    return channels + -channels % machine.padded_channels


def content_of(need: Need, plan: LayerPlan, images: Sequence[BlockImage]) -> tuple[Span, ...] | None:
    """Return where in the weight image the data of a need lie; None for what layers compute."""
    factor, image = plan.layer.factor, images[need.block]
    if need.kind == "table":
        return (image.table,)
    if factor is not None and (need.kind == "weights" or factor.parameters):
        return None
    return (image.main, image.ninths) if need.kind == "weights" else (image.parameters,)
