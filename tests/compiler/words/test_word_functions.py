"""Functions of a tensor of words are one table, whose results have the bits of the operators one by one."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.compiler.words.test_word_operators import Graph
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input

WIDE = replace(PRESETS["base"], wide_words=True)
X = np.float32(np.random.default_rng(3).uniform(-9, 9, (1, 5, 3, 6)))
IN, BETWEEN = (0.0003, np.int16(-300)), (1 / 65_535, np.int16(-32_768))


def results(g, name, machine):
    """Return what a network on a machine gives for X, and its operators on the host core."""
    graph = helper.make_graph(
        g.nodes, "functions", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape)], g.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    network = compile_layers(compile_network(made.SerializeToString()), machine).network
    found = run_network(network, {info.name: quantise_input(info, X) if info.dtype == "int8" else X
                                  for info in network.inputs})
    value = found[network.outputs[0].name]
    made = dequantise_output(network.outputs[0], value) if value.dtype == np.int8 else value
    return made, [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def _sigmoid(g, x, between):
    return g.node("Sigmoid", x)


def _clipped(g, x, between):
    return g.node("Clip", g.node("HardSwish", x), g.constant(np.float32(-0.25)), g.constant(np.float32(2.5)))


def _silu(g, x, between):
    return g.node("Mul", x, g.quantised(g.node("Sigmoid", x), X, *between)[0])


@pytest.mark.parametrize(("function", "kinds"), [
    (_sigmoid, (IN, BETWEEN, BETWEEN)), (_clipped, (IN, BETWEEN, (0.0001, np.int16(-7)))),
    (_silu, (IN, BETWEEN, (0.0002, np.int16(-30_000)))),
    (_silu, ((0.0003, np.uint16(30_000)), (1 / 65_535, np.uint16(0)), (0.0002, np.uint16(2_000))))])
def test_a_function_of_words_is_one_table_with_the_bits_of_its_operators(function, kinds):
    g = Graph()
    before, between, behind = kinds
    name = g.quantised(function(g, g.quantised("x", X, *before)[0], between), X, *behind)[0]
    found, kernels = results(g, name, WIDE)
    assert kernels == ["WordLookUp"]
    wanted, kernels = results(g, name, PRESETS["base"])
    assert "WordLookUp" not in kernels
    np.testing.assert_array_equal(found.reshape(-1), wanted.reshape(-1))


def test_what_another_operator_reads_stays_beside_the_table():
    g = Graph()
    x = g.quantised("x", X, *IN)[0]
    inner = g.quantised(g.node("Sigmoid", x), X, *BETWEEN)[0]
    outer = g.quantised(g.node("Mul", x, inner), X, 0.0002, np.int16(-30_000))[0]
    name = g.quantised(g.node("Add", outer, inner), X, 0.0003, np.int16(0))[0]
    found, kernels = results(g, name, WIDE)
    assert kernels == ["WordLookUp"] * len(kernels)
    wanted, _ = results(g, name, PRESETS["base"])
    # A sum on the datapath, and any function of words, is at most a level off.
    assert np.abs(found.reshape(-1) - wanted.reshape(-1)).max() <= 1.01 * 0.0003
