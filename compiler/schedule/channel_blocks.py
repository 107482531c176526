"""Choose layers that hand over blocks of channels at full height, so that no weight is loaded twice.

A depthwise layer needs, for a block of its channels, no others. So the layer before computes a block of channels of all
rows, and the depthwise layer the same channels a block behind it: the activation buffer holds two blocks of what lies
between, and that never leaves the chip. Every weight is loaded once, as it is needed; bands of rows
(compiler/schedule/bands.py) are for layers whose weights stay. The layer behind may find its whole input on chip, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.algorithms import loop_nests
from tilewright.compiler.plan.band_plans import Group
from tilewright.compiler.plan.cost import (
    HANDOVER,
    TURNAROUND,
    Cost,
    array_cycles,
    input_cycles,
    store_cycles,
    weight_transfers,
)
from tilewright.compiler.plan.footprint import (
    WeightBlock,
    block_words,
    input_bytes,
    result_bytes,
    ring_space,
    usable_words,
)
from tilewright.compiler.plan.planner import LayerPlan, cut_blocks, holds_all, problems, whole_kernels
from tilewright.compiler.plan.problem import BEHIND, OnChip, Problem, Tiling, fits
from tilewright.compiler.plan.tiles import Tile, axes, whole_tile
from tilewright.compiler.schedule.chaining import (
    AnyPlan,
    can_store_twice,
    follows,
    join,
)
from tilewright.compiler.schedule.kept_inputs import kept_bytes
from tilewright.compiler.schedule.on_chip import padding_cycles
from tilewright.compiler.schedule.tensor_flow import Flow
from tilewright.isa.machine import Machine

__all__ = ["groups_by_blocks"]


@dataclass(frozen=True, slots=True)
class _Blocked:
    """One way to compute a layer of which a block has so many lane groups."""

    problem: Problem
    tile: Tile
    blocks: tuple[WeightBlock, ...]

    def plan(self, layer: Layer, chip: OnChip, channels: int) -> LayerPlan:
        """Return the plan of ``layer``, with what it takes by itself as its cost."""
        tiling = Tiling(copies={self.tile: 1}, blocks=self.blocks, weights_outer=False, splits_input=False, chip=chip)
        problem = self.problem
        stores, _ = store_cycles(problem, tiling)
        loads = 0 if chip.input else input_cycles(problem, self.tile)
        traffic = stores + loads + weight_transfers(problem, tiling).all
        cost = Cost(array_cycles(problem, tiling.copies, self.blocks), traffic * problem.machine.bus_bytes,
                    tiling.steps)
        return LayerPlan(layer=layer, work=problem.layer, nest=problem.nest, tiles=(self.tile,), blocks=self.blocks,
                         weights_outer=False, splits_input=False, cost=cost, layouts=problem.layouts, chip=chip,
                         channels_at_once=channels)


def groups_by_blocks(first: int, plans: Sequence[AnyPlan], flow: Flow, machine: Machine,
                     options: Options) -> Iterator[Group]:
    """Yield the ways in which layer ``first`` can hand over blocks of channels, with and without the layer behind."""
    if first + 1 == len(plans):
        return
    head, second = plans[first], plans[first + 1]
    if not (isinstance(head, LayerPlan) and isinstance(second, LayerPlan) and _can(head.layer, second.layer)):
        return
    stored = flow.needed(first, {first + 1})
    if stored and not can_store_twice(head, machine):
        return
    best: dict[int, Group] = {}
    for pair in _pairs(head, second, machine, options, stored=stored):
        for group in _with_third(pair, first, plans, flow, machine, options):
            known = best.get(len(group.plans))
            if known is None or (group.cycles, group.bytes) < (known.cycles, known.bytes):
                best[len(group.plans)] = group
    yield from best.values()


def _can(first: Layer, second: Layer) -> bool:
    """Tell whether ``second`` needs of ``first`` just the channels that it computes."""
    channels = second.in_shape[0]
    return (follows(first, second) and second.kind == "conv" and second.groups == channels == second.conv_shape[0]
            and all(each.factor is None and each.unit is None and each.images == 1 for each in (first, second))
            and (second.residual is None or second.residual.tensor != first.output))


def _pairs(head: LayerPlan, second: LayerPlan, machine: Machine, options: Options, *,
           stored: bool) -> Iterator[tuple[LayerPlan, LayerPlan]]:
    """Yield the plans of two layers that fit the machine together."""
    for ahead in problems(head.layer, head.layouts, machine, options):
        for behind in problems(second.layer, second.layouts, machine, options):
            for groups in sorted({*whole_kernels(ahead)} & {*whole_kernels(behind)}):
                channels = groups * machine.lanes
                if channels >= second.layer.in_shape[0]:
                    continue
                forms = _form(ahead, groups), _second_form(behind, groups, channels)
                if forms[0] is None or forms[1] is None:
                    continue
                pair = (forms[0].plan(head.layer, OnChip(feeds=BEHIND, stored=stored), 0),
                        forms[1].plan(second.layer, OnChip(input=True), channels))
                if _fit(pair, machine):
                    yield pair


def _form(problem: Problem, groups: int) -> _Blocked | None:
    """Return a layer in blocks of ``groups`` lane groups at full height; None if that does not fit."""
    height, width = axes(problem.layer)
    form = _Blocked(problem, Tile(height.cut(0, height.out), width.cut(0, width.out)), cut_blocks(problem, groups, 1))
    return form if fits(problem, form.tile, form.blocks) else None


def _second_form(problem: Problem, groups: int, channels: int) -> _Blocked | None:
    """Return the same for a layer that finds ``channels`` of its input at a time."""
    layer, whole = problem.layer, problem.nest
    few = replace(layer, in_shape=(channels, *layer.in_shape[1:]), conv_shape=(channels, *layer.conv_shape[1:]),
                  out_shape=(channels, *layer.out_shape[1:]), groups=channels)
    nest = next((replace(each, reuse=whole.reuse) for each in loop_nests(few, whole.algorithm, problem.machine)
                 if replace(each, overread=0, reuse=whole.reuse) == replace(whole, overread=0)), None)
    if nest is None or not nest.group_step:
        return None
    form = _form(replace(problem, layer=few, nest=nest), groups)
    if form is None or not holds_all(form.tile, few):
        return None
    problem = replace(problem, nest=nest)
    return replace(form, problem=problem, blocks=cut_blocks(problem, groups, 1))


def _fit(pair: tuple[LayerPlan, LayerPlan], machine: Machine) -> bool:
    """Tell whether a block of each layer fits the buffers of weights and of results at the same time."""
    words = sum(block_words(plan.blocks[0], plan.nest, machine) for plan in pair)
    results = sum(result_bytes(plan.tiles[0], plan.layer, plan.blocks[0].channels) for plan in pair)
    return words <= usable_words(machine) and results <= machine.result_bytes and _held(pair, machine) is not None


def _held(plans: Sequence[LayerPlan], machine: Machine) -> int | None:
    """Return the bytes of the activation buffer that the inputs of ``plans`` take; None if there are not so many."""
    head = plans[0]
    sizes = [input_bytes(whole_tile(head.work, head.tiles[0].columns), head.layer, head.nest),
             *(kept_bytes(plan) for plan in plans[1:])]
    held = sum(ring_space(size, machine.activation_bytes, machine.input_unit) for size in sizes)
    return held if held <= machine.activation_bytes else None


def _with_third(pair: tuple[LayerPlan, LayerPlan], first: int, plans: Sequence[AnyPlan], flow: Flow,
                machine: Machine, options: Options) -> Iterator[Group]:
    """Yield ``pair`` as a group, and with the layer behind it if that can have its whole input on chip."""
    yield _group(pair, machine)
    third = plans[first + 2] if first + 2 < len(plans) else None
    if not (isinstance(third, LayerPlan) and follows(pair[1].layer, third.layer)) \
            or flow.weighs(first + 2, (first, first + 1)):
        return
    stored = flow.needed(first + 1, {first + 2})
    if stored and not can_store_twice(pair[1], machine):
        return
    joined = join(pair[1], third, machine, options, stored=stored)
    if joined is None or joined[0].blocks != pair[1].blocks:
        return
    kept = replace(pair[1], chip=joined[0].chip)
    if _held((*pair, joined[1]), machine) is not None:
        yield _group((pair[0], kept, joined[1]), machine)


def _group(plans: tuple[LayerPlan, ...], machine: Machine) -> Group:
    """Return the group of ``plans``, with what each is predicted to take as its cost.

    The two layers that take turns need the longest of array, bus and store; a third one as by itself.
    """
    pair, third = plans[:2], plans[2:]
    parts = [(plan.problem(machine), plan.tiling()) for plan in pair]
    busy = [array_cycles(problem, tiling.copies, tiling.blocks) for problem, tiling in parts]
    moved = [store_cycles(problem, tiling) for problem, tiling in parts]
    first = input_cycles(parts[0][0], pair[0].tiles[0])
    traffic = [stores + weight_transfers(problem, tiling).all
               for (stores, _), (problem, tiling) in zip(moved, parts, strict=True)]
    last = HANDOVER if third else moved[1][0] // len(pair[1].blocks) + TURNAROUND
    padding = sum(padding_cycles(plan, machine) for plan in plans[1:])
    cycles = first + padding + max(sum(busy), sum(traffic), sum(map(sum, moved))) + last
    costs = [Cost(cycles * each // sum(busy), (bus + load) * machine.bus_bytes, len(plan.blocks))
             for each, bus, load, plan in zip(busy, traffic, (first, 0), pair, strict=True)]
    found = tuple(replace(plan, cost=cost) for plan, cost in zip(pair, costs, strict=True)) + third
    return Group(found, cycles + sum(plan.cost.cycles for plan in third), sum(plan.cost.bytes for plan in found))
