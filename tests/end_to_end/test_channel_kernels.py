"""Depthwise layers with kernels and biases by channel: the same values, down to RTL under stalls, and fewer bytes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MORE_UNITS as SMALL
from tests.support.random_layers import Shape, build_layer
from tests.support.rtl import execute_rtl
from tests.support.side_by_side import side_by_side
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.options import BEST
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import MemoryTiming

PAIRS = replace(SMALL, name="pairs by channel", array="winograd_inner", lanes=8)
ONE = replace(SMALL, name="one lane by channel", lanes=1, clusters=1, post_lanes=1, column_reuse=False)


def depthwise_layers(seed):
    """Return depthwise layers of any number of channels, stride 1 and 2, one with weights beyond int8, and others."""
    rng, layers = np.random.default_rng(seed), []
    for channels, height, width, stride in ((10, 7, 9, 1), (16, 5, 6, 1), (25, 9, 4, 2), (40, 4, 4, 1)):
        made = build_layer(rng, "conv", channels, channels, channels,
                           [Shape(size, 3, stride, 1, 1, 1) for size in (height, width)])
        layers.append(replace(made, pool=None, residual=None, out_shape=made.conv_shape,
                              weights=np.clip(made.weights, -128, 127).astype(np.int8)))
    wide = layers[1].weights.astype(np.int16)
    wide[3, 0, 1, 1] = 200
    layers.append(replace(layers[1], weights=wide))
    layers.append(replace(layers[1], groups=8, weights=rng.integers(-128, 128, (16, 2, 3, 3)).astype(np.int8)))
    return side_by_side(layers), rng


def ran(machine, run):
    """Assert that the layers compute what the reference does; return whether each has kernels by channel."""
    network, rng = depthwise_layers(5)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    found, expected = run(compiled, inputs), run_network(network, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(found[layer.output], expected[layer.output], err_msg=layer.name)
    return [plan.nest.by_channel for plan in compiled.plans]


@pytest.mark.parametrize("machine", [PAIRS, ONE], ids=lambda machine: machine.name)
def test_every_array_computes_the_same(machine):
    by_channel = ran(machine, execute)
    assert (by_channel[0], *by_channel[3:]) == (True, True, False, False)


def test_rtl_under_stalls(tmp_path):
    timing = MemoryTiming(bytes_per_cycle=4, stall_percent=40, seed=3)
    by_channel = ran(SMALL, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path, timing=timing)[0])
    assert sum(by_channel) >= 3


def test_a_channel_has_one_kernel_and_one_parameter_in_memory():
    """40 channels are 5 lane groups of 4 lanes in each of 2 clusters: 20 kernels, padded to 32, in each."""
    network = side_by_side([replace(depthwise_layers(5)[0].layers[3], name="layer", input="x", output="y", table=None)])

    def image(machine, **options):
        return sum(len(content) for _, content in compile_layers(network, machine, **options).images)
    by_channel = image(PAIRS)
    assert by_channel == 2 * 32 * 9 + 40 * 8
    by_lane = image(replace(PAIRS, channel_kernels=False))
    assert by_lane == 2 * 160 * 9 + 5 * 8 * 4 * 8
    assert image(PAIRS, options=replace(BEST, reuse=False)) == by_lane
