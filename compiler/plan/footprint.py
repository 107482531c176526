"""Bytes that a tile and a block of weights take in the buffers."""

from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.plan.tiles import Tile
from tilewright.compiler.plan.walk import PAIR_BYTES, Walk
from tilewright.isa.limits import WEIGHT_BUS_WORDS
from tilewright.isa.machine import TILE_BYTES, Machine

BLOCK_ROWS = 4
"""Rows (and columns) of a block of the blocked layout."""


@dataclass(frozen=True, slots=True)
class Block:
    """Output channels (or a part of the kernel of one lane group) whose weights are loaded together.

    ``channels`` counts real output channels, not lanes; ``runs`` are those of the walk that the block covers.
    """

    index: int
    first_group: int
    groups: int
    first_channel: int
    channels: int
    runs: range


def input_bytes(tile: Tile, layer: Layer, walk: Walk) -> int:
    """Return the activation-buffer bytes of ``tile``: what is stored, and what a run may read behind it."""
    channels = layer.in_shape[0]
    if walk.algorithm == "conv23":
        return blocked_rows(tile) * blocked_row_step(tile, channels) + walk.overread
    missing = layer.dilations[0] if walk.paired and layer.kernel[0] % 2 else 0
    return (tile.rows.stored + missing) * linear_row_step(tile, layer, walk) + walk.overread


def linear_row_step(tile: Tile, layer: Layer, walk: Walk) -> int:
    """Return the bytes from one stored row to the next in the linear layout.

    Paired rows are a kernel's dilation apart, which must then be 8 (mod 16) bytes.
    """
    step = tile.columns.stored * layer.in_shape[0]
    while walk.paired and layer.dilations[0] * step % TILE_BYTES != PAIR_BYTES:
        step += 1
    return step


def pair_words(tile: Tile, layer: Layer, walk: Walk) -> int:
    """Return by how many 16-byte words the second half of a run lies further on than its first; 0: it follows it."""
    if not walk.paired:
        return 0
    return (layer.dilations[0] * linear_row_step(tile, layer, walk) - PAIR_BYTES) // TILE_BYTES


def blocked_rows(tile: Tile) -> int:
    """Return the rows of 4x4 blocks that the patches of ``tile`` touch."""
    return -(-(2 * -(-len(tile.rows.conv) // 2) + 2) // 4)


def blocked_row_step(tile: Tile, channels: int) -> int:
    """Return the bytes of a row of 4x4 blocks."""
    return -(-(2 * -(-len(tile.columns.conv) // 2) + 2) // 4) * TILE_BYTES * channels


def part_bytes(block: Block) -> int:
    """Return the activation-buffer bytes of the input of one part of the kernel."""
    return TILE_BYTES * len(block.runs)


def result_bytes(tile: Tile, channels: int) -> int:
    """Return the result-buffer bytes of ``channels`` of ``tile``."""
    return len(tile.rows.out) * len(tile.columns.out) * channels


def weight_words(groups: int, runs: int, walk: Walk, machine: Machine) -> int:
    """Return the 128-bit words per cluster of the weights; a multiple of 8, as conv23's base must be."""
    if walk.algorithm == "sum":
        return 0
    kernels = groups * walk.kernel_y * walk.kernel_x * runs * machine.lanes_per_cluster
    return -(-kernels // 16) * 8 if walk.algorithm == "conv23" else -(-kernels // 8) * 8


def block_words(block: Block, walk: Walk, machine: Machine) -> int:
    """Return the words per cluster of ``block``."""
    return weight_words(block.groups, len(block.runs), walk, machine)


def usable_words(machine: Machine) -> int:
    """Return the words per cluster that ``ldw``, whose addresses count bus words, can reach."""
    return min(machine.weight_words, WEIGHT_BUS_WORDS * machine.bus_bytes // (TILE_BYTES * machine.clusters))
