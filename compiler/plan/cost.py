"""What a plan costs: cycles of the array, of post-processing and of the bus, by the rates of docs/datapath.md.

The units run side by side, so a layer takes the longest of them, plus what cannot overlap: the first load and
the last store. Where a buffer has no room for two tiles, loads and computation take turns.
"""

import math
from collections import Counter
from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.layout import LayerLayouts, Layout
from tilewright.compiler.plan.algorithms import LoopNest
from tilewright.compiler.plan.footprint import WeightBlock, block_words, input_bytes, result_bytes, usable_words
from tilewright.compiler.plan.tiles import Tile, block_rows, strip, whole_tile
from tilewright.isa.machine import TABLE_BYTES, TILE_BYTES, Machine

STEP_OVERHEAD = 8
"""Cycles the array loses per command. A command that need not wait follows without a gap, so this is what waits cost.

Chosen by trial on the fast engine, of 0, 4, 6, 8, 12, 20 and 30: for LeNet-5 (base, large), VGG16 and ResNet18 (both
sizes), and ResNet50 at 64x64 (base, large), 8 beats 30 everywhere, by 3 % on the smallest and 0.01 % on the largest.
"""

RUN_OVERHEAD = 1
"""Bus cycles lost per run of bytes."""

TURNAROUND = 60
"""Cycles from the last result of a layer to the first input of the next: two memory latencies and the pipelines."""


HANDOVER = 25
"""The same where the results stay on chip: the pipelines, and no memory between."""


@dataclass(frozen=True, slots=True)
class OnChip:
    """What of a layer stays in the activation buffer: its input, its output; ``stored``: memory has its output too."""

    input: bool = False
    output: bool = False
    stored: bool = True


APART = OnChip()
"""A layer that reads from memory and stores to it."""


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Cycles and traffic of a layer; the smaller is compared in this order."""

    cycles: int
    bytes: int
    steps: int


def tiles_of(rows: int, columns: int, nest: LoopNest) -> int:
    """Return the number of tiles that make up ``rows`` x ``columns`` sums."""
    return -(-rows // 2) * -(-columns // 2) if nest.winograd else rows * columns


def mac_cycles(tiles: int, groups: int, steps: int, machine: Machine) -> int:
    """Return the slots of one mac command: the last tile group may be short, but not below a weight fetch."""
    full, rest = divmod(tiles, machine.tiles)
    slots = full * machine.tiles + (max(rest, machine.lanes_per_cluster) if rest else 0)
    return slots * steps * groups


def post_cycles(tiles: int, groups: int, layer: Layer, nest: LoopNest, machine: Machine) -> int:
    """Return the cycles in which its sums are requantised: whole 2x2 tiles, all lanes.

    The residual adder takes up to four lanes one by one, max pooling every window of a pixel by itself.
    """
    pixels = tiles * (4 if nest.winograd else 1)
    vectors = pixels * groups * (machine.lanes // machine.post_lanes)
    if layer.residual:
        return vectors * min(machine.post_lanes, 4)
    if layer.pool:
        covered, step = math.prod(layer.pool.kernel), math.prod(layer.pool.strides)
        return max(vectors, vectors * covered // step)
    return vectors


def compute_cycles(tile: Tile, groups: int, runs: int, layer: Layer, nest: LoopNest, machine: Machine) -> int:
    """Return the cycles of one step: the slower of array and post-processing."""
    tiles = tiles_of(len(tile.rows.conv), len(tile.columns.conv), nest)
    steps = nest.kernel_y * nest.kernel_x * runs
    return STEP_OVERHEAD + max(mac_cycles(tiles, groups, steps, machine),
                               post_cycles(tiles, groups, layer, nest, machine))


def bus_cycles(runs: int, run_bytes: int, machine: Machine) -> int:
    """Return the cycles in which ``runs`` runs of ``run_bytes`` cross the bus."""
    return runs * (-(-run_bytes // machine.bus_bytes) + RUN_OVERHEAD) if run_bytes else 0


def input_cycles(tile: Tile, layer: Layer, layout: Layout, nest: LoopNest, machine: Machine) -> int:
    """Return the cycles in which a tile's input is loaded; in the blocked layout a word never spans two pixels."""
    rows, columns, channels = len(tile.rows.image), len(tile.columns.image), layer.in_shape[0]
    if tile.columns.image.step > 1 or not layout.rows_whole:
        return bus_cycles(rows * columns, channels, machine)
    bus = bus_cycles(rows, columns * channels, machine)
    return max(bus, rows * columns * -(-channels // machine.bus_bytes)) if nest.winograd else bus


def output_cycles(tile: Tile, channels: int, layouts: LayerLayouts, machine: Machine, *, stored: bool = True) -> int:
    """Return the cycles in which a step's results are stored to all their places in memory, and its residual loaded."""
    rows, columns = len(tile.rows.out), len(tile.columns.out)
    cycles = 0
    for layout in (*(layouts.outputs if stored else ()), layouts.residual):
        if layout is None:
            continue
        if layout.rows_whole and channels == layout.shape[0]:
            cycles += bus_cycles(rows, columns * channels, machine)
        else:
            cycles += bus_cycles(rows * columns, channels, machine)
    return cycles


def copy_cycles(tile: Tile, channels: int, machine: Machine) -> int:
    """Return the cycles in which a step's results go to the activation buffer, pixel by pixel."""
    return len(tile.rows.out) * len(tile.columns.out) * -(-channels // machine.bus_bytes)


def block_cycles(block: WeightBlock, nest: LoopNest, machine: Machine) -> int:
    """Return the cycles in which the weights and parameters of ``block`` cross the bus."""
    main = block_words(block, nest, machine) * machine.clusters * TILE_BYTES
    ninths = main // 8 if nest.winograd else 0
    return sum(bus_cycles(1, size, machine) for size in (main, ninths, 8 * block.channels))


def array_cycles(tiles: dict[Tile, int], blocks: tuple[WeightBlock, ...], layer: Layer, nest: LoopNest,
                 machine: Machine) -> int:
    """Return the cycles in which the array, or post-processing behind it, is busy with a layer."""
    alike = Counter((block.groups, len(block.runs)) for block in blocks)
    return sum(copies * number * compute_cycles(tile, groups, runs, layer, nest, machine)
               for tile, copies in tiles.items() for (groups, runs), number in alike.items())


def price(layer: Layer, layouts: LayerLayouts, nest: LoopNest, machine: Machine, tiles: dict[Tile, int],
          blocks: tuple[WeightBlock, ...], *, weights_outer: bool, splits_input: bool, stays: bool = False,
          chip: OnChip = APART) -> Cost:
    """Return the cost of a layer.

    Parameters
    ----------
    tiles
        Tiles of different shapes, and how many of each there are, the first one first.
    layouts
        How its tensors lie in memory.
    weights_outer
        For each block every tile, not the other way round.
    splits_input
        Each part of the kernel loads its own part of the input.
    stays
        Each row of the input is loaded once, and stays.
    chip
        What needs not cross the bus.
    """
    count = sum(tiles.values())
    alike: dict[tuple[int, int, int], int] = {}
    for block in blocks:
        kind = block.groups, block.channels, len(block.runs)
        alike[kind] = alike.get(kind, 0) + 1
    compute = array_cycles(tiles, blocks, layer, nest, machine)
    stores = kept = 0
    for tile, copies in tiles.items():
        for (_, channels, _), number in alike.items():
            stores += copies * number * output_cycles(tile, channels, layouts, machine, stored=chip.stored)
            kept += copies * number * copy_cycles(tile, channels, machine) if chip.output else 0
    loads = 0 if chip.input else sum(
        copies * input_cycles(tile, layer, layouts.input, nest, machine) for tile, copies in tiles.items())
    first_load = loads // count
    beginning = next(iter(tiles))
    largest = max(tiles, key=lambda tile: len(tile.rows.out))
    if stays:
        whole = whole_tile(layer, largest.columns)
        loads = input_cycles(whole, layer, layouts.input, nest, machine)
        first = strip(layer, beginning.columns, block_rows(beginning))
        first_load = input_cycles(first, layer, layouts.input, nest, machine)
        # Without room for the next layer's input beside it, that one has to wait for the end.
        first_load *= 2 if 2 * input_bytes(whole, layer, nest) > machine.activation_bytes else 1
    elif (weights_outer and count > 1) or splits_input:
        loads *= len({block.first_group for block in blocks})
    weights = sum(block_cycles(block, nest, machine) for block in blocks)
    first_weights = weights // len(blocks)
    if not weights_outer and len(blocks) > 1:
        weights *= count
    weights += bus_cycles(1, TABLE_BYTES, machine) if layer.table is not None else 0
    room = Room.of(largest, blocks[0], layer, nest, machine)
    traffic = loads + weights + stores
    last_step = compute // (count * len(blocks))
    cycles = max(compute + first_load, max(traffic, stores + kept) + last_step)
    cycles += 0 if room.weights > 1 else first_weights
    # What has no room for two takes turns with the computation.
    cycles += loads if count > 1 and room.inputs == 1 and not stays else 0
    cycles += weights if len(blocks) > 1 and room.weights == 1 else 0
    cycles += stores if count * len(blocks) > 1 and room.results == 1 else 0
    # Results for the next layer leave before those for memory.
    last_store, turnaround = (kept, HANDOVER) if chip.output else (stores, TURNAROUND)
    return Cost(cycles + last_store // (count * len(blocks)) + turnaround, traffic * machine.bus_bytes,
                count * len(blocks))


@dataclass(frozen=True, slots=True)
class Room:
    """How many times a step's data fits each buffer."""

    inputs: int
    weights: int
    results: int

    @classmethod
    def of(cls, tile: Tile, block: WeightBlock, layer: Layer, nest: LoopNest, machine: Machine) -> "Room":
        """Return the room for ``tile`` and ``block``."""
        words = block_words(block, nest, machine)
        return cls(machine.activation_bytes // (input_bytes(tile, layer, nest) or 1),
                   usable_words(machine) // words if words else 2,
                   machine.result_bytes // result_bytes(tile, block.channels))
