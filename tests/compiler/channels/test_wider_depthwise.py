"""Depthwise layers get channels that the layers beside them can have more of; every output stays as it was."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_chains import random_inputs
from tests.support.stacks import Stack
from tilewright.compiler.channels import wider_depthwise as module
from tilewright.compiler.channels.wider_depthwise import wider_depthwise
from tilewright.compiler.compile import compile_layers, fit_network
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import Machine, preset

FOUR = replace(preset("base"), channel_kernels=True, four_patches=True)


def network(channels: int, stride: int = 1, *, heads: int = 1) -> Network:
    """Return two depthwise layers of ``channels`` between layers of one pixel, the last ones side by side."""
    stack = Stack((8, 12, 12))
    stack.conv(channels, 1)
    stack.depthwise(stride=stride)
    source = stack.conv(channels, 1)
    stack.depthwise()
    source = stack.last
    names = [stack.conv(8, 1, source=source) for _ in range(heads)]
    return replace(stack.network("odd"), outputs=tuple(stack.tensors[name] for name in names))


def widened(given: Network, machine: Machine = FOUR) -> list[int]:
    """Return the channels of the depthwise layers of the network as ``machine`` takes it."""
    found = wider_depthwise(given, machine, lambda each: [
        plan.cost.cycles for plan in fit_network(each, machine)[1]])
    return [layer.in_shape[0] for layer in found.layers if layer.groups > 1]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [20, 29])
def test_outputs_stay_as_they_were_and_patches_come_in_fours(channels, stride):
    given = network(channels, stride, heads=2)
    inputs = random_inputs(np.random.default_rng(channels), given)
    compiled, expected = compile_layers(given, FOUR), run_network(given, inputs)
    assert [plan.nest.four_patches for plan in compiled.plans if plan.layer.groups > 1] == [True, True]
    tensors = execute(compiled, inputs)
    for info in given.outputs:
        np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=info.name)


def test_tensors_that_are_looked_at_keep_their_channels():
    given = network(20)
    compiled = compile_layers(given, FOUR, keep_tensors=True)
    assert [plan.layer.in_shape[0] for plan in compiled.plans if plan.layer.groups > 1] == [20, 20]
    inputs = random_inputs(np.random.default_rng(0), given)
    tensors, expected = execute(compiled, inputs), run_network(given, inputs)
    for name, values in expected.items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)


def test_only_what_gains_is_widened(monkeypatch):
    assert widened(network(20)) == [24, 24]
    assert widened(network(24)) == [24, 24]
    assert widened(network(20), preset("base")) == [20, 20]
    monkeypatch.setattr(module, "_priced", lambda each, price: [
        layer.in_shape[0] if index < 2 else 30 - layer.in_shape[0] for index, layer in enumerate(each.layers)])
    assert widened(network(20)) == [20, 24]


@pytest.mark.parametrize("change", ["output", "residual", "several readers", "input"])
def test_what_else_is_read_or_added_keeps_its_channels(change):
    stack = Stack((20, 12, 12))
    if change != "input":
        stack.conv(20, 1)
    source = stack.last
    stack.depthwise()
    inner = stack.last
    stack.conv(20, 1, residual=inner if change == "residual" else None)
    last = stack.conv(20, 1, source=source) if change == "several readers" else stack.last
    outputs = [stack.tensors[last], *([stack.tensors[inner]] if change == "output" else [])]
    assert widened(replace(stack.network("kept"), outputs=tuple(outputs))) == [20]
