"""The price of a tiling: the slower unit, what cannot overlap, and what takes turns for want of room."""

from dataclasses import replace

import pytest

from tests.compiler.plan.test_planner import conv
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.compiler.plan.cost import (
    HANDOVER,
    TURNAROUND,
    array_cycles,
    load_transfers,
    price,
    store_cycles,
    weight_transfers,
)
from tilewright.compiler.plan.planner import plan_layer
from tilewright.compiler.plan.problem import BEHIND, OnChip


@pytest.fixture
def plan():
    return plan_layer(replace(conv(64, 64, 28, 3, pad=1), table=None), WINOGRAD_MACHINES["base"])


def test_a_layer_takes_its_slower_unit_and_what_cannot_overlap(plan):
    problem, tiling = plan.problem(WINOGRAD_MACHINES["base"]), replace(plan.tiling(), stays=False)
    compute = array_cycles(problem, tiling.copies, tiling.blocks)
    loads, weights = load_transfers(problem, tiling), weight_transfers(problem, tiling)
    stores, copies = store_cycles(problem, tiling)
    traffic = loads.all + weights.all + stores
    slower = max(compute + loads.first, traffic + compute // tiling.steps)
    least = slower + stores // tiling.steps + TURNAROUND
    assert copies == 0
    assert price(problem, tiling).bytes == traffic * WINOGRAD_MACHINES["base"].bus_bytes
    assert price(problem, tiling).cycles - least in (0, weights.first, loads.all, weights.all, stores)


def test_an_output_that_stays_on_chip_needs_no_store(plan):
    problem, tiling = plan.problem(WINOGRAD_MACHINES["base"]), plan.tiling()
    kept = replace(tiling, chip=OnChip(feeds=BEHIND, stored=False))
    stores, copies = store_cycles(problem, kept)
    assert stores == 0
    assert copies > 0
    assert price(problem, kept).bytes < price(problem, tiling).bytes
    assert HANDOVER < TURNAROUND


def test_weights_come_again_for_every_tile_unless_their_loop_is_outside(plan):
    problem, tiling = plan.problem(WINOGRAD_MACHINES["base"]), plan.tiling()
    halves = tuple(replace(tiling.blocks[0], index=i, first_group=i) for i in range(2))
    inner = replace(tiling, blocks=halves, weights_outer=False, stays=False)
    outer = replace(inner, weights_outer=True)
    assert weight_transfers(problem, inner).all == tiling.tiles * weight_transfers(problem, outer).all
    times = 2 if tiling.tiles > 1 else 1
    assert load_transfers(problem, outer).all == times * load_transfers(problem, inner).all


def test_what_has_no_room_for_two_takes_turns_with_the_array(plan):
    problem, tiling = plan.problem(WINOGRAD_MACHINES["base"]), replace(plan.tiling(), stays=False)
    need = store_cycles(problem, tiling)[0]
    results = max(len(t.rows.out) * len(t.columns.out) for t in tiling.copies) * tiling.blocks[0].channels
    ample = replace(problem, machine=replace(WINOGRAD_MACHINES["base"], result_bytes=1 << 20))
    tight = replace(problem, machine=replace(WINOGRAD_MACHINES["base"], result_bytes=-(-results // 1024) * 1024))
    assert tiling.steps > 1
    assert price(tight, tiling).cycles - price(ample, tiling).cycles == need
