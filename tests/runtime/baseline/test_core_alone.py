"""The scalar baseline on the simulated core: correct, and as fast as was measured when it was written."""

import numpy as np
import pytest

from tests.support.random_layers import random_layer
from tests.support.side_by_side import side_by_side
from tests.support.stacks import Stack
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.models import builtin
from tilewright.runtime.baseline.core_alone import run_baseline

# Measured cycles per multiply-accumulate, everything included; architecture.md's point of comparison is 5.01.
MEASURED = {"lenet5": 3.44, "lenet5_accel": 3.37}


@pytest.mark.parametrize("name", MEASURED)
def test_lenet_is_correct_and_costs_what_was_measured(name):
    network = compile_network(builtin(name))
    image = np.random.default_rng(0).integers(-128, 128, network.inputs[0].shape, dtype=np.int8)
    result = run_baseline(network, {network.inputs[0].name: image})
    assert result.matches
    assert [(layer.name, layer.macs) for layer in result.layers] == [
        (layer.name, layer.macs) for layer in network.layers]
    in_layers = sum(layer.cycles for layer in result.layers)
    assert in_layers < result.cycles < in_layers + 500
    assert all(layer.instructions < layer.cycles < 1.25 * layer.instructions for layer in result.layers)
    assert in_layers / network.macs == pytest.approx(MEASURED[name], rel=0.02)


def test_eight_channels_take_fewer_cycles_than_a_plain_loop():
    """3×3 on 8 channels, 8×8 outputs: 5.01 cycles per multiply-accumulate with one sum at a time."""
    stack = Stack((8, 10, 10))
    stack.conv(8, 3)
    network = stack.network("8 channels")
    image = np.random.default_rng(0).integers(-128, 128, (8, 10, 10), dtype=np.int8)
    result = run_baseline(network, {"input": image})
    assert result.matches
    assert 2.5 < result.layers[0].cycles_per_mac < 4.0


def test_layers_of_every_kind_are_correct_on_the_core():
    rng = np.random.default_rng(5)
    network = side_by_side([random_layer(rng, longest=7, widest=9) for _ in range(20)])
    result = run_baseline(network, {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8)
                                    for info in network.inputs})
    assert {layer.kind for layer in network.layers} == {"conv", "average", "pass"}
    assert any(layer.residual for layer in network.layers)
    assert any(layer.pool for layer in network.layers)
    assert result.matches


def test_a_missing_input_is_refused():
    network = compile_network(builtin("lenet5"))
    name = network.inputs[0].name
    with pytest.raises(ValueError, match=rf"'{name}' .*not nothing$"):
        run_baseline(network, {})
