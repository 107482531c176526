"""Tables of floats on the datapath: the same bits as the host core's table, in fewer cycles."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_networks import CoreStack, inputs_of
from tests.support.execute import execute
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer, Place
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.float_bytes import with_float_bytes
from tilewright.isa.machine import PRESETS

BASE = PRESETS["base"]
TABLE = np.random.default_rng(11).normal(size=256).astype(np.float32)


def look_up(dims, *, dtype="int8", table=TABLE, place=None, op="LookUp"):
    """Return a network of one table of floats; its input lies at ``place`` of a larger tensor if it has one."""
    stack = CoreStack((1, 1, 1), seed=1)
    del stack.tensors["input"]
    stack.tensor("q", dims, dtype)
    stack.handed_in = ["q"]
    if place is not None:
        stack.tensor("all", (1, 2 * dims[1], *dims[2:]), dtype)
        stack.tensors["q"] = replace(stack.tensors["q"], place=place)
    stack.constants |= {"table": table, "scale": np.float32(0.03), "zero": np.array(5, dtype)}
    inputs = ("q", "table") if op == "LookUp" else ("q", "scale", "zero")
    stack.handed_out = [stack.core(op, inputs, dims)]
    return stack.network("a table of floats")


def expected_of(network, inputs):
    """Return what the host core's kernel says."""
    return run_network(network, inputs)[network.outputs[0].name]


@pytest.mark.parametrize("machine", PRESETS.values(), ids=str)
@pytest.mark.parametrize("dims", [(1, 16, 5, 8), (1, 3, 17, 23), (1, 5, 6, 7), (4096,), (1, 1031), (2, 9, 11)], ids=str)
def test_floats_are_those_of_the_host_core(machine, dims):
    network = look_up(dims)
    inputs = inputs_of(network)
    compiled = compile_layers(network, machine, keep_tensors=True)
    assert not any(isinstance(layer, CoreLayer) for layer in compiled.network.layers)
    found = execute(compiled, inputs)[network.outputs[0].name]
    assert found.tobytes() == expected_of(network, inputs).tobytes()
    assert run_network(compiled.network, inputs)[network.outputs[0].name].tobytes() == found.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_dequantised_bytes_of_either_type(dtype):
    network = look_up((1, 4, 8, 8), dtype=dtype, op="DequantizeLinear")
    inputs = inputs_of(network)
    compiled = compile_layers(network, BASE, keep_tensors=True)
    assert len(compiled.network.layers) > 1
    found = execute(compiled, inputs)[network.outputs[0].name]
    np.testing.assert_array_equal(found, (inputs["q"].astype(np.float32) - 5) * np.float32(0.03))


def test_a_tensor_of_the_model_may_have_the_name_of_one_that_is_added():
    """QONNX's are named so, and a stranger's may be."""
    network = look_up((1, 16, 32))
    (layer,), levels = network.layers, f"{network.outputs[0].name}:levels"
    tensors = dict(network.tensors)
    tensors[levels] = replace(tensors.pop("q"), name=levels)
    network = replace(network, tensors=tensors, inputs=(tensors[levels],),
                      layers=(replace(layer, inputs=(levels, *layer.inputs[1:])),))
    compiled, inputs = compile_layers(network, BASE, keep_tensors=True), inputs_of(network)
    assert not any(isinstance(layer, CoreLayer) for layer in compiled.network.layers)
    np.testing.assert_array_equal(execute(compiled, inputs)[network.outputs[0].name], expected_of(network, inputs))


def test_bytes_that_are_always_zero_are_not_looked_up():
    network = look_up((1, 4, 8, 8), table=np.arange(-128, 128, dtype=np.float32))
    compiled, inputs = compile_layers(network, BASE, keep_tensors=True), inputs_of(network)
    assert len(compiled.network.layers) == 3  # the two highest bytes of small integers, and their order
    np.testing.assert_array_equal(execute(compiled, inputs)[network.outputs[0].name], inputs["q"].astype(np.float32))
    zeros = look_up((1, 4, 8, 8), table=np.zeros(256, np.float32))
    assert with_float_bytes(zeros, BASE) is zeros


PAIRS = np.array([(max(d, 0) - 128, max(-d, 0) - 128) for d in range(-255, 256)], np.int8)


@pytest.mark.parametrize("scale", [0.013, 0.3])
@pytest.mark.parametrize("rows", [511, 512])
def test_softmax_of_two_is_looked_up_by_every_difference(scale, rows):
    x = np.resize(PAIRS, (1, rows, 2))
    stack = CoreStack((1, 1, 1), seed=1)
    del stack.tensors["input"]
    stack.tensor("q", x.shape, "int8")
    stack.handed_in = ["q"]
    output = stack.core("SoftmaxOfLevels", ("q",), x.shape, "float32", {"scale_value": scale, "axis": 2})
    stack.handed_out = [output]
    network = stack.network("softmax of two")
    compiled = compile_layers(network, BASE, keep_tensors=True)
    assert not any(isinstance(layer, CoreLayer) for layer in compiled.network.layers)
    found = execute(compiled, {"q": x})[output]
    assert found.tobytes() == run_network(network, {"q": x})[output].tobytes()
    exact = np.exp(scale * x.astype(float))
    np.testing.assert_allclose(found, exact / exact.sum(axis=2, keepdims=True), rtol=1e-5)


def test_images_of_a_batch_are_one_run():
    network = look_up((1, 4, 8, 8))
    compiled = compile_layers(network, BASE, keep_tensors=True, options=Options(batch=3))
    inputs = {"q": np.concatenate([inputs_of(network, seed)["q"] for seed in range(3)])}
    expected = [expected_of(network, {"q": each[None]}) for each in inputs["q"]]
    assert not any(isinstance(layer, CoreLayer) for layer in compiled.network.layers)
    found = execute(compiled, inputs)[network.outputs[0].name]
    assert found.tobytes() == np.concatenate(expected).tobytes()


def test_few_elements_and_what_has_gaps_stay_on_the_core():
    gaps = look_up((1, 4, 8, 8), place=Place(parent="all", offset=4, row_step=64, pixel_step=8))
    for network in (look_up((1, 4, 4, 2)), gaps):
        assert with_float_bytes(network, BASE) is network


def test_a_machine_without_tables_keeps_them_on_the_core():
    network = look_up((1, 16, 8, 8))
    assert with_float_bytes(network, replace(BASE, name="without tables", value_tables=False)) is network
