"""A planning problem, and a tiling as one answer to it: how it is cut and in which order, and what fits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.plan.algorithms import Algorithm, LoopNest
from tilewright.compiler.plan.footprint import (
    WeightBlock,
    block_sizes,
    block_words,
    input_bytes,
    pair_words,
    part_bytes,
    result_bytes,
    slots_of,
    usable_words,
)
from tilewright.compiler.plan.tiles import Tile, TileExtent
from tilewright.isa.limits import (
    MAX_CHUNKS,
    MAX_COLUMNS,
    MAX_KERNEL,
    MAX_PADDING,
    MAX_PAIR_WORDS,
    MAX_PIXEL_BYTES,
    MAX_ROWS,
    MAX_RUNS,
    MAX_WINDOW,
)
from tilewright.isa.machine import Machine

__all__ = ["APART", "BEHIND", "Feed", "OnChip", "Problem", "Tiling", "distinct", "fits", "fitting", "turns_round"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One layer, in one form and by one loop nest, that is to be cut for a machine.

    Attributes
    ----------
    layer : Layer
        The layer, or the form of it that is computed in its place.
    layouts : LayerLayouts
        How its tensors lie in main memory.
    nest : LoopNest
        The loops of its mac commands.
    machine : Machine
        The machine that computes it.
    """

    layer: Layer
    layouts: LayerLayouts
    nest: LoopNest
    machine: Machine


@dataclass(frozen=True, slots=True)
class Feed:
    """A layer, so many ``ahead``, that finds results on chip as the channels of its input from ``channel`` on."""

    ahead: int
    channel: int = 0


BEHIND = (Feed(1),)
"""The layer behind alone finds results on chip, as its whole input."""


@dataclass(frozen=True, slots=True)
class OnChip:
    """Whether a layer finds its input in the activation buffer, and which layers find its results there.

    ``stored``: memory has the output too.
    """

    input: bool = False
    feeds: tuple[Feed, ...] = ()
    stored: bool = True

    @property
    def output(self) -> bool:
        """Whether any layer finds the output in the activation buffer."""
        return bool(self.feeds)


APART = OnChip()
"""A layer that reads from memory and stores to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """The tiles and weight blocks of a layer, and the order in which they are computed.

    Attributes
    ----------
    copies : mapping of Tile to int
        Tiles of different shapes, and how many of each there are; the first one first.
    blocks : tuple of WeightBlock
    weights_outer : bool
        For each block every tile, not the other way round.
    splits_input : bool
        Each part of the kernel loads its own part of the input.
    stays : bool
        Each row of the input is loaded once, and stays in the activation buffer.
    holds : int
        Tiles whose inputs are loaded under the first block and stay in the activation buffer for the others; then come
        the next ones. 0: none.
    chip : OnChip
        Data that need not cross the bus.
    """

    copies: Mapping[Tile, int]
    blocks: tuple[WeightBlock, ...]
    weights_outer: bool
    splits_input: bool
    stays: bool = False
    holds: int = 0
    chip: OnChip = APART

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return sum(self.copies.values())

    @property
    def rounds(self) -> int:
        """Number of times that all weights are loaded when tiles are held."""
        return -(-self.tiles // self.holds) if self.holds else 1

    @property
    def steps(self) -> int:
        """Number of steps: a tile and a block each."""
        return self.tiles * len(self.blocks)

    @property
    def first_tile(self) -> Tile:
        """The tile that is computed first."""
        return next(iter(self.copies))

    @property
    def largest_tile(self) -> Tile:
        """The first tile of the most rows."""
        return max(self.copies, key=lambda tile: len(tile.rows.out))


def turns_round(layer: Layer) -> bool:
    """Tell whether tiles under one block of weights after the other are taken there and back in turn.

    Each block then begins with the input that the one before ended with, which is not loaded again. Of one image that
    takes ResNet18 at 32x32 0.4 % longer on base, as strips then follow each other less evenly; of depthwise layers in a
    batch of 8 MobileNetV2 1.4 %.
    """
    return layer.images > 1 and layer.groups == 1


def distinct(tiles: tuple[Tile, ...]) -> Counter[Tile]:
    """Return tiles of different shapes, and how many of each there are, in the order of ``tiles``."""
    found: dict[tuple[tuple[int, ...], ...], Tile] = {}
    known = {id(tile.columns): _lengths(tile.columns) for tile in tiles[:1]}    # most tiles have those of the first
    return Counter(found.setdefault((_lengths(tile.rows), known.get(id(tile.columns)) or _lengths(tile.columns)), tile)
                   for tile in tiles)


def _lengths(extent: TileExtent) -> tuple[int, ...]:
    return (len(extent.out), len(extent.conv), extent.before, len(extent.image), extent.after, extent.window_before)


def fits(problem: Problem, tile: Tile, blocks: tuple[WeightBlock, ...]) -> bool:
    """Tell whether a tile fits the buffers and the operands; only a gap-free input can be loaded in parts."""
    return bool(fitting(problem, tile, [blocks]))


def fitting(problem: Problem, tile: Tile, cuts: Sequence[tuple[WeightBlock, ...]]) -> list[tuple[WeightBlock, ...]]:
    """Return the cuts into blocks with which a tile fits."""
    if not _fits_operands(problem, tile):
        return []
    stored = input_bytes(tile, problem.layer, problem.nest)
    return [blocks for blocks in cuts if _fits_beside(problem, tile, blocks, stored)]


def _fits_beside(problem: Problem, tile: Tile, blocks: tuple[WeightBlock, ...], stored: int) -> bool:
    """Tell whether a tile of ``stored`` bytes, which fits the operands, does so with its blocks, and the buffers."""
    block, nest, layer, machine = blocks[0], problem.nest, problem.layer, problem.machine
    if layer.rows is not None and block.channels < layer.conv_shape[0]:
        return False
    if layer.words.inputs > 1 and (block.holds or stored > machine.activation_bytes):
        return False    # both planes of words are summed up at once
    if block.holds and slots_of(len(tile.rows.conv), len(tile.columns.conv), block.channels, nest,
                                machine)[0] > machine.tiles:
        return False
    part = max(part_bytes(each, tile, layer, nest) for each in block_sizes(blocks)) if block.holds else 0
    if any(each.beyond and block_words(each, nest, machine) > usable_words(machine) for each in block_sizes(blocks)):
        return False
    return ((stored <= machine.activation_bytes or _fits_in_parts(problem, tile, blocks, part))
            and result_bytes(tile, layer, block.channels) <= machine.result_bytes
            and all(_block_fits_operands(problem, tile.columns, each) for each in blocks[::max(1, len(blocks) - 1)]))


def _fits_in_parts(problem: Problem, tile: Tile, blocks: tuple[WeightBlock, ...], part: int) -> bool:
    """Tell whether the input of a tile fits the activation buffer in parts of ``part`` bytes, if not 0."""
    room = problem.machine.activation_bytes
    if problem.nest.cuts != (1, 1):
        alone = (len(tile.rows.conv), len(tile.columns.conv)) == (1, 1) and len(tile.rows.image) == tile.rows.stored
        return part <= room and alone and problem.nest.algorithm is Algorithm.POOL \
            and blocks[0].channels == problem.layer.conv_shape[0]
    return 0 < part <= room and problem.layouts.input.whole and _rows_of_bytes(tile, problem.layer)


def _fits_operands(problem: Problem, tile: Tile) -> bool:
    """Tell whether the operands of the commands can hold what a step with ``tile`` needs, whatever its block."""
    rows, columns = tile.rows, tile.columns
    return (max(rows.stored, len(rows.conv)) <= MAX_ROWS and len(columns.conv) <= MAX_COLUMNS
            and pair_words(tile, problem.layer, problem.nest) <= MAX_PAIR_WORDS
            and (problem.layouts.inputs_whole or len(columns.image) <= MAX_CHUNKS)
            and max(columns.before, columns.after) <= MAX_PADDING
            and (problem.layer.in_shape[0] <= MAX_PIXEL_BYTES or columns.before == columns.after == 0)
            and max(rows.window_before, columns.window_before) <= MAX_WINDOW)


def _block_fits_operands(problem: Problem, columns: TileExtent, block: WeightBlock) -> bool:
    """Tell whether the operands of the commands can hold what a step with a block and these columns needs."""
    return (len(block.runs) <= MAX_RUNS and max(len(block.rows), len(block.columns)) <= MAX_KERNEL
            and block.channels * problem.layer.value_bytes <= MAX_PIXEL_BYTES
            and (not problem.nest.across or _runs_across(problem, columns, block)))


def _runs_across(problem: Problem, columns: TileExtent, block: WeightBlock) -> bool:
    """Tell whether the sums of a tile's rows are whole tiles across channels, and follow one another."""
    size = len(columns.conv) * block.channels
    follow = len(columns.conv) == 1 or block.channels == problem.layer.conv_shape[0]
    return follow and size % problem.machine.lanes == 0 and size // problem.machine.lanes <= MAX_COLUMNS


def _rows_of_bytes(tile: Tile, layer: Layer) -> bool:
    """Tell whether each output pixel of ``tile`` has an input of its own, bytes in a row: a fully connected layer."""
    rows, columns = tile.rows, tile.columns
    apart = len(rows.conv) == 1 or layer.strides[0] == layer.kernel[0]
    return (apart and layer.images == 1 and len(columns.conv) == 1
            and rows.stored == len(rows.image) == len(rows.conv) * layer.kernel[0]
            and columns.stored == len(columns.image) == layer.in_shape[2])
