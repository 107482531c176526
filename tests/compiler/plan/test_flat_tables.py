"""Tables of bytes that the front end leaves to the host core run on the datapath: the same values, of any rank."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_networks import CoreStack, inputs_of
from tests.support.execute import execute
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.flat_tables import with_flat_tables
from tilewright.isa.machine import PRESETS

BASE = PRESETS["base"]


def look_up(dims, dtype="int8", result="int8"):
    """Return a network of one table of bytes."""
    stack = CoreStack((1, 1, 1), seed=1)
    del stack.tensors["input"]
    stack.tensor("q", dims, dtype)
    stack.handed_in = ["q"]
    stack.constants["table"] = stack.rng.integers(0, 127, 256).astype(result)
    stack.handed_out = [stack.core("LookUp", ("q", "table"), dims, result)]
    return stack.network("a table of bytes")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("dims", [(1, 16, 32), (7, 5, 3), (2, 3, 4, 5), (64,)], ids=str)
def test_results_are_those_of_the_host_core(dims, dtype):
    network = look_up(dims, dtype)
    compiled, inputs = compile_layers(network, BASE, keep_tensors=True), inputs_of(network)
    (layer,) = compiled.network.layers
    assert isinstance(layer, Layer)
    output = network.outputs[0].name
    expected = run_network(network, inputs)[output]
    np.testing.assert_array_equal(execute(compiled, inputs)[output], expected)
    np.testing.assert_array_equal(run_network(compiled.network, inputs)[output], expected)


def test_a_tensor_of_the_model_may_have_the_name_of_one_that_is_added():
    network = look_up((1, 16, 32))
    (layer,) = network.layers
    levels, tensors = f"{layer.name}:levels", dict(network.tensors)
    tensors[levels] = replace(tensors.pop("q"), name=levels)
    network = replace(network, tensors=tensors, inputs=(tensors[levels],),
                      layers=(replace(layer, inputs=(levels, *layer.inputs[1:])),))
    compiled, inputs = compile_layers(network, BASE, keep_tensors=True), inputs_of(network)
    assert isinstance(compiled.network.layers[0], Layer)
    output = network.outputs[0].name
    np.testing.assert_array_equal(execute(compiled, inputs)[output], run_network(network, inputs)[output])


def test_few_elements_raw_bytes_and_machines_without_tables_stay_on_the_core():
    for network, machine in ((look_up((1, 3, 7)), BASE), (look_up((1, 16, 32), result="uint8"), BASE),
                             (look_up((1, 16, 32)), replace(BASE, name="without tables", value_tables=False))):
        assert with_flat_tables(network, machine) is network
        assert all(isinstance(layer, CoreLayer) for layer in compile_layers(network, machine).network.layers)
