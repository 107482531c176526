"""Depthwise layers whose patches come in fours: the same values, down to RTL under stalls, in the cycles predicted."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MORE_PAIRS as PAIRS
from tests.support.random_chains import random_inputs
from tests.support.random_layers import Shape, build_layer
from tests.support.rtl import execute_rtl
from tests.support.side_by_side import side_by_side
from tests.support.stacks import Stack
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule import bands
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import MemoryTiming
from tilewright.sim.fast_engine import run_fast

CLUSTERS = replace(PAIRS, name="four in two clusters", lanes=16, clusters=2, post_lanes=4)
SINGLE = replace(PAIRS, name="four single", array="winograd", lanes=4, clusters=1, post_lanes=4)
SINGLES = replace(SINGLE, name="eight single", lanes=8, clusters=2)
NARROW = replace(PAIRS, name="too few lanes", lanes=4, post_lanes=4)


def depthwise_layers(seed):
    """Return depthwise layers of numbers of channels that lanes divide or not, of stride 1 and 2."""
    rng, layers = np.random.default_rng(seed), []
    for channels, height, width, stride in ((8, 9, 6, 1), (16, 5, 13, 1), (24, 9, 8, 2), (40, 4, 4, 1), (48, 6, 7, 2),
                                            (12, 4, 6, 1), (10, 5, 4, 1)):
        made = build_layer(rng, "conv", channels, channels, channels,
                           [Shape(size, 3, stride, 1, 1, 1) for size in (height, width)])
        layers.append(replace(made, pool=None, residual=None, out_shape=made.conv_shape,
                              weights=np.clip(made.weights, -128, 127).astype(np.int8)))
    return side_by_side(layers)


def smaller_kernels(seed):
    """Return depthwise layers of 16 channels whose kernels lie within 3x3, some of them dilated or with a stride."""
    rng, layers = np.random.default_rng(seed), []
    for number, (kernel, dilations, stride, size) in enumerate((
            ((1, 3), (1, 1), 1, (4, 20)), ((3, 1), (1, 5), 1, (9, 9)), ((2, 2), (1, 1), 1, (8, 8)),
            ((2, 2), (2, 2), 1, (8, 9)), ((2, 3), (1, 1), 2, (9, 9)), ((1, 2), (1, 1), 1, (7, 7)))):
        pads = [(number % 2, number // 2 % 2) if taps > 1 else (0, 0) for taps in kernel]
        made = build_layer(rng, "conv", 16, 16, 16, [
            Shape(pixels, taps, stride, step, *pad)
            for pixels, taps, step, pad in zip(size, kernel, dilations, pads, strict=True)])
        layers.append(replace(made, pool=None, residual=None, out_shape=made.conv_shape,
                              weights=np.clip(made.weights, -128, 127).astype(np.int8)))
    return side_by_side(layers)


def ran(machine, run, seed=5, made=depthwise_layers):
    """Assert that the layers compute what the reference does; return the compiled network and what ``run`` returns."""
    network, rng = made(seed), np.random.default_rng(seed)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    (found, *more), expected = run(compiled, inputs), run_network(network, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(found[layer.output], expected[layer.output], err_msg=layer.name)
    return compiled, more


def four_of(compiled):
    return [plan.nest.four_patches for plan in compiled.plans]


@pytest.mark.parametrize(("machine", "four"), [
    (PAIRS, [1, 1, 1, 1, 1, 0, 0]), (CLUSTERS, [1, 1, 1, 1, 1, 0, 0]), (SINGLE, [1, 1, 1, 1, 1, 1, 0]),
    (SINGLES, [1, 1, 1, 1, 1, 1, 0]), (NARROW, [0] * 7)], ids=lambda each: getattr(each, "name", ""))
def test_every_array_of_four_lanes_computes_the_same(machine, four):
    compiled, _ = ran(machine, lambda compiled, inputs: (execute(compiled, inputs),))
    assert four_of(compiled) == four


@pytest.mark.parametrize("machine", [PAIRS, SINGLE], ids=lambda machine: machine.name)
def test_smaller_kernels_get_zeros_up_to_3x3(machine):
    compiled, _ = ran(machine, lambda compiled, inputs: (execute(compiled, inputs),), made=smaller_kernels)
    assert all(four_of(compiled))
    assert "zeros around the kernel" in compiled.plans[0].summary()


@pytest.mark.parametrize("machine", [PAIRS, *(pytest.param(each, marks=pytest.mark.slow) for each in (
    CLUSTERS, SINGLE, SINGLES))], ids=lambda machine: machine.name)
def test_rtl(tmp_path, machine):
    timing = MemoryTiming(bytes_per_cycle=4, stall_percent=40, seed=3)
    compiled, _ = ran(machine, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path, timing=timing))
    assert sum(four_of(compiled)) >= 5
    compiled, (result,) = ran(machine, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path), seed=6)
    predicted = run_fast(machine, compiled.program, compiled.images, compiled.windows,
                         memory_bytes=compiled.memory_bytes)
    assert predicted.cycles == pytest.approx(result.cycles, rel=0.01)


@pytest.mark.parametrize(("stride", "channels", "units"), [(1, 96, 1), (2, 64, 2)])
def test_a_depthwise_layer_reads_rows_of_blocks_round_the_end_of_its_ring(tmp_path, monkeypatch, stride, channels,
                                                                          units):
    """Three rows of blocks of its input do not fit, two do, and at stride 1 one is enough."""
    monkeypatch.setattr(bands, "_LEAST", 0)
    stack = Stack((8, 24, 18))
    stack.conv(channels, 1)
    stack.depthwise(stride=stride)
    stack.conv(8, 1)
    network = stack.network("round")
    inputs = random_inputs(np.random.default_rng(0), network)
    compiled = compile_layers(network, PAIRS)
    plan = compiled.plans[1]
    assert plan.nest.four_patches
    assert plan.bands.ring.closed
    assert plan.bands.ring.units == units
    check([command for _, command in compiled.program.commands()], PAIRS)
    expected = run_network(network, inputs)["conv2"]
    np.testing.assert_array_equal(execute(compiled, inputs)["conv2"], expected)
    if units > 1:
        tensors, result = execute_rtl(compiled, inputs, tmp_path)
        np.testing.assert_array_equal(tensors["conv2"], expected)
        predicted = run_fast(PAIRS, compiled.program, compiled.images, compiled.windows,
                             memory_bytes=compiled.memory_bytes)
        assert predicted.cycles == pytest.approx(result.cycles, rel=0.02)
