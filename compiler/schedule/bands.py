"""Choose groups of layers that are computed band by band of rows, so that what lies between them never leaves the chip.

In a group each layer takes as its input what the one before it computes; only the first loads, and only the last must
store. Of every tensor between them the activation buffer holds the rows that are still needed, in a ring
(compiler/plan/row_ring.py), so that no row is computed or loaded twice. Weights, parameters and value tables of a
group stay in their buffers, too. It is done where fewer cycles are predicted, or about as many and fewer bytes. Where
weights do not stay, two layers may hand over blocks of channels instead (compiler/schedule/channel_blocks.py).
"""

from collections.abc import Iterator, Sequence

from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.band_plans import BandPlanner, Group
from tilewright.compiler.plan.cost import array_cycles, input_cycles
from tilewright.compiler.plan.footprint import input_bytes
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.problem import distinct
from tilewright.compiler.schedule.chaining import AnyPlan, can_store_twice, chain, chains, follows
from tilewright.compiler.schedule.channel_blocks import groups_by_blocks
from tilewright.compiler.schedule.flow import Flow
from tilewright.isa.machine import TABLE_SLOTS, Machine

__all__ = ["in_bands"]

_LONGEST = 4
"""Layers of a group, at most."""

_HEIGHTS = (1, 2, 3, 4, 6, 10)
"""Rows of a band that are tried."""

_PATIENCE = 200
"""A group may be predicted to take a 200th longer than its layers apart: it moves less, which saves energy.

Chosen by trial on the cycle engine, of 200 and none, for MobileNetV2 at 224x224 on base with outputs alone: 3,388,348
cycles and 8.6 MB with it; 3,387,418 cycles and 9.8 MB with none.
"""

_LEAST = 20_000
"""Cycles of a group, at least: prices of smaller ones do not know well how layers apart overlap.

Of twelve small chains on base the seven that had groups took 5 % more cycles with them, by the cycle engine.
"""


def in_bands(plans: Sequence[AnyPlan], network: Network, machine: Machine, options: Options, *,
             keep_tensors: bool = False) -> tuple[AnyPlan, ...]:
    """Return ``plans`` with those layers in groups, and those in chains, that gain by it.

    Parameters
    ----------
    keep_tensors
        Every tensor is to be stored, on chip or not: then there are no groups, which bring little if the store is busy
        with all their rows twice.
    """
    chained = chain(plans, network, machine, options, keep_tensors=keep_tensors)
    options = options.on(machine)
    if not options.bands or keep_tensors:
        return chained
    planner, flow = BandPlanner(machine, options), Flow(network)
    best: list[tuple[float, Group | None]] = [(0.0, None)] * (len(plans) + 1)
    for first in reversed(range(len(plans))):
        best[first] = (best[first + 1][0], None)
        for group in (*_groups(first, plans, flow, planner),
                      *groups_by_blocks(first, plans, flow, machine, options)):
            stop = first + len(group.plans)
            gain = _gain(group, range(first, stop), plans, chained, machine) + best[stop][0]
            if gain > best[first][0]:
                best[first] = gain, group
    found, first = list(plans), 0
    while first < len(plans):
        group_here = best[first][1]
        if group_here is not None:
            found[first:first + len(group_here.plans)] = group_here.plans
        first += len(group_here.plans) if group_here is not None else 1
    return chain(found, network, machine, options) if found != list(plans) else chained


def _gain(group: Group, layers: range, plans: Sequence[AnyPlan], chained: Sequence[AnyPlan],
          machine: Machine) -> float:
    """Return the cycles that a group is worth, with a little for every byte that it saves; 0 if too slow or too small.

    Chains that it cuts are taken to be lost.
    """
    if group.cycles < _LEAST:
        return 0.0
    cut = [each for each in chains(chained) if each.start < layers.stop and layers.start < each.stop]
    first = min([layers.start, *(each.start for each in cut)])
    stop = max([layers.stop, *(each.stop for each in cut)])
    apart = [plans[index] for index in range(first, stop) if index not in layers]
    before = chained[first:stop]
    cycles = sum(each.cost.cycles for each in before) - sum(each.cost.cycles for each in apart) - group.cycles
    cycles -= sum(_early(chained[index - 1], chained[index], machine) for index in layers if index)
    moved = sum(each.cost.bytes for each in before if isinstance(each, LayerPlan)) \
        - sum(each.cost.bytes for each in apart if isinstance(each, LayerPlan)) - group.bytes
    patience = group.cycles / _PATIENCE
    if cycles < 0 and (moved <= 0 or cycles < -patience):
        return 0.0
    return cycles + patience + moved / 1e6


def _early(before: AnyPlan, plan: AnyPlan, machine: Machine) -> int:
    """Return the cycles of loads that a layer, which waits for the bus, has behind it when the layer before ends.

    That is as much as the layer before leaves of the bus, and as queues and buffer have room for.
    """
    if not (isinstance(before, LayerPlan) and isinstance(plan, LayerPlan)) or plan.chip.input or plan.splits_input:
        return 0
    waits = plan.cost.bytes // machine.bus_bytes - _array(plan, machine)
    spare = _array(before, machine) - before.cost.bytes // machine.bus_bytes
    problem, tile = plan.problem(machine), plan.largest
    tiles = machine.activation_bytes // input_bytes(tile, plan.layer, plan.nest) - 1
    return max(0, min(waits, spare, min(tiles, machine.queue_depth) * input_cycles(problem, tile)))


def _array(plan: LayerPlan, machine: Machine) -> int:
    return array_cycles(plan.problem(machine), distinct(plan.tiles), plan.blocks)


def _groups(first: int, plans: Sequence[AnyPlan], flow: Flow, planner: BandPlanner) -> Iterator[Group]:
    """Yield the best group of each length that begins with layer ``first``."""
    head = plans[first]
    if not isinstance(head, LayerPlan):
        return
    group, stored = [head], []
    for index in range(first + 1, min(first + _LONGEST, len(plans))):
        behind = plans[index]
        if not (isinstance(behind, LayerPlan) and follows(group[-1].layer, behind.layer)):
            return
        residual = behind.layer.residual
        if residual is not None and residual.tensor in {each.layer.output for each in group}:
            return
        stored.append(flow.needed(index - 1, {index}))
        if stored[-1] and not can_store_twice(group[-1], planner.machine):
            return
        group.append(behind)
        if sum(each.layer.table is not None for each in group) > TABLE_SLOTS:
            return
        found = [each for height in _HEIGHTS if height < behind.layer.out_shape[1]
                 if (each := planner.plan(group, height, [*stored, True])) is not None]
        if not found:
            # Longer groups need more room.
            return
        yield min(found, key=lambda each: (each.cycles, each.bytes))
