"""Choose algorithm, tile and loop order of each layer by cost alone; reject layers that do not fit.

A layer is cut three ways: into strips of output rows (and blocks of columns only where a strip of the least rows does
not fit), into blocks of output channels whose weights are loaded together, and, for a kernel too large for the weight
memory, into parts of the kernel whose sums are held. Two loop orders matter: for each block all tiles (weights pass the
bus once), or for each tile all blocks (inputs pass once).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.plan.algorithms import (
    Algorithm,
    LoopNest,
    Part,
    algorithms,
    forms,
    loop_nest,
    loop_nests,
    rests_of_weights,
)
from tilewright.compiler.plan.cost import TURNAROUND, Cost, Room, array_cycles, price, weight_transfers
from tilewright.compiler.plan.footprint import (
    Stretch,
    WeightBlock,
    WeightBlocks,
    can_stay,
    input_bytes,
    result_bytes,
    tiles_held,
    usable_words,
    weight_words,
)
from tilewright.compiler.plan.problem import APART, OnChip, Problem, Tiling, distinct, fitting, turns_round
from tilewright.compiler.plan.row_ring import InBands
from tilewright.compiler.plan.tiles import LayerAxis, Tile, axes
from tilewright.isa.limits import (
    MAX_BLOCK_CHANNELS,
    MAX_PADDING,
    MAX_WINDOW,
    MAX_WINDOW_STRIDE,
)
from tilewright.isa.machine import PARAMETER_BYTES, TILE_BYTES, Machine

__all__ = [
    "DoesNotFitError", "LayerPlan", "aligned", "busy_cycles", "candidates", "cut_blocks", "cycles_in_a_row",
    "holds_all", "plan_chained", "plan_layer", "priced", "problems", "sizes", "whole_kernels",
]

_FIRST_ROWS = 2
"""Output rows of a first tile that is made smaller than the others."""


class DoesNotFitError(CompileError):
    """No tile of a layer fits the machine's buffers or the operands of its commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan:
    """The plan of one layer; ``work`` is the computed form: the layer itself, or an equivalent one.

    ``chip`` says which of its data stay on chip from one layer to the next.
    """

    layer: Layer
    work: Layer
    nest: LoopNest
    tiles: tuple[Tile, ...]
    blocks: tuple[WeightBlock, ...]
    weights_outer: bool
    splits_input: bool
    cost: Cost
    layouts: LayerLayouts
    stays: bool = False
    """The input stays in the activation buffer whole: compiler/plan/tiles.py."""
    holds: int = 0
    """Tiles whose inputs are loaded under the first block of weights, and stay for the others."""
    chip: OnChip = APART
    bands: InBands | None = None
    """The layer is one of a group that is computed band by band."""
    channels_at_once: int = 0
    """The layer before hands over blocks of so many channels, one after the other; 0: all channels together."""

    @property
    def largest(self) -> Tile:
        """The first tile of the most rows."""
        return max(self.tiles, key=lambda tile: len(tile.rows.out))

    def problem(self, machine: Machine) -> Problem:
        """Return the problem that the plan solves."""
        return Problem(self.work, self.layouts, self.nest, machine)

    def tiling(self) -> Tiling:
        """Return how the layer is cut, for its price."""
        return Tiling(copies=distinct(self.tiles), blocks=self.blocks, weights_outer=self.weights_outer,
                      splits_input=self.splits_input, stays=self.stays, holds=self.holds, chip=self.chip)

    def summary(self) -> str:
        """Return the plan in a line."""
        layer, tile, block = self.layer, self.largest, self.blocks[0]
        how = {Algorithm.WINOGRAD: "Winograd F(2x2,3x3)" + ("" if self.nest.reuse else " without column reuse"),
               Algorithm.DOT_PRODUCTS: "16-byte dot products" + (" of paired rows" if self.nest.paired else ""),
               Algorithm.POOL: "window sums"}
        size = f"{len(tile.rows.out)} rows"
        if len(tile.columns.out) < layer.out_shape[2]:
            size += f" x {len(tile.columns.out)} columns"
        skips = "" if self.work.kernel == layer.kernel else " with zeros around the kernel"
        if self.work.strides != layer.strides:
            skips += ", at stride 1, dropping the pixels that the stride skips"
        part = f" in parts of {len(block.runs)} runs" if len(block.runs) < self.nest.runs else ""
        part += f" in parts of {len(block.rows)}x{len(block.columns)} taps" if self.nest.cuts != (1, 1) else ""
        order = "for each block all tiles" if self.weights_outer else "for each tile all blocks"
        order += ", the input loaded once" if self.stays else ""
        order += f", the inputs of {self.holds} tiles loaded once" if self.holds else ""
        if self.bands is not None:
            order += (f", in {len(self.bands.tiles)} bands of rows, as layer {self.bands.place + 1} of "
                      f"{self.bands.layers}")
        order += f", {self.channels_at_once} channels after the other" if self.channels_at_once else ""
        return (f"{how[self.nest.algorithm]}{skips}; {len(self.tiles)} tiles of {size}, {len(self.blocks)} weight "
                f"blocks of {block.channels} channels{part}; {order}{_chip_text(self.chip)}")


def _chip_text(chip: OnChip) -> str:
    """Say what stays on chip, as the end of a sentence."""
    said = "; its input is on chip" if chip.input else ""
    said += "; its output stays on chip" if chip.output else ""
    return said + (" and is stored too" if chip.output and chip.stored else "")


def plan_layer(layer: Layer, machine: Machine, options: Options = BEST,
               layouts: LayerLayouts | None = None) -> LayerPlan:
    """Return the cheapest plan of ``layer`` that ``options`` allow.

    ``layouts`` tell how its tensors lie in main memory; without them, none has gaps.

    Raises
    ------
    DoesNotFitError
        If there is none; the message says what the smallest tile needs.
    """
    _check_operands(layer)
    options = options.on(machine)
    layouts = layouts or LayerLayouts.gap_free(layer)
    best, least = None, list[int]()
    for problem in problems(layer, layouts, machine, options):
        for plan in candidates(problem, least):
            if best is None or plan.cost < best.cost:
                best = plan
                least.append(plan.cost.cycles)
    if best is None:
        raise DoesNotFitError(_shortage(layer, machine, options))
    return replace(best, layer=layer)


def problems(layer: Layer, layouts: LayerLayouts, machine: Machine, options: Options) -> Iterator[Problem]:
    """Yield every form of ``layer`` with every loop nest that is worth comparing."""
    for work, algorithm in forms(layer, options):
        for nest in loop_nests(work, algorithm, machine):
            # What measures conv23 without reuse leaves its other variants out too.
            nest = replace(nest if options.reuse == machine.reuses_columns else nest.for_all_lanes, reuse=options.reuse)
            yield Problem(work, layouts, _cut_to_memory(nest, machine), machine)


def _cut_to_memory(nest: LoopNest, machine: Machine) -> LoopNest:
    """Return ``nest`` with the loops over a kernel cut so that the weight memory holds two parts of it, if it must be.

    Of a kernel that is one run, the runs are cut instead.
    """
    words, usable = weight_words(1, nest.steps, nest, machine), usable_words(machine)
    if words <= usable or nest.winograd or nest.one_run or nest.cuts != (1, 1):
        return nest
    rows = min(nest.kernel_y, -(-2 * words // usable))
    columns = min(nest.kernel_x, -(-2 * words // (usable * rows)))
    return replace(nest, cuts=(rows, columns))


def _largest_part(nest: LoopNest) -> int:
    """Return the multiplier issues of the largest part of a kernel."""
    return max(len(rows) * len(columns) for rows, columns in nest.rectangles) * nest.runs


def plan_chained(layer: Layer, machine: Machine, options: Options, layouts: LayerLayouts, chip: OnChip,
                 unit: int) -> LayerPlan | None:
    """Return the cheapest plan of a layer whose whole input is on chip; None if there is no room for it.

    Its blocks are of a multiple of ``unit`` channels, and its tiles are strips of rows.
    """
    best, least = None, list[int]()
    for problem in problems(layer, layouts, machine, options.on(machine)):
        for plan in _chained_candidates(problem, chip, unit, least):
            if not plan.stays and (best is None or plan.cost < best.cost):
                best = plan
                least.append(plan.cost.cycles)
    return None if best is None else replace(best, layer=layer)


def _chained_candidates(problem: Problem, chip: OnChip, unit: int, most: Sequence[int]) -> Iterator[LayerPlan]:
    """Yield the plans that find the whole input on chip, as `candidates` does."""
    layer, nest, machine = problem.layer, problem.nest, problem.machine
    height, width = axes(layer)
    whole = Tile(height.cut(0, height.out), width.cut(0, width.out))
    if not holds_all(whole, layer) or input_bytes(whole, layer, nest) > machine.activation_bytes:
        return
    cuts = [blocks for groups, parts in _block_sizes(problem)
            if aligned(blocks := cut_blocks(problem, groups, parts), unit)]
    strips = [tuple(Tile(cut, whole.columns) for cut in height.cuts(rows)) for rows in sizes(height, nest)]
    pixelwise = layer.kernel == layer.strides == (1, 1) and not any(layer.pads)
    if layer.rows is not None and height.out == 1 and pixelwise and not nest.winograd:
        # Of a single row of pixels some are rewritten as rows while the array goes on with the next.
        strips += [tuple(Tile(whole.rows, cut) for cut in width.cuts(columns)) for columns in sizes(width, nest)[1:]]
    for tiles in strips:
        # Patches start at even rows.
        if nest.algorithm is Algorithm.DOT_PRODUCTS or all(tile.rows.conv.start % 2 == 0 for tile in tiles):
            yield from (plan for plan in _orders(problem, tiles, fitting(problem, tiles[0], cuts), chip, most)
                        if plan is not None)


def holds_all(whole: Tile, layer: Layer) -> bool:
    """Tell whether ``whole``, the tile of all of a layer's output, holds every pixel of its input."""
    return (whole.rows.image, whole.columns.image) == (range(layer.in_shape[1]), range(layer.in_shape[2]))


def aligned(blocks: tuple[WeightBlock, ...], unit: int) -> bool:
    """Tell whether every block starts with a channel that is a multiple of ``unit``."""
    return all(block.first_channel % unit == 0 for block in blocks)


def priced(plan: LayerPlan, machine: Machine, chip: OnChip) -> LayerPlan:
    """Return ``plan`` with ``chip`` and the resulting cost."""
    chained = replace(plan, chip=chip)
    return replace(chained, cost=price(plan.problem(machine), chained.tiling()))


def busy_cycles(plan: LayerPlan, machine: Machine) -> int:
    """Return the cycles in which the array or the bus is busy with a layer, whichever is longer."""
    array = array_cycles(plan.problem(machine), distinct(plan.tiles), plan.blocks)
    return max(array, plan.cost.bytes // machine.bus_bytes)


def cycles_in_a_row(plans: Sequence[LayerPlan], machine: Machine) -> int:
    """Return about how many cycles layers take, each loaded while the one before it is computed.

    Weights that fill more than half of their memory are loaded before instead.
    """
    return sum(busy_cycles(plan, machine) + _weights_before(plan, machine) + TURNAROUND for plan in plans)


def _weights_before(plan: LayerPlan, machine: Machine) -> int:
    """Return the cycles of loading a layer's first weights if there is no room beside those of the layer before."""
    problem, tiling = plan.problem(machine), plan.tiling()
    room = Room.of(problem, tiling.largest_tile, tiling.blocks[0])
    return 0 if room.weights > 1 else weight_transfers(problem, tiling).first


def _check_operands(layer: Layer) -> None:
    """Raise :exc:`DoesNotFitError` for a layer that no tiling brings within the commands' operands."""
    pool = layer.pool
    for what, value, limit in (
        ("padding of columns", max(layer.pads[1::2]), MAX_PADDING),
        ("pooling window", max(pool.kernel) if pool else 1, MAX_WINDOW),
        ("pooling stride", max(pool.strides) if pool else 1, MAX_WINDOW_STRIDE),
    ):
        if value > limit:
            raise DoesNotFitError(f"Layer {layer.name!r}: the {what} must be at most {limit}, not {value}")
    if layer.residual and pool:
        raise DoesNotFitError(f"Layer {layer.name!r} must not have both a residual and a max pooling")


def candidates(problem: Problem, most: Sequence[int] = ()) -> Iterator[LayerPlan]:
    """Yield every plan worth comparing that fits: the widest tiles that fit, all heights and block sizes.

    Those may be left out that take more cycles than the last of ``most``, to which cycles may be added meanwhile.
    """
    height, width = axes(problem.layer)
    cuts = [cut_blocks(problem, groups, parts) for groups, parts in _block_sizes(problem)]
    for columns in sizes(width, problem.nest):
        found = False
        for rows in sizes(height, problem.nest):
            largest = Tile(height.cut(0, rows), width.cut(0, columns))
            within = fitting(problem, largest, cuts)
            if within:
                tiles = tuple(Tile(y, x) for y in height.cuts(rows) for x in width.cuts(columns))
                for plan in _orders(problem, tiles, within, most=most):
                    found = True
                    if plan is not None:
                        yield plan
                # Where the input stays, the array can begin once a little of it is there.
                ramped = tuple(Tile(y, tiles[0].columns) for y in height.cuts(rows, _FIRST_ROWS))
                if _FIRST_ROWS < rows < height.out and can_stay(ramped, problem.layer, problem.nest, problem.machine):
                    yield from (plan for plan in _orders(problem, ramped, within, most=most) if plan and plan.stays)
        if found and problem.layer.rows is None:    # others are bound by the array, which wide tiles suit
            return


def sizes(axis: LayerAxis, nest: LoopNest) -> list[int]:
    """Return the lengths that cut the axis evenly, longest first; for conv23 of whole 2x2 tiles."""
    odd = nest.winograd and axis.window_stride % 2 == 1
    lengths = {-(-axis.out // n) for n in range(1, axis.out + 1)}
    return sorted({min(length + (length % 2 if odd else 0), axis.out) for length in lengths}, reverse=True)


def _block_sizes(problem: Problem) -> list[tuple[int, int]]:
    """Return (lane groups, parts of the kernel) of the blocks that fit the weight and parameter memories."""
    layer, nest, machine = problem.layer, problem.nest, problem.machine
    total = -(-layer.conv_shape[0] // machine.lanes)
    usable = usable_words(machine)
    each = 1 if nest.channel_parameters else machine.channel_parameters
    parameters = (machine.parameter_channels - nest.gains) // each
    if nest.across and parameters >= machine.lanes:
        parameters = MAX_BLOCK_CHANNELS     # all channels have those of one lane group
    most = min(total, min(parameters, MAX_BLOCK_CHANNELS) // machine.lanes)
    lengths = {-(-total // n) for n in range(1, total + 1)} | {most}
    if nest.section:
        lengths = {length for length in lengths | {nest.section} if nest.section % length == 0} | {1}
    if nest.winograd and nest.group_step:
        # The banks of a pixel go by its channel: a command's first must be one of bank 0.
        unit = TILE_BYTES // gcd(TILE_BYTES, nest.seen)
        lengths = {min(-(-length // unit) * unit, total) for length in lengths}
    if layer.factor is not None and layer.factor.parameters:
        # What a layer has written is loaded from where it lies: blocks begin with a bus word.
        unit = max(1, machine.bus_bytes // PARAMETER_BYTES // machine.lanes)
        lengths = {min(-(-length // unit) * unit, total) for length in lengths}
    if nest.cuts != (1, 1):
        # Sums are held of one tile in each lane group, or of all tiles of one lane group.
        lengths = {min(total, machine.tiles) if nest.across else 1}
    found = [(length, 1) for length in sorted(lengths)
             if 0 < length <= most and weight_words(length, _largest_part(nest), nest, machine) <= usable]
    # Large and small blocks alike are worth a look, but not all of hundreds.
    found = found[:3] + found[3:-6:max(1, len(found) // 8)] + found[max(3, len(found) - 6):]
    # Sums of a part are held where they are: all of a tile, for which a column of pixels can be cut anywhere.
    pixels = layer.conv_shape[1] * layer.conv_shape[2] // layer.images
    if nest.one_run and (pixels <= machine.tiles or layer.conv_shape[2] == 1 or not found) and not nest.group_step:
        least = -(-2 * weight_words(1, nest.steps, nest, machine) // usable)
        found += [(1, parts) for parts in (least, 2 * least, 4 * least) if 1 < parts <= nest.runs]
    return found


def whole_kernels(problem: Problem) -> list[int]:
    """Return the lane groups of the blocks that fit the weight and parameter memories, kernels whole."""
    return [groups for groups, parts in _block_sizes(problem) if parts == 1]


def cut_blocks(problem: Problem, groups: int, parts: int) -> tuple[WeightBlock, ...]:
    """Return the blocks of a layer in the order in which they are computed."""
    outputs, runs, lanes = problem.layer.conv_shape[0], problem.nest.runs, problem.machine.lanes
    total = -(-outputs // lanes)
    step = -(-runs // parts)
    cuts = [range(start, min(start + step, runs)) for start in range(0, runs, step)]
    pieces = [(cut, *rectangle) for rectangle in problem.nest.rectangles for cut in cuts]
    places = [(first, number) for first in range(0, total, groups) for number in range(len(pieces))]
    blocks = [WeightBlock(index, first, min(groups, total - first), first * lanes,
                          min(groups * lanes, outputs - first * lanes), *pieces[number], resumes=number > 0,
                          holds=number < len(pieces) - 1)
              for index, (first, number) in enumerate(places)]
    rests = rests_of_weights(problem.layer, problem.nest, problem.machine)
    return WeightBlocks(blocks if not rests else (
        replace(block, beyond=_stretches(block, problem.nest, rests)) for block in blocks))


def _stretches(block: WeightBlock, nest: LoopNest, rests: Mapping[int, tuple[Part, ...]]) -> tuple[Stretch, ...]:
    """Return the stretches of a block, with what of ``rests``, by lane group, it meets; none if that is nothing."""
    found: list[Stretch] = []
    for number in range(block.groups):
        group = block.first_group + number
        lead = group * nest.seen % TILE_BYTES if nest.winograd and nest.group_step else 0
        met = tuple(_behind(common, lead) for rest in rests.get(group, ()) if (common := _common(rest, block)))
        if found and not met and not found[-1].rests and not found[-1].lead:
            found[-1] = replace(found[-1], groups=found[-1].groups + 1)
        else:
            found.append(Stretch(number, 1, met, lead))
    return tuple(found) if any(each.rests for each in found) else ()


def _common(rest: Part, block: WeightBlock) -> Part | None:
    """Return what a block has of a part of the nest."""
    rows, columns, runs = (range(max(a.start, b.start), min(a.stop, b.stop))
                           for a, b in zip(rest, (block.rows, block.columns, block.runs), strict=True))
    return (rows, columns, runs) if rows and columns and runs else None


def _behind(rest: Part, lead: int) -> Part:
    """Return a part of conv23 whose channels are counted from ``lead`` before."""
    rows, columns, runs = rest
    return rest if not lead else (
        rows, columns, range((lead + runs.start) // TILE_BYTES * TILE_BYTES, lead + runs.stop))


def _orders(problem: Problem, tiles: tuple[Tile, ...], cuts: list[tuple[WeightBlock, ...]],
           chip: OnChip = APART, most: Sequence[int] = ()) -> Iterator[LayerPlan | None]:
    """Yield the plans with ``tiles``, one per loop order and cut into blocks; none if a tile does not fit.

    None stands for those of which the array alone takes more cycles than the last of ``most``.
    """
    layer, nest, machine = problem.layer, problem.nest, problem.machine
    copies = distinct(tiles)
    for tile in copies:
        cuts = fitting(problem, tile, cuts)
    for blocks in cuts:
        array = array_cycles(problem, copies, blocks)
        if most and array > most[-1]:
            yield None
            continue
        splits_input = input_bytes(tiles[0], layer, nest) > machine.activation_bytes
        parts = blocks[0].holds
        for weights_outer in (False, True) if len(tiles) > 1 and len(blocks) > 1 and not parts else (False,):
            tiling = Tiling(copies=copies, blocks=blocks, weights_outer=weights_outer, splits_input=splits_input,
                            chip=chip)
            cost = price(problem, tiling, array)
            plan = LayerPlan(layer=layer, work=layer, nest=nest, tiles=tiles, blocks=blocks,
                             weights_outer=weights_outer, splits_input=splits_input, cost=cost,
                             layouts=problem.layouts, chip=chip)
            yield plan
            if weights_outer and not splits_input and turns_round(layer) \
                    and (held := tiles_held(tiles, layer, nest, machine)):
                yield replace(plan, cost=price(problem, replace(tiling, holds=held), array), holds=held)
            # That takes the buffer from the next layer, and helps only where the bus is the slower one. With the
            # blocks outside, all of the input would come during the first block.
            if (not weights_outer and can_stay(tiles, layer, nest, machine)
                    and array * machine.bus_bytes < cost.bytes):
                staying = Tiling(copies=copies, blocks=blocks, weights_outer=False, splits_input=False, stays=True)
                yield replace(plan, cost=price(problem, staying, array), stays=True)


def _shortage(layer: Layer, machine: Machine, options: Options = BEST) -> str:
    """Return a sentence that names what the smallest tile needs and what there is."""
    height, width = axes(layer)
    tile = Tile(height.cut(0, 1), width.cut(0, 1))
    needs = []
    for algorithm in algorithms(layer, options):
        how = _cut_to_memory(loop_nest(layer, algorithm, machine), machine)
        words = weight_words(1, _largest_part(how), how, machine)
        needs.append(f"as {algorithm} {input_bytes(tile, layer, how)} bytes of activations, "
                     f"{words * TILE_BYTES * machine.clusters} of weights and "
                     f"{result_bytes(tile, layer, min(machine.lanes, layer.conv_shape[0]))} of results")
    return (f"The smallest tile of layer {layer.name!r} needs {'; or '.join(needs)}, and machine {machine.name} has "
            f"{machine.activation_bytes}, {usable_words(machine) * TILE_BYTES * machine.clusters} and "
            f"{machine.result_bytes}: take a larger machine")
