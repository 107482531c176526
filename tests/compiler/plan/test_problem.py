"""Tilings count tiles of one shape together, and know the order of their steps."""

from dataclasses import replace

from tests.compiler.plan.test_planner import conv
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.plan.planner import plan_layer
from tilewright.compiler.plan.problem import Problem, distinct
from tilewright.compiler.plan.tiles import Tile, axes


def tiles_of(layer, rows):
    height, width = axes(layer)
    return tuple(Tile(cut, width.cut(0, width.out)) for cut in height.cuts(rows))


def test_tiles_of_one_shape_are_counted_together():
    tiles = tiles_of(conv(16, 16, 14, 3, pad=1), 4)
    copies = distinct(tiles)
    # The first stores a row of padding before the image, the two in the middle none, the last has two rows only.
    assert list(copies.values()) == [1, 2, 1]
    assert list(copies) == [tiles[0], tiles[1], tiles[3]]


def test_a_plan_tells_the_problem_that_it_solves_and_its_tiling():
    machine, layer = WINOGRAD_MACHINES["nano"], conv(64, 64, 28, 3, pad=1)
    plan = plan_layer(layer, machine)
    assert plan.problem(machine) == Problem(plan.work, LayerLayouts.gap_free(layer), plan.nest, machine)
    tiling = plan.tiling()
    assert (tiling.tiles, tiling.steps) == (len(plan.tiles), len(plan.tiles) * len(plan.blocks))
    assert tiling.first_tile == plan.tiles[0]
    assert tiling.largest_tile == plan.largest
    assert replace(plan, weights_outer=not plan.weights_outer).tiling().weights_outer != tiling.weights_outer
