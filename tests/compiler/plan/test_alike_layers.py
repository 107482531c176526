"""Plans of layers that are alike: the same as each planned by itself."""

from dataclasses import replace

import numpy as np

from tests.compiler.plan.test_planner import conv
from tests.support.machines import WINOGRAD_MACHINES
from tests.support.random_layers import Shape, build_layer
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.options import BEST
from tilewright.compiler.plan import alike_layers
from tilewright.compiler.plan.alike_layers import geometry, plan_once
from tilewright.compiler.plan.planner import plan_layer

BASE = WINOGRAD_MACHINES["base"]


def planned(layer):
    return plan_once(layer, BASE, BEST, LayerLayouts.gap_free(layer))


def test_a_layer_like_another_gets_its_plan_and_keeps_its_own_values():
    first = replace(conv(16, 16, 8, 3, pad=1), name="first")
    second = replace(first, name="second", weights=np.ones_like(first.weights))
    plan = planned(first)
    again = planned(second)
    assert (again.layer, again.nest, again.tiles, again.cost) == (second, plan.nest, plan.tiles, plan.cost)
    assert again.work.weights is second.weights


def test_what_is_computed_at_stride_one_keeps_that_form():
    axis = Shape(9, 3, 2, 1, 1, 1)
    layer = replace(build_layer(np.random.default_rng(0), "conv", 16, 16, 16, [axis, axis]), pool=None, residual=None)
    layer = replace(layer, out_shape=layer.conv_shape)
    first, again = planned(layer), planned(replace(layer, name="again"))
    assert geometry(first.work) == geometry(again.work)
    assert again.cost == plan_layer(layer, BASE).cost


def test_layers_that_differ_are_planned_apart():
    layer = conv(16, 16, 8, 3, pad=1)
    for other in (conv(16, 32, 8, 3, pad=1), conv(16, 16, 9, 3, pad=1)):
        assert geometry(layer) != geometry(other)
        assert planned(other).cost == plan_layer(other, BASE).cost


def test_no_more_is_kept_than_stated(monkeypatch):
    alike_layers._plans.clear()
    monkeypatch.setattr(alike_layers, "MOST_PLANS", 1)
    planned(conv(16, 16, 8, 3, pad=1))
    planned(conv(16, 32, 8, 3, pad=1))
    assert len(alike_layers._plans) == 1
