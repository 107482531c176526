"""Choose the results that stay on chip: later layers find them in the activation buffer, where they read their input.

A layer is *chained* to those before it if they compute its whole input, and the buffer has room: for that input from
when the first of them begins (compiler/schedule/kept_inputs.py), and for two input tiles of the chain's first layer. A
result may have several readers, each with an input of its own, and several layers may compute channels of one input, as
of a concatenation. Then nothing is loaded, and what all readers find on chip is not stored either. It is done where the
predicted cost falls.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.compiler.network.layers import Layer, Network
from tilewright.compiler.network.memory_map import root_of
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.alike_layers import plan_chained_once
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.compiler.plan.cost import HANDOVER, TURNAROUND
from tilewright.compiler.plan.planner import LayerPlan, aligned, busy_cycles, priced
from tilewright.compiler.plan.problem import APART, BEHIND, Feed, OnChip
from tilewright.compiler.schedule.groups import chained_to
from tilewright.compiler.schedule.kept_inputs import branches, lay_out
from tilewright.compiler.schedule.on_chip import fill_cycles, whole_of
from tilewright.compiler.schedule.tensor_flow import Flow
from tilewright.isa.machine import Machine

__all__ = [
    "STORE_SHARE", "AnyPlan", "Chain", "ChainPlanner", "can_store_twice", "chain", "chains",
    "computed_together", "feeding", "follows", "join", "may_stay_on_chip", "moved_less", "on_chip_only", "with_chains",
]

_BANK_ROW = 4
"""Banks of a row of a 4x4 block: in the blocked layout, results start at a channel that is a multiple of it."""

_PATIENCE = 500
"""A chained layer and the one before it may be predicted to take a 500th longer: they move less, which saves energy.

Chosen by trial on the fast engine, of none, 500, 200 and more: ResNet18 at 32x32 on base moves 15.0 % less with it and
takes 0.1 % less time; with none 0.2 % less and 0.1 %, with 200 18.0 % less and 0.1 % more.
"""

_BYTES = 32
"""Bytes that are worth as much as a cycle, for chains with branches: about the energy of either."""

STORE_SHARE = 3 / 4
"""Of the array's time that results stored twice may take."""

AnyPlan = LayerPlan | CorePlan


@dataclass(frozen=True, slots=True)
class Chain:
    """Plans of layers that are chained, and what that is worth in cycles.

    Layers ``found`` have their inputs on chip; they are counted as in the network, from the chain's ``first`` on.
    """

    first: int
    plans: tuple[LayerPlan, ...]
    worth: int = 0
    found: frozenset[int] = frozenset()

    @property
    def stop(self) -> int:
        """The layer behind the last."""
        return self.first + len(self.plans)


def chain(plans: Sequence[AnyPlan], network: Network, machine: Machine, options: Options, *,
          keep_tensors: bool = False) -> tuple[AnyPlan, ...]:
    """Return ``plans`` with those layers chained that gain by it.

    Parameters
    ----------
    keep_tensors
        Every tensor is to be stored, on chip or not.
    """
    options = options.on(machine)
    if not options.chain:
        return tuple(plans)
    planner = ChainPlanner(Flow(network), machine, options, keep_tensors)
    plain = planner.one_behind_the_other(plans)
    branched = planner.branched(plans, plain)
    if branched:
        plans = with_chains(plans, branched)
        plain = planner.one_behind_the_other(plans)
    return with_chains(plans, plain)


def with_chains(plans: Sequence[AnyPlan], chosen: Sequence[Chain]) -> tuple[AnyPlan, ...]:
    """Return ``plans`` with those of the chains ``chosen``."""
    found = list(plans)
    for each in chosen:
        found[each.first:each.stop] = each.plans
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ChainPlanner:
    """Plans chains of the layers of one network; ``keep`` tells that every tensor is to be stored."""

    flow: Flow
    machine: Machine
    options: Options
    keep: bool

    def chains_from(self, index: int, plans: Sequence[AnyPlan]) -> Iterator[Chain]:
        """Yield the chains that begin with layer ``index``, each a layer longer than the one before."""
        head, machine = plans[index], self.machine
        if not isinstance(head, LayerPlan) or head.holds or head.chip != APART:
            return
        longer = Chain(index, (head,))
        for place in range(index + 1, len(plans)):
            behind = plans[place]
            if not isinstance(behind, LayerPlan) or behind.chip != APART:
                return
            following = self._with(longer, behind)
            if following is None:
                return
            longer = following
            if lay_out(longer.plans, machine).size > machine.activation_bytes:
                return
            twice = [number for number, plan in enumerate(longer.plans, index)
                     if plan.chip.output and plan.chip.stored and not can_store_twice(plan, machine)]
            if any(self.keep or self.flow.needed(number, range(len(plans))) for number in twice):
                return
            # Until their last reader is there, too, memory has what the others read.
            if not twice:
                yield longer

    def one_behind_the_other(self, plans: Sequence[AnyPlan]) -> list[Chain]:
        """Return the chains without branches that gain most, found from the first layer on."""
        found: list[Chain] = []
        index = 0
        while index < len(plans):
            best = None
            for each in self.chains_from(index, plans):
                # Of equals the longer one: it moves less.
                if not branches(each.plans) and each.worth >= (best.worth if best else 0):
                    best = each
            if best is not None:
                found.append(best)
            index = best.stop if best is not None else index + 1
        return found

    def branched(self, plans: Sequence[AnyPlan], plain: Sequence[Chain]) -> list[Chain]:
        """Return the chains with branches that are worth most together; chains of ``plain`` that they cut are lost."""
        best: list[tuple[float, Chain | None]] = [(0.0, None)] * (len(plans) + 1)
        for first in reversed(range(len(plans))):
            best[first] = (best[first + 1][0], None)
            for each in self.chains_from(first, plans):
                lost = sum(_worth(other, plans) for other in plain if other.first < each.stop and first < other.stop)
                gain = _worth(each, plans) - lost
                if each.worth >= 0 < gain and branches(each.plans) and gain + best[each.stop][0] > best[first][0]:
                    best[first] = gain + best[each.stop][0], each
        found, index = [], 0
        while index < len(plans):
            here = best[index][1]
            if here is not None:
                found.append(here)
            index = here.stop if here is not None else index + 1
        return found

    def _with(self, chain: Chain, behind: LayerPlan) -> Chain | None:
        """Return ``chain`` with the layer behind it; None if that one cannot find its whole input on chip."""
        first, reader = chain.first, chain.first + len(chain.plans)
        sources = self.flow.sources(reader)
        if sources is None or min(sources) < first or behind.layer.unit is not None:
            return None
        plan = plan_chained_once(behind.layer, self.machine, self.options, behind.layouts, OnChip(input=True), 1)
        if plan is None or (self.flow.weighs(reader, range(reader)) and not _waits_for_weights(plan)):
            return None
        found, after = chain.found | {reader}, list(chain.plans)
        for writer, channel in sources.items():
            fed = feeding(chain.plans[writer - first], Feed(reader - writer, channel), plan, self.machine, self.options,
                          stored=self.keep or self.flow.needed(writer, found))
            if fed is None:
                return None
            after[writer - first] = fed
        before = [*(chain.plans[writer - first] for writer in sources), behind]
        worth = _saved([*(after[writer - first] for writer in sources), plan], before, self.machine)
        worth += sum(each.cost.cycles for each in before) // _PATIENCE
        worth -= self._padding(chain, plan, behind)
        return Chain(first, (*after, plan), chain.worth + worth, found)

    def _padding(self, chain: Chain, plan: LayerPlan, apart: LayerPlan) -> int:
        """Return the cycles by which padding delays a layer in the chain; apart, some hide behind other work."""
        head, machine = chain.plans[0], self.machine
        padding = fill_cycles(plan, whole_of(plan), machine)
        if len(apart.tiles) == 1:
            # That is written between the layers now; of several tiles it comes while the layer before computes.
            padding = max(0, padding - fill_cycles(apart, apart.tiles[0], machine))
        # It hides behind the loads of the first layer, but for the first of these.
        return 0 if (head.splits_input or len(head.tiles) > 1) and len(chain.plans) > 1 else padding


def _waits_for_weights(plan: LayerPlan) -> bool:
    """Tell whether a load of data, that of a residual, can wait for computed weights where the input needs none."""
    return plan.layer.residual is not None and not plan.blocks[0].holds


def _worth(chain: Chain, plans: Sequence[AnyPlan]) -> float:
    """Return the cycles that a chain is worth, bytes included."""
    return chain.worth + moved_less(chain.plans, plans[chain.first:chain.stop]) / _BYTES


def moved_less(plans: Sequence[AnyPlan], apart: Sequence[AnyPlan]) -> int:
    """Return the bytes that ``plans`` need not move across the bus, and ``apart``, those of the same layers, move."""
    before, after = (sum(each.cost.bytes for each in several if isinstance(each, LayerPlan))
                     for several in (apart, plans))
    return before - after


def can_store_twice(plan: LayerPlan, machine: Machine) -> bool:
    """Tell whether results can be stored both to memory and to the buffer without the array waiting for the store.

    A quarter of the time is left for what else keeps the store waiting: the bus, and post-processing at its buffer.
    The array never waits for fewer words than the cycles that a handover saves.
    """
    results = math.prod(plan.layer.out_shape)
    words = results / machine.bus_bytes + results / machine.written_bytes
    tiles = math.prod(plan.layer.conv_shape) / machine.lanes
    array = plan.nest.steps * tiles / (4 if plan.nest.winograd else 1)
    return words <= max(STORE_SHARE * array, TURNAROUND - HANDOVER)


def follows(first: Layer, second: Layer) -> bool:
    """Tell whether ``second`` takes as its input just what ``first`` computes."""
    return (second.input == first.output and second.in_shape == first.out_shape and second.unit is None
            and first.words.outputs == second.words.inputs == 1)


def join(first: LayerPlan, second: LayerPlan, machine: Machine, options: Options, *,
         stored: bool) -> tuple[LayerPlan, LayerPlan] | None:
    """Return the plans of two layers of which the second finds its input on chip; None if it cannot."""
    behind = plan_chained_once(second.layer, machine, options, second.layouts, OnChip(input=True), 1)
    if behind is None:
        return None
    before = feeding(first, BEHIND[0], behind, machine, options, stored=stored)
    return None if before is None else (before, behind)


def feeding(first: LayerPlan, feed: Feed, behind: LayerPlan, machine: Machine, options: Options, *,
            stored: bool) -> LayerPlan | None:
    """Return the plan of a layer whose results one more layer finds on chip; None if they cannot be put there."""
    chip = replace(first.chip, feeds=(*first.chip.feeds, feed), stored=stored)
    unit = _BANK_ROW if behind.nest.winograd else 1
    if feed.channel % unit:
        return None
    if aligned(first.blocks, unit):
        return priced(first, machine, chip)
    if not first.chip.input:
        return None
    before = plan_chained_once(first.layer, machine, options, first.layouts, chip, unit)
    # What it reads lies as it did, or the layer before would have to be planned anew.
    return before if before is not None and before.nest == first.nest else None


def _saved(after: Sequence[LayerPlan], before: Sequence[LayerPlan], machine: Machine) -> int:
    """Return the cycles that ``after`` is predicted to save, plans of which the last is that of the reader.

    The first of several tiles comes in while the layer before computes: then only what array and bus have to do counts.
    """
    def cycles(plan: LayerPlan) -> int:
        return plan.cost.cycles if len(before[-1].tiles) == 1 else busy_cycles(plan, machine)
    return sum(map(cycles, before)) - sum(map(cycles, after))


def computed_together(plans: Sequence[AnyPlan]) -> tuple[range, ...]:
    """Return the groups of layers that take turns, by bands of rows or blocks of channels, as ranges of numbers."""
    bands = tuple(range(index, index + plan.bands.layers) for index, plan in enumerate(plans)
                  if isinstance(plan, LayerPlan) and plan.bands is not None and plan.bands.place == 0)
    return bands + tuple(range(index - 1, index + 1) for index, plan in enumerate(plans)
                         if isinstance(plan, LayerPlan) and plan.channels_at_once)


def chains(plans: Sequence[AnyPlan]) -> Iterator[range]:
    """Yield the layers of each chain, or group, of layers that hand results over on chip."""
    index = 0
    while index < len(plans):
        plan = plans[index]
        behind = chained_to(plans, index) if isinstance(plan, LayerPlan) else []
        if behind:
            yield range(index, behind[-1] + 1)
        index += 1 + len(behind)


def on_chip_only(plans: Sequence[AnyPlan], network: Network) -> frozenset[str]:
    """Return the tensors that never reach main memory."""
    return _without_memory(network, [index for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)
                                     and plan.chip.output and not plan.chip.stored])


def may_stay_on_chip(plans: Sequence[AnyPlan], network: Network) -> frozenset[str]:
    """Return the tensors that need no place in memory, even if this program stores them to be looked at."""
    flow = Flow(network)
    found = [index for index, plan in enumerate(plans) if isinstance(plan, LayerPlan) and plan.chip.input]
    return _without_memory(network, [index for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)
                                     and plan.chip.output and not flow.needed(index, found)])


def _without_memory(network: Network, layers: Collection[int]) -> frozenset[str]:
    """Return the tensors that ``layers`` write, those that consist of nothing else, and what else lies in these."""
    tensors = network.tensors
    written = {name for index in layers for name in network.layers[index].writes}
    stored = {root_of(tensors[name]) for index, layer in enumerate(network.layers) for name in layer.writes
              if index not in layers}
    given = {root_of(info) for info in network.inputs}
    found = written | {root_of(tensors[name]) for name in written} - stored - given
    return frozenset(found | {name for name, info in tensors.items() if root_of(info) in found})
