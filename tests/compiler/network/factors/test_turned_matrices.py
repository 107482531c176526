"""A matrix that is turned on its way to the weights: by the array, and the same bits on every machine."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MACHINES
from tests.support.matrix_networks import product_of, turned_network
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.factors.matrix_images import with_matrix_images
from tilewright.compiler.network.factors.turned_matrices import can_turn
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import PRESETS, Machine

BYTES = np.arange(-128, 128, dtype=np.int8)
HALF = Machine(name="half", array="inner", lanes=8, clusters=2)
PLAIN = Machine(name="plain", array="plain", lanes=8, clusters=2)
TURNING = [PRESETS["base"], PRESETS["large"], HALF, PLAIN]


def expected_of(inputs, heads, *zeros):
    parts = np.split(inputs["v"].transpose(2, 1, 0), heads, axis=2)
    return np.concatenate([product_of(inputs["x"], part, *zeros) for part in parts])


@pytest.mark.parametrize("machine", TURNING, ids=lambda machine: machine.name)
@pytest.mark.parametrize("zeros", [(0, 0), (-128, 0), (0, 3), (-128, -128), (127, 127)], ids=str)
@pytest.mark.parametrize("shape", [(33, 3, 32), (5, 2, 64), (16, 3, 20), (50, 4, 7), (1, 1, 1)], ids=str)
def test_the_array_turns_rows_into_columns(machine, shape, zeros):
    assert can_turn(machine)
    heads = 3
    network = turned_network(*shape, *zeros, heads)
    compiled = compile_layers(network, machine, keep_tensors=True)
    check((command for _, command in compiled.program.commands()), machine)
    assert "copy" not in [layer.name for layer in compiled.network.layers]
    rng = np.random.default_rng(sum(shape))
    for values in (BYTES, BYTES[[0, -1]]):
        inputs = {info.name: rng.choice(values, info.shape) for info in network.inputs}
        expected = expected_of(inputs, heads, *zeros)
        np.testing.assert_array_equal(run_network(compiled.network, inputs)["y"], expected)
        np.testing.assert_array_equal(execute(compiled, inputs)["y"], expected)


@pytest.mark.parametrize("machine", [PRESETS["nano"], MACHINES["tiny"]],
                         ids=["nano", "tiny"])
def test_other_machines_turn_it_byte_by_byte(machine):
    assert not can_turn(machine)
    network = turned_network(9, 3, 5, 1, 0)
    compiled = compile_layers(network, machine)
    assert "copy" in [layer.name for layer in compiled.network.layers]
    inputs = {info.name: np.random.default_rng(0).choice(BYTES, info.shape) for info in network.inputs}
    np.testing.assert_array_equal(execute(compiled, inputs)["y"], expected_of(inputs, 1, 1, 0))


def other_reader(network):
    """Return the network with the columns read by a sum, too."""
    copy = network.layers[0]
    again = replace(network.tensors["columns"], name="again")
    layer = replace(copy, name="other", input="columns", output="again")
    return replace(network, layers=(*network.layers, layer), tensors=network.tensors | {"again": again})


@pytest.mark.parametrize("change", [
    other_reader,
    lambda network: replace(network, outputs=(*network.outputs, network.tensors["columns"])),
    lambda network: replace(network, layers=(replace(network.layers[0], bias=np.ones(1, np.int32)),
                                             *network.layers[1:])),
    lambda network: replace(network, layers=(replace(network.layers[0], table=np.arange(-128, 128).astype(np.int8)),
                                             *network.layers[1:]))],
    ids=["another reader", "output", "bias", "table"])
def test_a_copy_that_others_need_or_that_changes_values_stays(change):
    network = change(turned_network(9, 3, 5, 0, 0))
    assert network.layers[0] in with_matrix_images(network, PRESETS["base"]).layers


