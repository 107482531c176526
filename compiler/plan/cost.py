"""The cost of a plan: cycles of the array, of post-processing and of the bus, by the rates of docs/datapath.md.

The units run side by side, so a layer takes the longest of them, plus what cannot overlap: the first load and
the last store. Where a buffer has no room for two tiles, loads and computation take turns.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.plan.algorithms import LoopNest
from tilewright.compiler.plan.footprint import (
    MOST_DECODED,
    WeightBlock,
    block_sizes,
    block_words,
    input_bytes,
    parameter_channels,
    result_bytes,
    slots_of,
    table_bytes,
    usable_words,
)
from tilewright.compiler.plan.problem import Problem, Tiling, turns_round
from tilewright.compiler.plan.tiles import Tile, block_rows, strip, whole_tile
from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine
from tilewright.isa.rows.row_norm import RowNorm

__all__ = [
    "HANDOVER", "TURNAROUND", "Cost", "Room", "Transfers", "array_cycles", "compute_cycles", "input_cycles",
    "load_transfers", "mac_cycles", "output_cycles", "post_cycles", "price", "row_cycles",
    "store_cycles", "weight_transfers",
]

_STEP_OVERHEAD = 8
"""Cycles the array loses per command. A command that need not wait follows without a gap, so this is what waits cost.

Chosen by trial on the fast engine, of 0, 4, 6, 8, 12, 20 and 30: for LeNet-5 (base, large), VGG16 and ResNet18 (both
sizes), and ResNet50 at 64x64 (base, large), 8 beats 30 everywhere, by 3 % on the smallest and 0.01 % on the largest.
"""

_EARLY_OVERHEAD = 14
"""The same where no load of weights hides what a command costs the core and post-processing: chosen by trial on the
cycle model, of 8, 11, 14 and 20, for a GRU and an LSTM of 64 units on base."""

_ROW_CYCLES, _NORM_CYCLES, _ROWS_OVERHEAD = 25, 40, 80
"""Of a row of few elements, and of the first and last row of a step, on `base`; lanes change them by a cycle or two."""

_SUMS_AHEAD = 16
"""Tiles of a lane group by which the array is ahead of post-processing at most: ``rtl.array.sequencer``."""

_RUN_OVERHEAD = 1
"""Bus cycles lost per run of bytes."""

_CODED_OVERHEAD = 35
"""Cycles by which a block of coded weights takes longer than its steps in the decoder: counted in the last layer of
mlperf-ad with weights of 4 bits, on `base` by the cycle model (26 blocks, 6,225 cycles for 5,300)."""

TURNAROUND = 60
"""Cycles from the last result of a layer to the first input of the next: two memory latencies and the pipelines."""

HANDOVER = 25
"""The same where the results stay on chip: the pipelines, and no memory between."""


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Cycles and traffic of a layer; the smaller is compared in this order."""

    cycles: int
    bytes: int
    steps: int


def mac_cycles(tiles: int, groups: int, steps: int, machine: Machine) -> int:
    """Return the slots of one mac command: the last tile group may be short, but not below a weight fetch."""
    full, rest = divmod(tiles, machine.tiles)
    slots = full * machine.tiles + (max(rest, machine.fetch_slots) if rest else 0)
    return slots * steps * groups


def post_cycles(tiles: int, channels: int, layer: Layer, nest: LoopNest, machine: Machine) -> int:
    """Return the cycles in which its sums of ``channels`` are requantised: whole 2x2 tiles, and vectors of lanes.

    The residual adder takes up to four lanes one by one, max pooling every window of a pixel by itself.
    """
    pixels = tiles * (4 if nest.winograd else 1)
    lanes = machine.lanes if nest.across else channels
    vectors = pixels * -(-lanes * layer.value_bytes // machine.post_lanes) * layer.words.outputs
    if layer.residual:
        return vectors * min(machine.post_lanes, 4)
    if layer.pool and nest.four_patches and layer.pool.kernel == (1, 1) and max(layer.pool.strides) == 2:
        return vectors // math.prod(layer.pool.strides)     # pixels that a stride drops take no cycle
    if layer.pool:
        covered, step = math.prod(layer.pool.kernel), math.prod(layer.pool.strides)
        return max(vectors, vectors * covered // step)
    return vectors


def row_cycles(pixels: int, layer: Layer, machine: Machine) -> int:
    """Return the cycles in which the channels of ``pixels`` are rewritten as rows: two passes, a division meanwhile.

    The post-processing of the step's sums comes before. Source: ``rtl.post.row_unit``.
    """
    if layer.rows is None:
        return 0
    passes = 2 * -(-layer.out_shape[0] // machine.post_lanes)
    least = _NORM_CYCLES if isinstance(layer.rows, RowNorm) else _ROW_CYCLES
    return pixels * max(passes, least) + passes + _ROWS_OVERHEAD


def compute_cycles(problem: Problem, tile: Tile, block: WeightBlock) -> int:
    """Return the cycles of one step: the slower of array and post-processing.

    While rows are rewritten a product waits as soon as the sums of its next step have no room any more.
    """
    nest, machine = problem.nest, problem.machine
    tiles, groups = slots_of(len(tile.rows.conv), len(tile.columns.conv), block.channels, nest, machine)
    # The last products of second channels follow the command.
    behind = machine.tiles if nest.winograd and machine.pairs_channels and not nest.four_patches else 0
    rows = row_cycles(len(tile.rows.out) * len(tile.columns.out), problem.layer, machine)
    overhead = _EARLY_OVERHEAD if problem.layer.early_weights else _STEP_OVERHEAD
    steps = block.steps // (PATCHES if nest.four_patches else 1)
    array = mac_cycles(tiles, groups, steps * problem.layer.words.inputs, machine) + behind
    post = post_cycles(tiles, block.channels, problem.layer, nest, machine)
    if problem.layer.kind != "conv" or not rows:
        return overhead + max(array, post + rows)
    ahead = _SUMS_AHEAD * steps if len(tile.rows.out) * len(tile.columns.out) < _pixels(problem.layer) else 0
    return overhead + max(array, post) + max(0, rows - ahead)


def _pixels(layer: Layer) -> int:
    return math.prod(layer.out_shape[1:])


def array_cycles(problem: Problem, copies: Mapping[Tile, int], blocks: tuple[WeightBlock, ...]) -> int:
    """Return the cycles in which the array, or post-processing behind it, is busy with a layer.

    ``copies`` tells how many tiles there are of each shape.
    """
    alike = block_sizes(blocks).items()
    return sum(count * number * compute_cycles(problem, tile, block)
               for tile, count in copies.items() for block, number in alike)


# ---- the bus


def _bus_cycles(runs: int, run_bytes: int, machine: Machine) -> int:
    """Return the cycles in which ``runs`` runs of ``run_bytes`` cross the bus."""
    return runs * (-(-run_bytes // machine.bus_bytes) + _RUN_OVERHEAD) if run_bytes else 0


def input_cycles(problem: Problem, tile: Tile) -> int:
    """Return the cycles in which a tile's input is loaded; in the blocked layout a word never spans two pixels."""
    machine, planes = problem.machine, len(problem.layer.words.stored(problem.layer.input))
    rows, columns, channels = len(tile.rows.image), len(tile.columns.image), problem.layer.in_shape[0]
    if tile.columns.image.step > 1 or not problem.layouts.input.rows_whole:
        return planes * _bus_cycles(rows * columns, channels, machine)
    bus = _bus_cycles(rows, columns * channels, machine)
    return planes * max(bus, _written(rows, columns, channels, problem))


def _written(rows: int, columns: int, channels: int, problem: Problem) -> int:
    """Return the cycles in which a tile's input is written to the activation buffer; if blocked, pixel by pixel."""
    each = problem.machine.written_bytes
    return rows * columns * -(-channels // each) if problem.nest.winograd else rows * -(-columns * channels // each)


def output_cycles(problem: Problem, tile: Tile, channels: int, *, stored: bool = True) -> int:
    """Return the cycles in which a step's results are stored to all their places in memory, and its residual loaded."""
    layouts, machine = problem.layouts, problem.machine
    rows, columns, channels = len(tile.rows.out), len(tile.columns.out), channels * problem.layer.value_bytes
    cycles = 0
    for layout in (*(layouts.outputs if stored else ()), layouts.residual):
        if layout is None:
            continue
        if layout.rows_whole and channels == layout.shape[0]:
            cycles += _bus_cycles(rows, columns * channels, machine)
        else:
            cycles += _bus_cycles(rows * columns, channels, machine)
    return cycles


def _copy_cycles(tile: Tile, channels: int, machine: Machine) -> int:
    """Return the cycles in which a step's results go to the activation buffer, pixel by pixel."""
    return len(tile.rows.out) * len(tile.columns.out) * -(-channels // machine.written_bytes)


def _block_cycles(problem: Problem, block: WeightBlock) -> int:
    """Return the cycles in which the weights and parameters of ``block`` cross the bus."""
    machine = problem.machine
    main = block_words(block, problem.nest, machine) * machine.clusters * TILE_BYTES
    ninths = main // 8 if problem.nest.winograd else 0
    parameters = 8 * parameter_channels(block, problem.nest, machine)
    begun = _CODED_OVERHEAD * -(-main // MOST_DECODED) if machine.coded_weights else 0
    return begun + sum(_bus_cycles(1, size, machine) for size in (main, ninths, parameters))


@dataclass(frozen=True, slots=True)
class Transfers:
    """Cycles in which something is moved: all of it, and the first of it, for which computation has to wait."""

    all: int
    first: int


def load_transfers(problem: Problem, tiling: Tiling) -> Transfers:
    """Return the cycles in which the input is loaded."""
    if tiling.stays:
        return _staying_transfers(problem, tiling)
    once = 0 if tiling.chip.input else sum(count * input_cycles(problem, tile) for tile, count in tiling.copies.items())
    again = (tiling.weights_outer and tiling.tiles > 1) or tiling.splits_input
    times = len({block.first_group for block in tiling.blocks}) if again and not tiling.holds else 1
    kept = (times - 1) * once // tiling.tiles if tiling.weights_outer and turns_round(problem.layer) else 0
    return Transfers(once * times - kept, once // tiling.tiles)


def _staying_transfers(problem: Problem, tiling: Tiling) -> Transfers:
    """Return the cycles in which an input that stays is loaded, strip by strip."""
    layer = problem.layer
    whole = whole_tile(layer, tiling.largest_tile.columns)
    first = input_cycles(problem, strip(layer, tiling.first_tile.columns, block_rows(tiling.first_tile)))
    # Without room for the next layer's input beside it, that one has to wait for the end.
    alone = 2 * input_bytes(whole, layer, problem.nest) > problem.machine.activation_bytes
    return Transfers(input_cycles(problem, whole), first * (2 if alone else 1))


def weight_transfers(problem: Problem, tiling: Tiling) -> Transfers:
    """Return the cycles in which weights, parameters and the value table are loaded; the table is not the first."""
    if problem.layer.early_weights:
        return Transfers(0, 0)
    once = sum(number * _block_cycles(problem, block) for block, number in block_sizes(tiling.blocks).items())
    again = not tiling.weights_outer and len(tiling.blocks) > 1
    table = _bus_cycles(1, table_bytes(problem.layer), problem.machine)
    times = tiling.tiles if again else tiling.rounds
    return Transfers(once * times + table, once // len(tiling.blocks))


def store_cycles(problem: Problem, tiling: Tiling) -> tuple[int, int]:
    """Return the cycles in which results are stored to memory (and residuals loaded), and to the activation buffer."""
    alike: Counter[int] = Counter()
    for block, number in block_sizes(tiling.blocks).items():
        alike[block.channels] += number
    stored = copied = 0
    for tile, count in tiling.copies.items():
        for channels, number in alike.items():
            stored += count * number * output_cycles(problem, tile, channels, stored=tiling.chip.stored)
            copied += count * number * len(tiling.chip.feeds) * _copy_cycles(tile, channels, problem.machine)
    return stored, copied


# ---- the whole


@dataclass(frozen=True, slots=True)
class Room:
    """Number of times that the data of a step fit each buffer."""

    inputs: int
    weights: int
    results: int

    @classmethod
    def of(cls, problem: Problem, tile: Tile, block: WeightBlock) -> "Room":
        """Return the room for ``tile`` and ``block``."""
        machine = problem.machine
        words = block_words(block, problem.nest, machine)
        return cls(machine.activation_bytes // (input_bytes(tile, problem.layer, problem.nest) or 1),
                   usable_words(machine) // words if words else 2,
                   machine.result_bytes // result_bytes(tile, problem.layer, block.channels))


def price(problem: Problem, tiling: Tiling, array: int | None = None) -> Cost:
    """Return the cost of a layer that is cut by ``tiling``; ``array`` are its `array_cycles`, if they are known."""
    compute = array_cycles(problem, tiling.copies, tiling.blocks) if array is None else array
    loads, weights = load_transfers(problem, tiling), weight_transfers(problem, tiling)
    stores, copies = store_cycles(problem, tiling)
    traffic = loads.all + weights.all + stores
    array_first = compute + loads.first
    bus_first = max(traffic, stores + copies) + compute // tiling.steps
    # Results for the next layer leave before those for memory.
    last_store, turnaround = (copies, HANDOVER) if tiling.chip.output else (stores, TURNAROUND)
    cycles = (max(array_first, bus_first) + _waits(problem, tiling, loads, weights, stores)
              + last_store // tiling.steps + turnaround)
    return Cost(cycles, traffic * problem.machine.bus_bytes, tiling.steps)


def _waits(problem: Problem, tiling: Tiling, loads: Transfers, weights: Transfers, stores: int) -> int:
    """Return the cycles of loads and stores that take turns with the computation: their buffer has no room for two."""
    room = Room.of(problem, tiling.largest_tile, tiling.blocks[0])
    cycles = 0 if room.weights > 1 else weights.first
    if tiling.tiles > 1 and room.inputs == 1 and not tiling.stays and not tiling.holds:
        cycles += loads.all
    if len(tiling.blocks) > 1 and room.weights == 1:
        cycles += weights.all
    if tiling.steps > 1 and room.results == 1:
        cycles += stores
    return cycles
