"""Choose groups of layers that are computed band by band of rows, so that what lies between them never leaves the chip.

In a group each layer takes as its input what others of the group compute; only the first loads, and only the last must
store. A result may have several readers, and several layers may compute channels of one input, as of a concatenation.
Of every input the activation buffer holds the rows that are still needed, in a ring (compiler/plan/row_ring.py), so
that no row is computed or loaded twice. Weights, parameters and value tables of a group stay in their buffers, too. It
is done where fewer cycles are predicted, or about as many and fewer bytes. Where weights do not stay, two layers may
hand over blocks of channels instead (compiler/schedule/channel_blocks.py).
"""

from collections.abc import Iterator, Sequence

from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.band_graph import BandGraph
from tilewright.compiler.plan.band_plans import BandPlanner, Group
from tilewright.compiler.plan.cost import array_cycles, input_cycles
from tilewright.compiler.plan.footprint import input_bytes, table_bytes
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.problem import Feed, distinct
from tilewright.compiler.schedule.chaining import (
    AnyPlan,
    Chain,
    ChainPlanner,
    can_store_twice,
    chain,
    moved_less,
    with_chains,
)
from tilewright.compiler.schedule.channel_blocks import groups_by_blocks
from tilewright.compiler.schedule.tensor_flow import Flow
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, Machine

__all__ = ["in_bands"]

_LONGEST = 4
"""Layers of a group, at most."""

_LONGEST_BRANCHED = 6
"""The same of a group in which a result has several readers."""

_HEIGHTS = (1, 2, 3, 4, 6, 10)
"""Rows of a band that are tried."""

_PRICES = (32, 64, 128)
"""Bytes that are worth as much as a cycle: the fewest with which about as many cycles are predicted as for chains
without branches. So what groups and branches save of cycles is spent on bytes."""

_TOO_MUCH = 400
"""Part of the cycles that groups may be predicted to take more than chains without branches, for fewer bytes: a 400th.

With it the detector of two scales takes 0.4 % more cycles in RTL and moves a quarter less, and MobileNetV2 on base
takes no more cycles and moves 6.9 MB instead of 8.6 (docs/decisions/schedule.md).
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
    groups = [[*_groups(first, plans, flow, planner), *groups_by_blocks(first, plans, flow, machine, options)]
              for first in range(len(plans))]
    chain_planner = ChainPlanner(flow, machine, options, keep=False)
    planned = [[*chain_planner.chains_from(first, plans)] for first in range(len(plans))]
    most = _cycles(with_chains(plans, chain_planner.one_behind_the_other(plans))) * (1 + 1 / _TOO_MUCH)
    offers = (_together(plans, planned, groups, machine, price) for price in _PRICES)
    return next((each for each in offers if _cycles(each) <= most), chained)


def _together(plans: Sequence[AnyPlan], planned: Sequence[Sequence[Chain]], groups: Sequence[Sequence[Group]],
              machine: Machine, price: int) -> tuple[AnyPlan, ...]:
    """Return ``plans`` with the groups and chains that are worth most together.

    Each is compared with its layers apart: by the cycles that it saves, and the bytes, ``price`` of them for a cycle.
    """
    best: list[tuple[float, tuple[LayerPlan, ...]]] = [(0.0, ())] * (len(plans) + 1)
    for first in reversed(range(len(plans))):
        best[first] = (best[first + 1][0], ())
        offers = [(each.worth, each.plans) for each in planned[first] if each.worth >= 0]
        offers += [(_saved(group, first, plans, machine), group.plans) for group in groups[first]
                   if group.cycles >= _LEAST]
        for saved, found in offers:
            gain = saved + moved_less(found, plans[first:first + len(found)]) / price + best[first + len(found)][0]
            if gain > best[first][0]:
                best[first] = gain, found
    result, first = list(plans), 0
    while first < len(plans):
        here = best[first][1]
        result[first:first + len(here)] = here
        first += len(here) or 1
    return tuple(result)


def _cycles(plans: Sequence[AnyPlan]) -> int:
    return sum(plan.cost.cycles for plan in plans)


def _saved(group: Group, first: int, plans: Sequence[AnyPlan], machine: Machine) -> int:
    """Return the cycles by which a group is predicted to be faster than its layers apart."""
    layers = range(first, first + len(group.plans))
    early = sum(_early(plans[index - 1], plans[index], machine) for index in layers if index)
    return sum(plans[index].cost.cycles for index in layers) - early - group.cycles


def _early(before: AnyPlan, plan: AnyPlan, machine: Machine) -> int:
    """Return the cycles of a layer's loads that are over when the layer before ends, if the layer waits for the bus.

    The layer before leaves the bus idle for so long, and queues and buffer have room for so much.
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
    group: list[LayerPlan] = [head]
    feeds: list[list[Feed]] = [[]]
    for index in range(first + 1, min(first + _LONGEST_BRANCHED, len(plans))):
        behind, sources = plans[index], flow.sources(index)
        inside = range(first, index)
        if not isinstance(behind, LayerPlan) or behind.layer.unit is not None or flow.adds(index, inside) \
                or flow.weighs(index, inside) or sources is None or min(sources) < first:
            return
        for writer, channel in sources.items():
            feeds[writer - first].append(Feed(index - writer, channel))
        group.append(behind)
        feeds.append([])
        if len(group) > _LONGEST and all(len(each) < 2 for each in feeds):
            return
        if sum(table_bytes(each.layer) for each in group) > TABLE_SLOTS * TABLE_BYTES:
            return
        graph = BandGraph.of(feeds)
        stored = [not each or flow.needed(first + place, range(first, index + 1)) for place, each in enumerate(feeds)]
        heights = {each.layer.out_shape[1] for each, fed in zip(group, feeds, strict=True) if not fed}
        if graph is None or len(heights) > 1 or any(there and each and not can_store_twice(plan, planner.machine)
                                for there, each, plan in zip(stored, feeds, group, strict=True)):
            # Further readers may change that.
            continue
        found = [each for height in _HEIGHTS if height < behind.layer.out_shape[1]
                 if (each := planner.plan(group, graph, height, stored)) is not None]
        if found:
            yield min(found, key=lambda each: (each.cycles, each.bytes))
        elif all(len(each) < 2 for each in feeds):
            # Longer groups need more room.
            return
