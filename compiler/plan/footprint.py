"""Bytes that a tile and a block of weights take in the buffers, and whether a whole input fits."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.plan.algorithms import PAIR_BYTES, Algorithm, LoopNest, Part, spare_rows
from tilewright.compiler.plan.tiles import Tile, whole_tile
from tilewright.isa.limits import WEIGHT_BUS_WORDS
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine

__all__ = [
    "MOST_DECODED", "REGIONS", "TOKEN_WORDS", "Stretch", "WeightBlock", "WeightBlocks", "block_sizes", "block_words",
    "blocked_row_step", "can_stay", "gains_start", "held_bytes", "input_bytes", "input_plane", "linear_row_step",
    "output_plane", "pair_words", "parameter_channels", "parameter_unit", "part_bytes", "resident_parameters",
    "resident_words", "result_bytes", "ring_space", "slots_of", "table_bytes", "tiles_held", "tiles_of", "usable_words",
    "weight_words",
]

MOST_DECODED = 4096
"""Bytes of weights that are coded as one block: a load of it is not cut, so that it fits between others."""

TOKEN_WORDS = 8
"""Words per cluster of a load whose only purpose is its signal: that the loads before it are complete."""

REGIONS = 24
"""Regions in a lap round a buffer's ring, at most: each may have a signal under way, and semaphores count to 63."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lane groups of a block, from its ``first`` on, that one command sums up: all of it, unless weights leave int8.

    One lane group whose weights do is summed up in turns of as many tiles as there are accumulators: the products of
    its int8 weights are held, and those of the ``rests``, each a part of the nest, are added. ``lead`` are channels
    before the lane group's first, of zero weights, since a conv23 command begins with a channel that is a multiple of
    16; the runs of the rests count from there.
    """

    first: int
    groups: int
    rests: tuple[Part, ...] = ()
    lead: int = 0

    def words(self, steps: int, nest: LoopNest, machine: Machine) -> tuple[int, ...]:
        """Return the words per cluster of the weights of ``steps`` with what leads to them, and of each rest."""
        return (weight_words(self.groups, steps + self.lead, nest, machine),
                *(weight_words(1, math.prod(map(len, rest)), nest, machine) for rest in self.rests))


@dataclass(frozen=True, slots=True)
class WeightBlock:
    """Output channels (or a part of the kernel of one lane group) whose weights are loaded together.

    ``channels`` counts real output channels, not lanes; ``runs``, ``rows`` and ``columns`` are those of the loop nest
    that the block covers. It ``resumes`` the sums of the block before, and ``holds`` its own for the one behind it.
    """

    index: int
    first_group: int
    groups: int
    first_channel: int
    channels: int
    runs: range
    rows: range = range(1)
    columns: range = range(1)
    resumes: bool = False
    holds: bool = False
    beyond: tuple[Stretch, ...] = ()
    """The stretches of a block of which weights leave int8."""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The stretches that single commands, or those of one lane group, sum up, in order."""
        return self.beyond or (Stretch(0, self.groups),)

    @property
    def steps(self) -> int:
        """Multiplier issues per tile and lane group."""
        return len(self.rows) * len(self.columns) * len(self.runs)

    def results_of(self, layer: Layer) -> "WeightBlock":
        """Return the block with the channels of what ``layer`` leaves, which are bytes of whole sums, or its own."""
        each = layer.value_bytes
        return self if each == 1 else replace(self, first_channel=each * self.first_channel,
                                              channels=each * self.channels)


class WeightBlocks(tuple[WeightBlock, ...]):
    """The blocks of a layer in order, for which is counted once how many there are of each size."""

    @cached_property
    def sizes(self) -> Mapping[WeightBlock, int]:
        """One block of each size (lane groups, channels and steps), and how many there are."""
        return _sizes(self)


def block_sizes(blocks: tuple[WeightBlock, ...]) -> Mapping[WeightBlock, int]:
    """Return one block of each size (lane groups, channels and steps), and how many there are."""
    return blocks.sizes if isinstance(blocks, WeightBlocks) else _sizes(blocks)


def _sizes(blocks: tuple[WeightBlock, ...]) -> Mapping[WeightBlock, int]:
    found: dict[tuple[object, ...], WeightBlock] = {}
    return Counter(found.setdefault((each.groups, each.channels, each.steps, each.beyond), each) for each in blocks)


def input_bytes(tile: Tile, layer: Layer, nest: LoopNest) -> int:
    """Return the activation-buffer bytes of ``tile``: what is stored, and what a run may read behind it."""
    if layer.words.inputs == 1:
        return _plane_bytes(tile, layer, nest)
    return len(layer.words.stored(layer.input)) * input_plane(tile, layer, nest)


def input_plane(tile: Tile, layer: Layer, nest: LoopNest) -> int:
    """Return the bytes from a plane of a tile's words in the activation buffer to the next one.

    The banks of a block go by its channel, so that planes of blocks begin with the first bank.
    """
    unit = TILE_BYTES * TILE_BYTES if nest.winograd else TILE_BYTES
    return -(-_plane_bytes(tile, layer, nest) // unit) * unit


def output_plane(tile: Tile, layer: Layer, channels: int) -> int:
    """Return the same of ``channels`` of its results in the result buffer."""
    return -(-len(tile.rows.out) * len(tile.columns.out) * channels // TILE_BYTES) * TILE_BYTES


def _plane_bytes(tile: Tile, layer: Layer, nest: LoopNest) -> int:
    channels = layer.in_shape[0]
    if nest.winograd:
        return _blocked_rows(tile) * blocked_row_step(tile, channels) + nest.overread
    missing = layer.dilations[0] if nest.paired and layer.kernel[0] % 2 else spare_rows(layer, nest)
    return (tile.rows.stored + missing) * linear_row_step(tile, layer, nest) + nest.overread


def linear_row_step(tile: Tile, layer: Layer, nest: LoopNest) -> int:
    """Return the bytes from one stored row to the next in the linear layout.

    Paired rows are a kernel's dilation apart, which must then be 8 (mod 16) bytes.
    """
    step = tile.columns.stored * layer.in_shape[0]
    while nest.paired and layer.dilations[0] * step % TILE_BYTES != PAIR_BYTES:
        step += 1
    return step


def ring_space(size: int, whole: int, alignment: int) -> int:
    """Return how far behind the start of a region of ``size`` the next one starts, in a ring of ``whole``."""
    return -(-max(size, whole // REGIONS) // alignment) * alignment


def pair_words(tile: Tile, layer: Layer, nest: LoopNest) -> int:
    """Return by how many 16-byte words the second half of a run lies further on than its first; 0: it follows it."""
    if not nest.paired:
        return 0
    return (layer.dilations[0] * linear_row_step(tile, layer, nest) - PAIR_BYTES) // TILE_BYTES


def _blocked_rows(tile: Tile) -> int:
    """Return the rows of 4x4 blocks that the patches of ``tile`` touch."""
    return -(-(2 * -(-len(tile.rows.conv) // 2) + 2) // 4)


def blocked_row_step(tile: Tile, channels: int) -> int:
    """Return the bytes of a row of 4x4 blocks."""
    return -(-(2 * -(-len(tile.columns.conv) // 2) + 2) // 4) * TILE_BYTES * channels


def part_bytes(block: WeightBlock, tile: Tile, layer: Layer, nest: LoopNest) -> int:
    """Return the activation-buffer bytes of the input of one part of the kernel: rows, or those of each row of sums."""
    if nest.cuts != (1, 1):
        return len(block.rows) * linear_row_step(tile, layer, nest) + nest.overread
    return TILE_BYTES * len(block.runs) * len(tile.rows.conv)


def result_bytes(tile: Tile, layer: Layer, channels: int) -> int:
    """Return the result-buffer bytes of ``channels`` of ``tile``."""
    if layer.words.outputs > 1:
        return layer.words.outputs * output_plane(tile, layer, channels)
    return len(tile.rows.out) * len(tile.columns.out) * channels * layer.value_bytes


def table_bytes(layer: Layer) -> int:
    """Return the bytes of the table memory that a layer takes: a value table, or all of it for rows and curves."""
    if layer.rows is not None:
        return TABLE_SLOTS * TABLE_BYTES
    return 0 if layer.table is None else layer.table.size


def tiles_of(rows: int, columns: int, nest: LoopNest) -> int:
    """Return the number of tiles that make up ``rows`` x ``columns`` sums."""
    return -(-rows // 2) * -(-columns // 2) if nest.winograd else rows * columns


def slots_of(rows: int, columns: int, channels: int, nest: LoopNest, machine: Machine) -> tuple[int, int]:
    """Return the tiles and lane groups of a mac command for ``rows`` x ``columns`` sums of ``channels``."""
    if nest.across:
        return rows * -(-columns * channels // machine.lanes), 1
    return tiles_of(rows, columns, nest), -(-channels // machine.lanes)


def weight_words(groups: int, steps: int, nest: LoopNest, machine: Machine) -> int:
    """Return the 128-bit words per cluster of the weights of ``steps``; a multiple of 8, as conv23's base must be."""
    if nest.algorithm is Algorithm.POOL:
        return 0
    groups = 1 if nest.across else groups
    kernels = groups * (1 if nest.by_channel else steps) * machine.lanes_per_cluster
    return -(-kernels // 16) * 8 if nest.winograd else -(-kernels // 8) * 8


def block_words(block: WeightBlock, nest: LoopNest, machine: Machine) -> int:
    """Return the words per cluster of ``block``."""
    return sum(sum(each.words(block.steps, nest, machine)) for each in block.stretches)


def parameter_channels(block: WeightBlock, nest: LoopNest, machine: Machine) -> int:
    """Return the channels whose parameters are loaded for ``block``; if all are alike, those of a lane group.

    Behind them are gains and shifts of rows. With pairs of channels conv23 takes as many as lane groups have for each
    pixel of a tile.
    """
    return (gains_start(block, nest, machine) + nest.gains) if nest.gains else _own_channels(block, nest, machine)


def gains_start(block: WeightBlock, nest: LoopNest, machine: Machine) -> int:
    """Return the channel, from a block's first parameters on, where gains and shifts of rows begin: a lane group's."""
    own = _own_channels(block, nest, machine)
    return own + -own % machine.lanes


def _own_channels(block: WeightBlock, nest: LoopNest, machine: Machine) -> int:
    if machine.pairs_channels and not nest.channel_parameters:
        return machine.channel_parameters * machine.lanes * block.groups
    return machine.lanes if nest.across else block.channels


def parameter_unit(machine: Machine) -> int:
    """Return the channels to whose multiples parameters begin in their buffer."""
    unit = max(machine.lanes * machine.channel_parameters, machine.padded_channels)
    # Where there are too few for conv23, none is taken for it.
    return unit if unit <= machine.parameter_channels else max(machine.lanes, machine.padded_channels)


def resident_words(parts: Iterable[tuple[tuple[WeightBlock, ...], LoopNest]], machine: Machine) -> int:
    """Return the words per cluster that the weights of several layers, blocks and nest of each, take side by side.

    They include room for the word whose load tells the array of inputs.
    """
    whole = usable_words(machine)
    return ring_space(TOKEN_WORDS, whole, 8) + sum(number * ring_space(block_words(block, nest, machine), whole, 8)
               for blocks, nest in parts for block, number in block_sizes(blocks).items())


def resident_parameters(parts: Iterable[tuple[tuple[WeightBlock, ...], LoopNest]], machine: Machine) -> int:
    """Return the channels that their parameters take."""
    whole, unit = machine.parameter_channels, parameter_unit(machine)
    return sum(number * ring_space(parameter_channels(block, nest, machine), whole, unit)
               for blocks, nest in parts for block, number in block_sizes(blocks).items())


def usable_words(machine: Machine) -> int:
    """Return the words per cluster that ``ldw``, whose addresses count bus words, can reach."""
    return min(machine.weight_words, WEIGHT_BUS_WORDS * machine.bus_bytes // (TILE_BYTES * machine.clusters))


def tiles_held(tiles: tuple[Tile, ...], layer: Layer, nest: LoopNest, machine: Machine) -> int:
    """Return how many tiles of a layer to hold in a round, the best number; 0 if less than two fit."""
    most = machine.activation_bytes // max(held_bytes((tile,), layer, nest, machine) for tile in set(tiles))
    return -(-len(tiles) // -(-len(tiles) // most)) if most > 1 else 0


def held_bytes(tiles: tuple[Tile, ...], layer: Layer, nest: LoopNest, machine: Machine) -> int:
    """Return the bytes of the activation buffer that the inputs of ``tiles`` take together."""
    return sum(ring_space(input_bytes(tile, layer, nest), machine.activation_bytes, TILE_BYTES) for tile in tiles)


def can_stay(tiles: tuple[Tile, ...], layer: Layer, nest: LoopNest, machine: Machine) -> bool:
    """Tell whether the input of ``tiles``, all those of ``layer``, can be loaded as one, strip by strip."""
    whole = whole_tile(layer, tiles[0].columns)
    return (nest.winograd and nest.overread == 0 and layer.words.inputs == 1 and len(tiles) > 1 and layer.images == 1
            and len(whole.columns.out) == layer.out_shape[2]
            and input_bytes(whole, layer, nest) <= machine.activation_bytes
            and all(tile.rows.conv.start % 2 == 0 for tile in tiles))
