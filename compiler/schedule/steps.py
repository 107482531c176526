"""The steps of a network in order, and the buffer space that each of them needs.

A step is one tile and one block of one layer: at most one mac command, one act and one store. Consecutive steps that
need the same data share one load.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tilewright.compiler.plan.algorithms import Algorithm
from tilewright.compiler.plan.cost import compute_cycles
from tilewright.compiler.plan.footprint import WeightBlock, table_bytes
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.problem import turns_round
from tilewright.compiler.plan.tiles import Tile
from tilewright.compiler.schedule.groups import by_blocks
from tilewright.isa.machine import Machine
from tilewright.isa.program import Call

__all__ = ["CoreCall", "Kind", "Need", "TileStep", "block_of", "key", "needs_of", "order", "steps_of", "tile_of"]

Kind = Literal["input", "weights", "parameters", "table"]


@dataclass(frozen=True, slots=True)
class TileStep:
    """Tile and block number ``tile`` and ``block`` of a layer.

    ``first`` and ``last`` tell whether it is the first or the last step of its layer.
    """

    index: int
    layer: int
    tile: int
    block: int
    first: bool
    last: bool

    def cycles(self, plans: Mapping[int, LayerPlan], machine: Machine) -> int:
        """Return how long the array works on it."""
        return compute_cycles(plans[self.layer].problem(machine), tile_of(self, plans), block_of(self, plans))


@dataclass(frozen=True, slots=True)
class CoreCall:
    """Calls of the host core that compute a layer, one for each image, and about how many cycles they take together."""

    calls: tuple[Call, ...]
    cycles: int


@dataclass(frozen=True, slots=True)
class Need:
    """Something to be loaded: for steps ``first`` .. ``last``, of layer, tile and block as in the first of them.

    It is for each ``every``-th of these steps, or for those ``among`` them; the others have needs of their own of the
    same kind.
    """

    kind: Kind
    first: int
    last: int
    layer: int
    tile: int
    block: int
    every: int = 1
    among: frozenset[int] = frozenset()

    def serves(self, step: int) -> bool:
        """Tell whether it is for ``step``."""
        if self.among:
            return step in self.among
        return self.first <= step <= self.last and (step - self.first) % self.every == 0


def order(plan: LayerPlan) -> Iterator[tuple[int, int]]:
    """Yield (tile, block) in the plan's loop order.

    Tiles that are held meet every block before the next ones come. Where tiles go there and back in turn, they go there
    for the last block: the next layer begins with the first tile.
    """
    tiles, blocks = range(len(plan.tiles)), range(len(plan.blocks))
    if plan.holds:
        yield from ((tile, block) for held in _rounds(plan) for block in blocks for tile in held)
    elif plan.weights_outer:
        back = turns_round(plan.layer)
        yield from ((tile, block) for block in blocks
                    for tile in (reversed(tiles) if back and (len(blocks) - block) % 2 == 0 else tiles))
    else:
        yield from ((tile, block) for tile in tiles for block in blocks)


def _rounds(plan: LayerPlan) -> list[range]:
    """Return the tiles that are held together."""
    count = len(plan.tiles)
    return [range(first, min(first + plan.holds, count)) for first in range(0, count, plan.holds)]


def steps_of(plans: Mapping[int, LayerPlan], layers: int) -> tuple[TileStep, ...]:
    """Return all steps of ``layers`` layers; one without a plan is the host core's and a single step."""
    found: list[tuple[int, int, int]] = []
    for layer in range(layers):
        bands = plans[layer].bands if layer in plans else None
        if layer not in plans:
            found.append((layer, 0, 0))
        elif by_blocks(plans, layer):
            found += _in_turn(layer, len(plans[layer].blocks))
        elif bands is None and not plans[layer].channels_at_once:
            found += ((layer, tile, block) for tile, block in order(plans[layer]))
        elif bands is not None and bands.place == 0:
            found += _by_bands(plans, layer)
    first = {layer: index for index, (layer, _, _) in reversed([*enumerate(found)])}
    last = {layer: index for index, (layer, _, _) in enumerate(found)}
    return tuple(TileStep(index, layer, tile, block, first[layer] == index, last[layer] == index)
                 for index, (layer, tile, block) in enumerate(found))


def _in_turn(layer: int, blocks: int) -> Iterator[tuple[int, int, int]]:
    """Yield (layer, tile, block) of ``layer`` and the next one, which follows it a block behind.

    So a block's input was stored while another block was computed, and its place is free for the next but one.
    """
    for turn in range(blocks + 1):
        if turn < blocks:
            yield layer, 0, turn
        if turn:
            yield layer + 1, 0, turn - 1


def _by_bands(plans: Mapping[int, LayerPlan], head: int) -> Iterator[tuple[int, int, int]]:
    """Yield (layer, tile, block) of the group that begins with layer ``head``, band by band.

    In each round the readers begin, and each layer computes the band behind the one that its readers compute: so
    its input has been stored by then, and what it overwrites has been read.
    """
    bands = plans[head].bands
    assert bands is not None
    group = [(head + place, each) for place in range(bands.layers) if (each := plans[head + place].bands) is not None]
    # Of layers as deep as each other, the first begins: so layers end in their order.
    group.sort(key=lambda member: -member[1].depth)
    for turn in range(len(bands.tiles) + group[0][1].depth):
        for layer, each in group:
            if 0 <= turn - each.depth < len(each.tiles):
                yield from ((layer, tile, block) for tile in each.band(turn - each.depth)
                            for block in range(len(plans[layer].blocks)))


def needs_of(kind: Kind, steps: tuple[TileStep, ...], plans: Mapping[int, LayerPlan]) -> tuple[Need, ...]:
    """Return what is to be loaded of ``kind``, in order; consecutive steps that need the same share it."""
    found: list[Need] = []
    current: tuple[int, ...] | None = None
    resident: dict[tuple[int, ...], int] = {}
    for step in steps:
        if step.layer not in plans:
            continue
        wanted = key(kind, step, plans[step.layer])
        if wanted is None:
            continue
        if _stays(kind, step.layer, plans):
            place = resident.setdefault(wanted, len(found))
            if place == len(found):
                found.append(Need(kind, step.index, step.index, step.layer, step.tile, step.block))
            found[place] = replace(found[place], last=step.index, among=found[place].among | {step.index})
            current = None
            continue
        if kind == "input" and plans[step.layer].holds:
            if step.block == 0:
                found.append(_held(step, plans[step.layer]))
            current = None
            continue
        if wanted == current:
            last = found[-1]
            found[-1] = Need(kind, last.first, step.index, last.layer, last.tile, last.block)
        else:
            found.append(Need(kind, step.index, step.index, step.layer, step.tile, step.block))
        current = wanted
    return tuple(found)


def _stays(kind: Kind, layer: int, plans: Mapping[int, LayerPlan]) -> bool:
    """Tell whether what a layer needs of ``kind`` is loaded once for all of its turns with others."""
    if plans[layer].bands is not None:
        return kind != "input"
    return kind == "table" and (by_blocks(plans, layer) or plans[layer].channels_at_once > 0)


def _held(step: TileStep, plan: LayerPlan) -> Need:
    """Return the need of an input that is held under all blocks, for its first step."""
    tiles = len(next(held for held in _rounds(plan) if step.tile in held))
    return Need("input", step.index, step.index + (len(plan.blocks) - 1) * tiles, step.layer, step.tile, 0, tiles)


def key(kind: Kind, step: TileStep, plan: LayerPlan) -> tuple[int, ...] | None:
    """Return a key that distinguishes needs of ``kind``, or None if the step has no such need."""
    block: WeightBlock = plan.blocks[step.block]
    if kind == "input":
        if plan.chip.input:
            return None
        part = (block.runs.start, block.rows.start) if plan.splits_input else (0, 0)
        return (step.layer, 0 if plan.stays else step.tile, *part)
    if kind == "parameters":
        return step.layer, block.first_group
    if kind == "table":
        return (step.layer,) if table_bytes(plan.layer) else None
    return (step.layer, step.block) if plan.nest.algorithm is not Algorithm.POOL else None


def tile_of(step: TileStep, plans: Mapping[int, LayerPlan]) -> Tile:
    """Return the step's tile."""
    return plans[step.layer].tiles[step.tile]


def block_of(step: TileStep, plans: Mapping[int, LayerPlan]) -> WeightBlock:
    """Return the step's block."""
    return plans[step.layer].blocks[step.block]
