"""Pooling and bounds behind a concatenation end the layers before it."""

from dataclasses import replace

import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.options import BEST
from tilewright.compiler.passes.pass_order import compile_network


def fire(form, *, branches=("conv", "conv"), relu=False):
    """Return a concatenation of branches, then max pooling and a convolution."""
    model = ModelBuilder(form)
    x = model.conv(model.input((1, 3, 9, 9)), 8)
    parts = []
    for branch in branches:
        match branch:
            case "conv":
                parts.append(model.conv(x, 4, kernel=3, pads=(1, 1, 1, 1)))
            case "pool":
                parts.append(model.max_pool(x, 3, strides=(1, 1), pads=(1, 1, 1, 1)))
    joined = model.concat(parts, parts[0].scale)
    if relu:
        joined = model.relu(joined)
    pooled = model.max_pool(joined, 3, strides=(2, 2))
    return model.finish(model.conv(pooled, 5))


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("relu", [False, True])
def test_branches_end_with_the_pooling(form, relu):
    network = assert_layers(fire(form, relu=relu))
    assert sum(layer.pool is not None for layer in network.layers) == 2
    assert not any(layer.kind == "pass" for layer in network.layers)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_a_branch_that_pools_already_is_pooled_by_itself(form):
    network = assert_layers(fire(form, branches=("conv", "pool")))
    assert sum(layer.pool is not None for layer in network.layers) == 3


def test_pooling_stays_behind_a_concatenation_of_what_nobody_computes():
    model = ModelBuilder("qdq")
    x = model.input((1, 4, 8, 8))
    joined = model.concat([x, x], x.scale)
    network = compile_network(model.finish(model.conv(model.max_pool(joined), 4)))
    assert sum(layer.pool is not None for layer in network.layers) == 1


def test_fusion_that_is_switched_off_leaves_the_pooling():
    network = compile_network(fire("qdq"), replace(BEST, fuse_pool=False))
    assert sum(layer.pool is not None for layer in network.layers) == 1
