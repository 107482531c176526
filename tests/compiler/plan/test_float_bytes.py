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


def test_bytes_alike_are_looked_up_once():
    whole = look_up((1, 4, 8, 8), table=np.arange(-128, 128, dtype=np.float32))
    layers = with_float_bytes(whole, BASE).layers
    assert [len(layer.writes) for layer in layers] == [2, 1, 1, 1]
    assert layers[0].table.any() == 0  # the two lowest bytes of small integers


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
