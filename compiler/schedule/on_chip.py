"""The commands that keep results on chip: padding around the place of an input, and results stored into it.

The load writes the padding before anything else of the chain, so that a command that waits for the first input has also
waited for the padding. `sta.linear` and `sta.blocked` put the results between. In a ring of rows the padding below the
image comes later, where other rows lie at its place before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from tilewright.compiler.plan.footprint import WeightBlock, blocked_row_step, input_bytes, linear_row_step
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.tiles import BLOCK_SIDE, Tile, axes, whole_tile
from tilewright.compiler.schedule.accesses import Access, Draft
from tilewright.compiler.schedule.rings import Region
from tilewright.compiler.schedule.step_commands import chunks_of
from tilewright.isa.limits import MAX_PIXEL_BYTES
from tilewright.isa.machine import TILE_BYTES, Machine

__all__ = [
    "PLACES", "MissingPadding", "block_on_chip", "block_space", "blocked", "border", "fill_border", "fill_bottom",
    "fill_cycles", "keep", "kept_input", "linear", "padding_cycles", "unit_rows", "whole_of",
]

PLACES = 2
"""Places for blocks of channels: one is filled while the other is read."""


def fill_border(plan: LayerPlan, region: Region, rows: range | None = None) -> Iterator[Draft]:
    """Yield the commands that write the padding of a layer whose whole input will lie in ``region``.

    With ``rows`` only that of these stored rows, whole rows of blocks in the blocked layout.
    """
    if rows is not None:
        unit, step = unit_rows(plan), _row_step_of(plan)
        written = Access("activations", region.start + rows.start // unit * step,
                         min(region.start + -(-rows.stop // unit) * step, region.stop), write=True)
        for each in border(whole_of(plan), rows):
            yield from _fill(plan, region, each, written)
        return
    part, size = _part(plan), block_space(plan)
    places = [Region(region.start + place * size, region.start + place * size + kept_input(part))
              for place in range(PLACES)] if plan.channels_at_once else [region]
    for place in places:
        for each in _first_padding(part):
            yield from _fill(part, place, each, Access("activations", place.start, place.stop, write=True))


@dataclass(slots=True)
class MissingPadding:
    """Padding that the inputs of chained layers do not have yet; ``rows`` are stored rows that have it, None for all.

    Of layers that no chain has begun with so far, none has.
    """

    plans: Mapping[int, LayerPlan]
    machine: Machine
    rows: dict[int, int | None] = field(default_factory=dict)

    def begin(self, layer: int, *, bare: bool) -> None:
        """Take over a layer of a chain, whose input's place is ``bare`` or has the padding already."""
        self.rows[layer] = 0 if bare else None

    def write(self, layer: int, rows: range | None, region: Region) -> Iterator[Draft]:
        """Yield the commands that write the padding of some ``rows``, or all, of an input in ``region``."""
        stored = whole_of(self.plans[layer]).rows.stored
        self.rows[layer] = None if rows is None or rows.stop >= stored else rows.stop
        return fill_border(self.plans[layer], region, rows)

    def whole(self, layers: Iterable[int]) -> list[tuple[int, range | None]]:
        """Return the ``layers`` that lack padding, and the rows that do; None for all."""
        return [(layer, range(done, whole_of(self.plans[layer]).rows.stored) if done else None)
                for layer in layers if (done := self.rows.get(layer, 0)) is not None]

    def beside(self, layers: Iterable[int], out: range) -> list[tuple[int, range | None]]:
        """Return the same for the rows of padding beside rows ``out`` of the results that these ``layers`` read."""
        found: list[tuple[int, range | None]] = []
        for layer, left in self.whole(layers):
            plan, rows = self.plans[layer], whole_of(self.plans[layer]).rows
            stop = -(-(rows.before + out.stop) // unit_rows(plan)) * unit_rows(plan)
            if plan.channels_at_once or plan.bands is not None or stop >= rows.before + len(rows.image):
                # Padding below the image is written with the last rows.
                found.append((layer, left))
            elif stop > (done := self.rows.get(layer) or 0):
                found.append((layer, range(done, stop)))
        return found

    def share(self, layers: Iterable[int], inputs: int) -> list[tuple[int, range | None]]:
        """Return the ``layers`` to pad before the next of ``inputs`` loads, about as much before each."""
        missing = self.whole(layers)
        cycles = [padding_cycles(self.plans[layer], self.machine, rows) for layer, rows in missing]
        before = accumulate([0, *cycles[:-1]]) if cycles else ()
        return [each for each, written in zip(missing, before, strict=True) if written * inputs < sum(cycles)]


def block_on_chip(plan: LayerPlan, block: WeightBlock, kept: Region) -> tuple[LayerPlan, WeightBlock, Region]:
    """Return a plan, its block and its input's region as the commands of the array need them.

    Where the layer before hands over blocks of channels, these are a layer of so many channels, and its only block.
    """
    if not plan.channels_at_once:
        return plan, block, kept
    return _part(plan), replace(block, first_group=0, first_channel=0), _place_of(plan, block, kept)


def block_space(plan: LayerPlan) -> int:
    """Return the bytes from one place of a block of channels, which the layer before hands over, to the next."""
    return -(-kept_input(_part(plan)) // TILE_BYTES) * TILE_BYTES


def kept_input(plan: LayerPlan) -> int:
    """Return the bytes that the whole input of a layer takes."""
    return input_bytes(whole_of(plan), plan.layer, plan.nest)


def _place_of(plan: LayerPlan, block: WeightBlock, kept: Region) -> Region:
    """Return where a block of channels lies that the layer before hands over."""
    start = kept.start + block.index % PLACES * block_space(plan)
    return Region(start, start + kept_input(_part(plan)))


def _part(plan: LayerPlan) -> LayerPlan:
    """Return the plan of a layer of the channels that are there at once."""
    shape = (plan.channels_at_once or plan.layer.in_shape[0], *plan.layer.in_shape[1:])
    return replace(plan, layer=replace(plan.layer, in_shape=shape))


def fill_bottom(plan: LayerPlan, region: Region) -> Iterator[Draft]:
    """Yield the commands that write the padding below the image into the ring in ``region``."""
    unit, row_step = BLOCK_SIDE if plan.nest.winograd else 1, _row_step_of(plan)
    for top, left, rows, columns in _bottom(plan):
        first, stop = region.start + top // unit * row_step, region.start + -(-(top + rows) // unit) * row_step
        yield from _fill(plan, region, (top, left, rows, columns), Access("activations", first, stop, write=True))


_Rectangle = tuple[int, int, int, int]
"""First row in the buffer, first stored column, rows and columns."""


def _fill(plan: LayerPlan, region: Region, rectangle: _Rectangle, written: Access) -> Iterator[Draft]:
    """Yield the commands that write padding into a rectangle of an input."""
    channels, blocked = plan.layer.in_shape[0], plan.nest.winograd
    row_step = _row_step_of(plan)
    top, left, rows, columns = rectangle
    # What is filled in the blocked layout starts with a block: results will overwrite what is too much.
    more = left % BLOCK_SIDE if blocked else 0
    size, count = chunks_of((columns + more) * channels, channels if blocked else 1, plan.layer)
    base = region.start + (top // BLOCK_SIDE * row_step + left // BLOCK_SIDE * TILE_BYTES * channels if blocked else
                           top * row_step + left * channels)
    yield Draft("lda", "set_row", {"chunk_bytes": size, "chunks": count, "memory_chunk_step": 0})
    yield Draft("lda", "set_step", {"memory_row_step": 0, "row_step": row_step})
    yield Draft("lda", "set_layout", {"chunk_step": size, "channels": min(channels, MAX_PIXEL_BYTES), "left": 0,
                                      "right": 0, "value": plan.layer.pad_value})
    yield Draft("lda", "fill_blocked" if blocked else "fill_linear",
                {"base": base, "y": top % BLOCK_SIDE if blocked else 0, "rows": rows},
                (written,))


def _first_padding(plan: LayerPlan) -> Iterator[_Rectangle]:
    """Yield the padding that is written before anything else."""
    ring, whole = plan.bands.ring if plan.bands is not None else None, whole_of(plan)
    if ring is None:
        yield from border(whole)
        return
    columns, width = whole.columns, whole.columns.stored
    for rows, place in ring.pieces(range(whole.rows.before)):
        yield place, 0, len(rows), width
    if columns.before:
        yield 0, 0, ring.height, columns.before
    if columns.after:
        yield 0, width - columns.after, ring.height, columns.after
    if ring.padded < 0:
        yield from _bottom(plan)


def _bottom(plan: LayerPlan) -> Iterator[_Rectangle]:
    """Yield the padding below the image in a ring."""
    ring, whole = plan.bands.ring if plan.bands is not None else None, whole_of(plan)
    assert ring is not None
    for rows, place in ring.pieces(range(whole.rows.stored - whole.rows.after, whole.rows.stored)):
        yield place, 0, len(rows), whole.columns.stored


def unit_rows(plan: LayerPlan) -> int:
    """Return how many stored rows of a layer's input lie in one step of rows."""
    return BLOCK_SIDE if plan.nest.winograd else 1


def padding_cycles(plan: LayerPlan, machine: Machine, rows: range | None = None) -> int:
    """Return the cycles in which the padding of a whole input, of some stored ``rows``, or of its ring, is written."""
    if rows is not None:
        return sum(_cycles(each, plan, machine) for each in border(whole_of(plan), rows))
    places = PLACES if plan.channels_at_once else 1
    return places * sum(_cycles(each, _part(plan), machine) for each in _first_padding(plan))


def whole_of(plan: LayerPlan) -> Tile:
    """Return the tile of all of a layer's rows and columns."""
    _, width = axes(plan.work)
    return whole_tile(plan.work, width.cut(0, width.out))


def fill_cycles(plan: LayerPlan, tile: Tile, machine: Machine) -> int:
    """Return the cycles in which the padding of ``tile`` is written."""
    return sum(_cycles(each, plan, machine) for each in border(tile))


def _cycles(rectangle: _Rectangle, plan: LayerPlan, machine: Machine) -> int:
    _, left, rows, columns = rectangle
    channels = plan.layer.in_shape[0]
    if plan.nest.winograd:
        return rows * (columns + left % BLOCK_SIDE) * -(-channels // machine.written_bytes)
    return rows * -(-columns * channels // machine.written_bytes)


def border(tile: Tile, within: range | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Yield the rectangles of padding of ``tile``, ``within`` some rows: first stored row and column, rows, columns."""
    whole = range(tile.rows.stored) if within is None else within
    rows, columns = tile.rows, tile.columns
    height, width = len(rows.image), len(columns.image)
    for each in ((0, 0, rows.before, columns.stored),
                 (rows.before, 0, height, columns.before),
                 (rows.before, columns.before + width, height, columns.after),
                 (rows.before + height, 0, rows.after, columns.stored)):
        first, stop = max(each[0], whole.start), min(each[0] + each[2], whole.stop)
        if first < stop and each[3]:
            yield first, each[1], stop - first, each[3]


def _row_step_of(plan: LayerPlan) -> int:
    """Return the bytes from a stored row to the next, or in the blocked layout from a row of blocks to the next."""
    if plan.nest.winograd:
        return blocked_row_step(whole_of(plan), plan.layer.in_shape[0])
    return linear_row_step(whole_of(plan), plan.layer, plan.nest)


def keep(plan: LayerPlan, tile: Tile, block: WeightBlock, following: LayerPlan, region: Region,
         results: Region, channel: int = 0) -> Iterator[Draft]:
    """Yield the commands that store a step's results into ``region``, which holds the input of ``following``.

    The layer computes the channels of that input from ``channel`` on.
    """
    if following.channels_at_once:
        region = _place_of(following, block, region)
        block, following = replace(block, first_channel=0), _part(following)
    block = replace(block, first_channel=block.first_channel + channel)
    inside = whole_of(following)
    first = tile.rows.out[0] + inside.rows.before
    ring = following.bands.ring if following.bands is not None else None
    rows = range(first, first + len(tile.rows.out))
    yield Draft("sta", "set_source", {"row_step": len(tile.columns.out) * block.channels})
    for part, place in ring.pieces(rows) if ring is not None else ((rows, first),):
        begin = tile.rows.out.start + part.start - first
        strip = replace(tile, rows=replace(tile.rows, out=range(begin, begin + len(part))))
        done = (part.start - first) * len(tile.columns.out) * block.channels
        yield from _keep_rows(plan, strip, block, following, region, Region(results.start + done, results.stop), place)


def _keep_rows(plan: LayerPlan, tile: Tile, block: WeightBlock, following: LayerPlan, region: Region,
               results: Region, row: int) -> Iterator[Draft]:
    """Yield the same for rows that follow each other in the buffer, from its row ``row`` on."""
    columns, height = tile.columns.out, len(tile.rows.out)
    inside = whole_of(following)
    column = columns[0] + inside.columns.before
    row_step = _row_step_of(following)
    first, stop = (row, row + height) if not following.nest.winograd else (
        row // BLOCK_SIDE, -(-(row + height) // BLOCK_SIDE))
    written = Access("activations", region.start + first * row_step, min(region.start + stop * row_step, region.stop),
                     write=True)
    stores = blocked if following.nest.winograd else linear
    channels = following.layer.in_shape[0]
    for draft in stores(plan, tile, block, (row, column), row_step, region.start, channels):
        if draft.configures:
            yield draft
        else:
            yield Draft("sta", draft.variant, {**draft.operands, "base": draft.operands["base"] + results.start},
                        (Access("results", results.start, results.stop), written))


def linear(plan: LayerPlan, tile: Tile, block: WeightBlock, place: tuple[int, int], row_step: int,
           start: int, channels: int) -> Iterator[Draft]:
    """Yield the stores of a step to the linear layout at ``start``, whose pixels have ``channels``.

    ``place`` is stored row and column of the first pixel.
    """
    width = len(tile.columns.out)
    if block.channels == channels:
        size, count = chunks_of(width * channels, 1, plan.layer)
        gap = size if count > 1 else 0
    else:
        size, count, gap = block.channels, width, channels
    yield Draft("sta", "set_row", {"chunk_bytes": size, "chunks": count, "chunk_step": size})
    yield Draft("sta", "set_target", {"target_chunk_step": gap, "target_row_step": row_step})
    target = start + place[0] * row_step + place[1] * channels + block.first_channel
    yield Draft("sta", "linear", {"target": target, "base": 0, "rows": len(tile.rows.out)})


def blocked(plan: LayerPlan, tile: Tile, block: WeightBlock, place: tuple[int, int], row_step: int,
            start: int, channels: int) -> Iterator[Draft]:
    """Yield the same to the blocked layout.

    A pixel's bank goes by its row, its column and its channel. A first channel that is no multiple of 16 but of 4 is
    therefore as good as so many rows further down, if the command stores a single row.
    """
    width = len(tile.columns.out)
    yield Draft("sta", "set_row", {"chunk_bytes": block.channels, "chunks": width, "chunk_step": block.channels})
    yield Draft("sta", "set_target", {"target_chunk_step": TILE_BYTES * channels, "target_row_step": row_step})
    left = start + place[1] // BLOCK_SIDE * TILE_BYTES * channels
    rest = block.first_channel % TILE_BYTES
    rows = len(tile.rows.out)
    for done in range(rows if rest else 1):
        row = place[0] + done
        yield Draft("sta", "blocked", {
            "target": left + row // BLOCK_SIDE * row_step + TILE_BYTES * rest, "x": place[1] % BLOCK_SIDE,
            "channel": block.first_channel // TILE_BYTES, "y": (row + rest // BLOCK_SIDE) % BLOCK_SIDE,
            "base": done * width * block.channels, "rows": 1 if rest else rows})
