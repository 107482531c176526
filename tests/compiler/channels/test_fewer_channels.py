"""Channels that need no computation are left out where that is predicted faster, and the rest is as it was."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.pruned import pruned
from tests.support.random_branches import random_branches
from tests.support.random_chains import random_chain, random_separable
from tests.support.stacks import Stack
from tilewright.compiler.compile import compile_layers, without_idle_channels
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import Machine, MemoryTiming, preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_layer_cycles

BASE = preset("base")


def predicted(network: Network, machine: Machine, options: Options = BEST) -> int:
    """Return the cycles of a program that stores what the network needs."""
    compiled = compile_layers(network, machine, options=options)
    cycles, tail = predict_layer_cycles(job_of_compiled(compiled, "test"), MemoryTiming.default(machine))
    return sum(cycles) + tail


def bottlenecks(narrow: int, wide: int, gone: float = 0) -> Network:
    """Return a small MobileNetV2; of each layer the same share of channels is ``gone``, but of the last."""
    stack = Stack((8, 14, 14))
    stack.conv(narrow, 3, pad=1)
    for _ in range(2):
        source = stack.last
        stack.conv(wide, 1)
        stack.depthwise()
        stack.conv(narrow, 1, residual=source)
    stack.average()
    stack.conv(10, 1)
    layers = []
    for layer in stack.layers:
        if layer.weights is not None and layer is not stack.layers[-1]:
            weights, bias = layer.weights.copy(), layer.bias.copy()
            dead = np.random.default_rng(len(bias)).permutation(len(bias))[:round(gone * len(bias))]
            weights[dead], bias[dead] = 0, 0
            layer = replace(layer, weights=weights, bias=bias)
        layers.append(layer)
    return replace(stack.network("bottlenecks"), layers=tuple(layers))


@pytest.mark.parametrize("machine", ["nano", "base", "large"])
def test_a_pruned_network_takes_the_cycles_of_the_small_network_that_it_is(machine):
    small, large = bottlenecks(16, 96), bottlenecks(32, 192, gone=0.5)
    assert predicted(large, preset(machine)) <= 1.05 * predicted(small, preset(machine))
    assert predicted(large, preset(machine), Options(narrow=False)) > 1.3 * predicted(small, preset(machine))


@pytest.mark.parametrize("make", [random_branches, random_chain, random_separable])
@pytest.mark.parametrize("seed", range(8))
def test_engines_compute_the_same_and_constants_are_filled_in(make, seed):
    rng = np.random.default_rng(seed)
    network, machine = pruned(rng, make(rng), 0.6), preset(("nano", "base", "large")[seed % 3])
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    expected = run_network(network, inputs)
    for keep in (True, False):
        tensors = execute(compile_layers(network, machine, keep_tensors=keep), inputs)
        for name in expected if keep else [info.name for info in network.outputs]:
            np.testing.assert_array_equal(tensors[name], expected[name], err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_never_predicted_slower(seed):
    rng = np.random.default_rng(seed)
    network = pruned(rng, random_separable(rng), 0.1)
    _, saved = without_idle_channels(network, BASE)
    assert saved is None or saved.cycles[1] < saved.cycles[0]


def constant_behind(bias: int, pad: int, *, weight: int = 1, next_bias: int = 0) -> Network:
    """Return a layer of which half the channels are ``bias``, and a 3x3 convolution of all that pads with zeros."""
    stack = Stack((8, 9, 9))
    stack.conv(32, 1)
    stack.conv(16, 3, pad=pad)
    first, second = stack.layers
    first.weights[16:], first.bias[16:] = 0, bias
    first = replace(first, requantisation=replace(first.requantisation, scale=np.ones(32, np.float32)))
    second.weights[:, 16:], second.bias[:] = weight, next_bias
    return replace(stack.network("constant"), layers=(first, second))


@pytest.mark.parametrize(("network", "goes"), [
    (constant_behind(0, 1), True), (constant_behind(5, 0), True), (constant_behind(5, 1), False),
    (constant_behind(5, 1, weight=0), True),
    (constant_behind(127, 0, weight=127, next_bias=2**31 - 16 * 9 * 127 * 127), False),
    (constant_behind(127, 0, weight=127, next_bias=2**31 - 1 - 16 * 9 * 127 * 127), True),
], ids=["padding", "no padding", "not the padding", "not weighed", "bias overflows", "bias fits"])
def test_a_constant_goes_into_the_bias_where_that_is_exact(network, goes):
    smaller, saved = without_idle_channels(network, BASE)
    assert (saved is not None) == goes
    assert smaller.layers[1].in_shape[0] == (16 if goes else 32)
    inputs = {"input": np.random.default_rng(0).integers(-128, 128, (8, 9, 9), dtype=np.int8)}
    output = network.outputs[0].name
    np.testing.assert_array_equal(run_network(smaller, inputs)[output], run_network(network, inputs)[output])


def test_what_nothing_reads_is_not_computed_but_where_every_tensor_is_stored():
    stack = Stack((8, 9, 9))
    stack.conv(32, 3, pad=1)
    stack.conv(16, 3, pad=1)
    stack.layers[1].weights[:, 16:] = 0
    network = stack.network("unread")
    smaller, saved = without_idle_channels(network, BASE)
    assert smaller.layers[0].conv_shape[0] == 16
    assert saved is not None
    assert (saved.unread, saved.constant) == (16, 0)
    assert without_idle_channels(network, BASE, keep_tensors=True) == (network, None)
