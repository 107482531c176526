"""Plan layers that are computed together band by band: rows of each band, tiles and blocks, rings, and the price.

The rows of a band are found from the last layers backwards: for a band, each layer computes the rows that its readers
need for that band and that are not there yet (compiler/plan/band_graph.py).
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.algorithms import forms
from tilewright.compiler.plan.alike_layers import geometry
from tilewright.compiler.plan.band_graph import BandGraph, rows_of_bands
from tilewright.compiler.plan.cost import (
    HANDOVER,
    TURNAROUND,
    Cost,
    array_cycles,
    input_cycles,
    store_cycles,
    weight_transfers,
)
from tilewright.compiler.plan.footprint import (
    WeightBlock,
    blocked_row_step,
    input_bytes,
    linear_row_step,
    resident_parameters,
    resident_words,
    ring_space,
    usable_words,
)
from tilewright.compiler.plan.planner import LayerPlan, aligned, cut_blocks, problems, whole_kernels
from tilewright.compiler.plan.problem import OnChip, Problem, Tiling, distinct, fitting
from tilewright.compiler.plan.row_ring import BandRows, InBands, RowRing, closed_ring_of, ring_of
from tilewright.compiler.plan.tiles import BLOCK_SIDE, Tile, axes, whole_tile
from tilewright.isa.machine import Machine

__all__ = ["BandPlanner", "Group"]

_Kind = tuple[Hashable, LayerLayouts]
"""Key that layers with the same plans share."""

_BLOCKS, _PARTS = 2, 4
"""Cuts into blocks, the largest ones, and numbers of tiles of a band that are tried."""

_BESIDE = 0.02
"""Part of its time that a group is taken to need beside what is counted: as the fast engine has it for MobileNetV2."""

_BANK_ROW = 4
"""Banks of a row of a 4x4 block: in the blocked layout, results start at a channel that is a multiple of it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Plans of layers that are computed band by band, and the cycles and bytes that they are predicted to take."""

    plans: tuple[LayerPlan, ...]
    cycles: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Form:
    """How one layer can be computed in bands: its problem, tiles, tiles of each band, blocks, and cycles."""

    problem: Problem
    tiles: tuple[Tile, ...]
    counts: tuple[int, ...]
    blocks: tuple[WeightBlock, ...]
    cycles: int

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.tiles) * len(self.blocks)

    def tiling(self, chip: OnChip) -> Tiling:
        """Return how the layer is cut, with its weights loaded once."""
        return Tiling(copies=distinct(self.tiles), blocks=self.blocks, weights_outer=True, splits_input=False,
                      chip=chip)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A group without the values of its layers: forms, rings of all layers but the first, and what it is to take.

    ``shares`` are the cycles and bytes of each layer.
    """

    forms: tuple[_Form, ...]
    rings: tuple[RowRing, ...]
    shares: tuple[tuple[int, int], ...]

    @property
    def price(self) -> tuple[int, int]:
        """Cycles and bytes."""
        return sum(cycles for cycles, _ in self.shares), sum(moved for _, moved in self.shares)


@dataclass(slots=True)
class BandPlanner:
    """Plans groups of layers, and remembers the plans of alike ones."""

    machine: Machine
    options: Options
    known: dict[Hashable, tuple[_Form, ...]] = field(default_factory=dict)
    cuts: dict[_Kind, list[tuple[Problem, list[tuple[WeightBlock, ...]]]]] = field(default_factory=dict)
    shapes: dict[Hashable, _Shape | None] = field(default_factory=dict)

    def plan(self, plans: Sequence[LayerPlan], graph: BandGraph, height: int, stored: Sequence[bool]) -> Group | None:
        """Return the plan of the layers of ``plans`` in bands of ``height`` rows; None if there is none.

        ``graph`` tells who reads what, ``stored`` for each layer whether its results must be in memory. None either if
        the array alone is busy for longer than the layers take apart.
        """
        kinds = [(geometry(plan.layer), plan.layouts) for plan in plans]
        key = (*kinds, graph, height, *stored)
        if key not in self.shapes:
            found = self._shapes(plans, kinds, graph, height, stored)
            self.shapes[key] = min(found, key=lambda shape: shape.price, default=None)
        shape = self.shapes[key]
        return None if shape is None else self._group(plans, graph, shape, stored)

    def _shapes(self, plans: Sequence[LayerPlan], kinds: Sequence[_Kind], graph: BandGraph, height: int,
                stored: Sequence[bool]) -> Iterator[_Shape]:
        """Yield every way to compute the group that fits and may be worth it."""
        least = [min((resident_words([(cuts[0], problem.nest)], self.machine) for problem, cuts in
                      self._cuts(plan.layer, kind)), default=self.machine.weight_bytes)
                 for plan, kind in zip(plans, kinds, strict=True)]
        if sum(least) > usable_words(self.machine) + len(least) * resident_words([], self.machine):
            return
        rows = rows_of_bands([plan.layer for plan in plans], graph, height)
        choices = [self._forms(plan.layer, kind, each) for plan, kind, each in zip(plans, kinds, rows, strict=True)]
        apart = sum(plan.cost.cycles for plan in plans)
        for chosen in product(*choices):
            if sum(form.cycles for form in chosen) <= apart:
                shape = self._shape(chosen, graph, rows, stored)
                if shape is not None:
                    yield shape

    def _cuts(self, layer: Layer, kind: _Kind) -> list[tuple[Problem, list[tuple[WeightBlock, ...]]]]:
        """Return the problems of ``layer`` that bands are for, and cuts into blocks, those of the fewest first."""
        if kind not in self.cuts:
            apart = layer.kind != "conv" or layer.factor is not None or layer.unit is not None or layer.images > 1
            found = [] if apart else [
                (problem, sorted((cut_blocks(problem, groups, 1) for groups in whole_kernels(problem)), key=len))
                for problem in problems(layer, kind[1], self.machine, self.options)
                # A larger kernel would wait for rows that only its zeros meet.
                if problem.layer.kernel == layer.kernel]
            self.cuts[kind] = [(problem, cuts) for problem, cuts in found if cuts]
        return self.cuts[kind]

    def _forms(self, layer: Layer, kind: _Kind, rows: tuple[range, ...]) -> tuple[_Form, ...]:
        """Return the ways to compute ``layer`` in bands of ``rows``, one for each loop nest."""
        if (*kind, rows) not in self.known:
            found = (_form(problem, cuts, rows) for problem, cuts in self._cuts(layer, kind))
            self.known[*kind, rows] = tuple(form for form in found if form is not None)
        return self.known[*kind, rows]

    def _shape(self, chosen: tuple[_Form, ...], graph: BandGraph, rows: tuple[tuple[range, ...], ...],
               stored: Sequence[bool]) -> _Shape | None:
        """Return the group of the forms ``chosen``, or None if it does not fit."""
        machine, parts = self.machine, [(form.blocks, form.problem.nest) for form in chosen]
        if (resident_words(parts, machine) > usable_words(machine)
                or resident_parameters(parts, machine) > machine.parameter_channels):
            return None
        if not all(map(_reads_whole_rows, chosen[1:])):
            return None
        for writer, reader, feed in graph.edges():
            if chosen[reader].problem.nest.winograd and (
                    feed.channel % _BANK_ROW or not aligned(chosen[writer].blocks, _BANK_ROW)):
                return None
        rings = self._rings(chosen, graph, rows, closed=False)
        if rings is None and any(form.problem.nest.winograd for form in chosen[1:]):
            rings = self._rings(chosen, graph, rows, closed=True)
        return None if rings is None else _Shape(chosen, rings, _shares(chosen, graph, rings, stored, machine))

    def _rings(self, chosen: tuple[_Form, ...], graph: BandGraph, rows: tuple[tuple[range, ...], ...], *,
               closed: bool) -> tuple[RowRing, ...] | None:
        """Return the rings of all layers but the first, ``closed`` ones of blocks; None if they do not fit."""
        head, rings = chosen[0], list[RowRing]()
        held = (2 if len(head.tiles) > 1 else 1) * self._space(max(
            input_bytes(tile, head.problem.layer, head.problem.nest) for tile in head.tiles))
        for place, form in enumerate(chosen[1:], 1):
            if held > self.machine.activation_bytes:
                return None
            ring = _ring(chosen, graph, rows, place, closed=closed and form.problem.nest.winograd)
            if ring is None:
                return None
            rings.append(ring)
            held += self._space(_ring_bytes(form, ring))
        return tuple(rings) if held <= self.machine.activation_bytes else None

    def _space(self, size: int) -> int:
        return ring_space(size, self.machine.activation_bytes, self.machine.input_unit)

    def _group(self, plans: Sequence[LayerPlan], graph: BandGraph, shape: _Shape, stored: Sequence[bool]) -> Group:
        """Return the group of the layers of ``plans``."""
        found = []
        for place, (plan, form, (cycles, moved)) in enumerate(zip(plans, shape.forms, shape.shares, strict=True)):
            bands = InBands(place, len(plans), graph.depths[place], form.counts,
                            shape.rings[place - 1] if place else None)
            work = next(work for work, _ in forms(plan.layer, self.options)
                        if geometry(work) == geometry(form.problem.layer))
            found.append(LayerPlan(layer=plan.layer, work=work, nest=form.problem.nest, tiles=form.tiles,
                                   blocks=form.blocks, weights_outer=False, splits_input=False,
                                   cost=Cost(cycles, moved, form.steps), layouts=plan.layouts,
                                   chip=OnChip(place > 0, graph.feeds[place], stored[place]), bands=bands))
        return Group(tuple(found), *shape.price)


def _shares(chosen: Sequence[_Form], graph: BandGraph, rings: Sequence[RowRing], stored: Sequence[bool],
            machine: Machine) -> tuple[tuple[int, int], ...]:
    """Return the cycles and bytes that each layer of a group is predicted to take.

    Array, bus and store work side by side, so a group takes the longest of them, the waits of every band, and what
    cannot overlap. The cycles are shared out by what the array does.
    """
    busy = [form.cycles for form in chosen]
    traffic: list[int] = []
    copied: list[int] = []
    stores = 0
    for place, form in enumerate(chosen):
        problem, tiling = form.problem, form.tiling(OnChip(place > 0, graph.feeds[place], stored[place]))
        out, copies = store_cycles(problem, tiling)
        if readers := graph.readers(place):
            twice = sum(rings[reader - 1].twice for reader in readers) / len(readers)
            copies = int(copies * (1 + twice))
        load = 0 if place else sum(number * input_cycles(problem, tile) for tile, number in tiling.copies.items())
        traffic.append(out + weight_transfers(problem, tiling).all + load)
        copied.append(copies)
        stores += out + copies
    bands = len(chosen[0].counts)
    waits = sum(max(_wait(chosen, graph, copied, writer, place) for writer in graph.writers(place))
                for place in range(1, len(chosen)))
    first = input_cycles(chosen[0].problem, chosen[0].tiles[0])
    cycles = int(max(sum(busy) + bands * waits, sum(traffic), stores) * (1 + _BESIDE)) + first + TURNAROUND
    return tuple((cycles * each // sum(busy), moved * machine.bus_bytes)
                 for each, moved in zip(busy, traffic, strict=True))


def _wait(chosen: Sequence[_Form], graph: BandGraph, copied: Sequence[int], writer: int, reader: int) -> int:
    """Return the cycles that layer ``reader`` waits in each band for the last rows of layer ``writer``.

    Layers between the two compute meanwhile. A layer of several tiles begins with rows that were written earlier.
    """
    bands = len(chosen[0].counts)
    depths = graph.depths
    before = [place for place, depth in enumerate(depths) if depth == depths[writer] and place <= writer]
    after = [place for place, depth in enumerate(depths) if depth == depths[reader] and place >= reader]
    between = sum(form.cycles for place, form in enumerate(chosen) if place not in (*before, *after)) // bands
    last = 0 if min(chosen[reader].counts) > 1 else copied[writer] // chosen[writer].steps
    return max(0, HANDOVER + last - between)


def _form(problem: Problem, cuts: Sequence[tuple[WeightBlock, ...]], rows: tuple[range, ...]) -> _Form | None:
    """Return the best way to compute a layer in bands of ``rows`` by one loop nest; None if there is none.

    The fewer results a step has, the sooner the next layer finds the last of them.
    """
    layer, nest, machine = problem.layer, problem.nest, problem.machine
    height, width = axes(layer)
    columns, most = width.cut(0, width.out), max(map(len, rows))
    best: tuple[float, _Form] | None = None
    for parts in range(1, min(most, _PARTS) + 1):
        size = -(-most // parts)
        size += size % 2 if nest.winograd and size < most else 0
        room = machine.result_bytes // (2 * size * len(columns.out) * layer.value_bytes)
        within = [blocks for blocks in cuts[:_BLOCKS] if blocks[0].channels <= room]
        if not within:
            continue
        cut = [[Tile(height.cut(first, min(first + size, band.stop)), columns)
                for first in range(band.start, band.stop, size)] for band in rows]
        tiles = tuple(tile for band in cut for tile in band)
        if nest.winograd and any(tile.rows.conv.start % 2 for tile in tiles):
            continue
        copies = distinct(tiles)
        for tile in copies:
            within = fitting(problem, tile, within)
        for blocks in within:
            cycles = array_cycles(problem, copies, blocks)
            last = size * len(columns.out) * blocks[0].channels / machine.written_bytes
            worth = cycles + len(rows) * last / 4
            if best is None or worth < best[0]:
                best = worth, _Form(problem, tiles, tuple(map(len, cut)), blocks, cycles)
    return None if best is None else best[1]


def _reads_whole_rows(form: _Form) -> bool:
    """Tell whether a layer reads every column and adjacent rows of its input, which can then lie as it was stored."""
    layer = form.problem.layer
    height, width = axes(layer)
    return not height.skips and not width.skips and form.tiles[0].columns.image == range(layer.in_shape[2])


def _ring(chosen: Sequence[_Form], graph: BandGraph, rows: tuple[tuple[range, ...], ...], place: int, *,
          closed: bool) -> RowRing | None:
    """Return the ring of the input of layer ``place`` of a group; None if there is no ``closed`` one."""
    form = chosen[place]
    layer, nest = form.problem.layer, form.problem.nest
    whole = whole_tile(layer, form.tiles[0].columns)
    stride = axes(layer)[0].stored_stride
    windows, first = [], 0
    for count in form.counts:
        tiles, first = form.tiles[first:first + count], first + count
        windows.append(tuple(
            range(tile.rows.conv.start * stride, tile.rows.conv.start * stride + (
                2 * -(-len(tile.rows.conv) // 2) + 2 if nest.winograd else tile.rows.stored)) for tile in tiles))
    before, stored = whole.rows.before, whole.rows.stored
    written = tuple(range(min(band.start for band in bands) + before, max(band.stop for band in bands) + before)
                    for bands in zip(*(rows[writer] for writer in graph.writers(place)), strict=True))
    padding = range(stored - whole.rows.after, stored)
    heads = tuple(count > 0 for count in chosen[0].counts)
    found = BandRows(tuple(windows), written, padding, heads, graph.depths[place])
    return closed_ring_of(found, BLOCK_SIDE) if closed else ring_of(found, BLOCK_SIDE if nest.winograd else 1)


def _ring_bytes(form: _Form, ring: RowRing) -> int:
    """Return the bytes of the activation buffer that a ring takes."""
    layer, nest, tile = form.problem.layer, form.problem.nest, form.tiles[0]
    if nest.winograd:
        return (ring.units + ring.margin) * blocked_row_step(tile, layer.in_shape[0]) + nest.overread
    one = input_bytes(tile, layer, nest)
    return one + (ring.height - tile.rows.stored) * linear_row_step(tile, layer, nest)
