"""A planning problem, and a tiling as one answer to it: the computation, how it is cut, and in which order."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.plan.algorithms import LoopNest
from tilewright.compiler.plan.footprint import WeightBlock
from tilewright.compiler.plan.tiles import Tile, TileExtent
from tilewright.isa.machine import Machine

__all__ = ["APART", "BEHIND", "Feed", "OnChip", "Problem", "Tiling", "distinct", "turns_round"]


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
    return Counter(found.setdefault((_lengths(tile.rows), _lengths(tile.columns)), tile) for tile in tiles)


def _lengths(extent: TileExtent) -> tuple[int, ...]:
    return (len(extent.out), len(extent.conv), extent.before, len(extent.image), extent.after, extent.window_before)
