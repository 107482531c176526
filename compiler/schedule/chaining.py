"""Choose the results that stay on chip: the next layer finds them in the activation buffer, where it reads its input.

A layer is *chained* to the one before it if it takes that one's output as its input, and the buffer has room: for the
whole inputs of all layers of the chain, at the same time, and for two input tiles of its first. Then nothing is
loaded, and what only the next layer reads is not stored either. It is done where the predicted cost falls.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.compiler.network.layers import CoreLayer, Layer, Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.alike_layers import plan_chained_once
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.compiler.plan.footprint import (
    blocked_row_step,
    input_bytes,
    linear_row_step,
    part_bytes,
    ring_space,
)
from tilewright.compiler.plan.planner import LayerPlan, aligned, busy_cycles, priced
from tilewright.compiler.plan.problem import APART, OnChip
from tilewright.compiler.schedule.on_chip import PLACES, block_space, fill_cycles, kept_input, whole_of
from tilewright.isa.machine import TILE_BYTES, Machine

__all__ = [
    "STORE_SHARE", "AnyPlan", "Chain", "can_store_twice", "chain", "computed_together", "follows", "head_bytes", "join",
    "kept_bytes", "needed_in_memory", "on_chip_only",
]

_BANK_ROW = 4
"""Banks of a row of a 4x4 block: in the blocked layout, results start at a channel that is a multiple of it."""

_PATIENCE = 500
"""A chained layer and the one before it may be predicted to take a 500th longer: they move less, which saves energy.

Chosen by trial on the fast engine, of none, 500, 200 and more: ResNet18 at 32x32 on base moves 15.0 % less with it and
takes 0.1 % less time; with none 0.2 % less and 0.1 %, with 200 18.0 % less and 0.1 % more.
"""

STORE_SHARE = 3 / 4
"""Of the array's time that results stored twice may take."""

AnyPlan = LayerPlan | CorePlan


@dataclass(frozen=True, slots=True)
class Chain:
    """Plans of layers that are chained, what that is worth in cycles, and the bytes of the buffer that it takes."""

    plans: tuple[LayerPlan, ...]
    worth: int
    held: int


def chain(plans: Sequence[AnyPlan], network: Network, machine: Machine, options: Options, *,
          keep_tensors: bool = False) -> tuple[AnyPlan, ...]:
    """Return ``plans`` with those layers chained that gain by it.

    Parameters
    ----------
    keep_tensors
        Every tensor is to be stored, on chip or not.
    """
    options = options.on(machine)
    found, index = list(plans), 0
    while options.chain and index < len(found):
        best = None
        for each in _chains_from(index, found, network, machine, options, keep_tensors=keep_tensors):
            # Of equals the longer one: it moves less.
            if each.worth >= (best.worth if best else 0):
                best = each
        if best is not None:
            found[index:index + len(best.plans)] = best.plans
        index += len(best.plans) if best else 1
    return tuple(found)


def _chains_from(index: int, plans: Sequence[AnyPlan], network: Network, machine: Machine, options: Options, *,
                keep_tensors: bool) -> Iterator[Chain]:
    """Yield the chains that begin with layer ``index``, each a layer longer than the one before."""
    head = plans[index]
    if not isinstance(head, LayerPlan) or head.holds or head.chip != APART:
        return
    several = head.splits_input or len(head.tiles) > 1
    longer = Chain((head,), 0, head_bytes(head, machine))
    for place, behind in enumerate(plans[index + 1:], index + 1):
        last = longer.plans[-1]
        if not (isinstance(behind, LayerPlan) and behind.chip == APART and follows(last.layer, behind.layer)):
            return
        stored = keep_tensors or needed_in_memory(network, place - 1)
        if stored and not can_store_twice(last, machine):
            return
        pair = join(last, behind, machine, options, stored=stored)
        if pair is None:
            return
        more = ring_space(kept_bytes(pair[1]), machine.activation_bytes, TILE_BYTES)
        padding = fill_cycles(pair[1], whole_of(pair[1]), machine)
        if len(behind.tiles) == 1:
            # That is written between the layers now; of several tiles it comes while the layer before computes.
            padding = max(0, padding - fill_cycles(behind, behind.tiles[0], machine))
        if several and place > index + 1:
            # It hides behind the loads of the first layer, but for the first of these.
            padding = 0
        worth = _saved(pair, (last, behind), machine) - padding + (last.cost.cycles + behind.cost.cycles) // _PATIENCE
        longer = Chain((*longer.plans[:-1], *pair), longer.worth + worth, longer.held + more)
        if longer.held > machine.activation_bytes:
            return
        yield longer


def can_store_twice(plan: LayerPlan, machine: Machine) -> bool:
    """Tell whether results may go to memory and to the buffer, word after word, without the store in the array's way.

    A quarter of the time is left for what else keeps the store waiting: the bus, and post-processing at its buffer.
    """
    results = math.prod(plan.layer.out_shape)
    words = results / machine.bus_bytes + results / machine.written_bytes
    tiles = math.prod(plan.layer.conv_shape) / machine.lanes
    return words <= STORE_SHARE * plan.nest.steps * tiles / (4 if plan.nest.winograd else 1)


def follows(first: Layer, second: Layer) -> bool:
    """Tell whether ``second`` takes as its input just what ``first`` computes."""
    return second.input == first.output and second.in_shape == first.out_shape and second.unit is None


def needed_in_memory(network: Network, index: int) -> bool:
    """Tell whether anything but the input of the layer behind layer ``index`` needs what that one computes."""
    layer = network.layers[index]
    assert isinstance(layer, Layer)
    name, info = layer.output, network.tensors[layer.output]
    readers = [place for place, each in enumerate(network.layers) if name in each.reads]
    behind = network.layers[index + 1]
    again = not isinstance(behind, CoreLayer) and behind.residual is not None and behind.residual.tensor == name
    shared = info.place is not None or any(each.place is not None and each.place.parent == name
                                           for each in network.tensors.values())
    return (readers != [index + 1] or again or shared or bool(layer.also)
            or any(each.name == name for each in network.outputs))


def join(first: LayerPlan, second: LayerPlan, machine: Machine, options: Options, *,
         stored: bool) -> tuple[LayerPlan, LayerPlan] | None:
    """Return the plans of two layers of which the second finds its input on chip; None if it cannot."""
    behind = plan_chained_once(second.layer, machine, options, second.layouts, OnChip(input=True), 1)
    if behind is None:
        return None
    chip = OnChip(input=first.chip.input, output=True, stored=stored)
    unit = _BANK_ROW if behind.nest.winograd else 1
    if aligned(first.blocks, unit):
        return priced(first, machine, chip), behind
    if not first.chip.input:
        return None
    before = plan_chained_once(first.layer, machine, options, first.layouts, chip, unit)
    # What it reads lies as it did, or the layer before would have to be planned anew.
    return (before, behind) if before is not None and before.nest == first.nest else None


def _saved(after: tuple[LayerPlan, LayerPlan], before: tuple[LayerPlan, LayerPlan], machine: Machine) -> int:
    """Return the cycles that ``after`` is predicted to save.

    The first of several tiles comes in while the layer before computes: then only what array and bus have to do counts.
    """
    def cycles(plan: LayerPlan) -> int:
        return plan.cost.cycles if len(before[1].tiles) == 1 else busy_cycles(plan, machine)
    return sum(map(cycles, before)) - sum(map(cycles, after))


def kept_bytes(plan: LayerPlan) -> int:
    """Return the bytes of the activation buffer that an input takes: whole, its ring of rows, or blocks of channels."""
    if plan.channels_at_once:
        return PLACES * block_space(plan)
    whole, size = whole_of(plan), kept_input(plan)
    if plan.bands is None or plan.bands.ring is None:
        return size
    ring = plan.bands.ring
    if plan.nest.winograd:
        step = blocked_row_step(whole, plan.layer.in_shape[0])
        return size - (size // step - ring.units - ring.margin) * step
    return size - (whole.rows.stored - ring.height) * linear_row_step(whole, plan.layer, plan.nest)


def head_bytes(plan: LayerPlan, machine: Machine) -> int:
    """Return the bytes of the activation buffer for two input tiles of ``plan``, or for its only one."""
    tile = plan.largest
    size = part_bytes(plan.blocks[0], tile) if plan.splits_input else input_bytes(tile, plan.layer, plan.nest)
    if plan.stays:
        size = kept_bytes(plan)
    several = plan.splits_input or (len(plan.tiles) > 1 and not plan.stays)
    return (2 if several else 1) * ring_space(size, machine.activation_bytes, TILE_BYTES)


def computed_together(plans: Sequence[AnyPlan]) -> tuple[range, ...]:
    """Return the groups of layers that take turns, by bands of rows or blocks of channels, as ranges of numbers."""
    bands = tuple(range(index, index + plan.bands.layers) for index, plan in enumerate(plans)
                  if isinstance(plan, LayerPlan) and plan.bands is not None and plan.bands.place == 0)
    return bands + tuple(range(index - 1, index + 1) for index, plan in enumerate(plans)
                         if isinstance(plan, LayerPlan) and plan.channels_at_once)


def on_chip_only(plans: Sequence[AnyPlan]) -> frozenset[str]:
    """Return the tensors that never reach main memory."""
    return frozenset(plan.layer.output for plan in plans
                     if isinstance(plan, LayerPlan) and plan.chip.output and not plan.chip.stored)
