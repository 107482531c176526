"""Functions of a tensor of words are a curve of the datapath, or one table with the bits of the operators."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.compiler.words.test_word_operators import Graph
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.words.word_curves import MOST_OFF, curve_of
from tilewright.isa.machine import PRESETS
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input

CURVED = replace(PRESETS["base"], wide_words=True)
WIDE = replace(CURVED, bus_bytes=4)
"""Whose rows of value tables hold no entry of a curve."""

X = np.float32(np.random.default_rng(3).uniform(-9, 9, (1, 5, 3, 6)))
IN, BETWEEN = (0.0003, np.int16(-300)), (1 / 65_535, np.int16(-32_768))


def model(g, name):
    """Return the bytes of a model that computes one tensor of X."""
    graph = helper.make_graph(
        g.nodes, "functions", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape)], g.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def results(g, name, machine):
    """Return what a network on a machine gives for X, and its operators on the host core."""
    network = compile_layers(compile_network(model(g, name)), machine).network
    found = run_network(network, {info.name: quantise_input(info, X) if info.dtype == "int8" else X
                                  for info in network.inputs})
    value = found[network.outputs[0].name]
    made = dequantise_output(network.outputs[0], value) if value.dtype == np.int8 else value
    return made, [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def _sigmoid(g, x, between):
    return g.node("Sigmoid", x)


def _clipped(g, x, between):
    return g.node("Clip", g.node("HardSwish", x), g.constant(np.float32(-0.25)), g.constant(np.float32(2.5)))


def _hard_swish(g, x, between):
    return g.node("HardSwish", x)


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


@pytest.mark.parametrize(("function", "kinds"), [
    (_sigmoid, (IN, BETWEEN, BETWEEN)), (_hard_swish, (IN, BETWEEN, (0.0002, np.int16(-30_000)))),
    (_silu, (IN, BETWEEN, (0.0002, np.int16(-30_000)))),
    (_silu, ((0.0003, np.uint16(30_000)), (1 / 65_535, np.uint16(0)), (0.0002, np.uint16(2_000))))])
def test_a_function_of_words_is_a_curve_as_near_as_declared(function, kinds):
    g = Graph()
    before, between, behind = kinds
    name = g.quantised(function(g, g.quantised("x", X, *before)[0], between), X, *behind)[0]
    found, kernels = results(g, name, CURVED)
    assert not kernels
    wanted, _ = results(g, name, PRESETS["base"])
    off = np.abs(found.reshape(-1) - wanted.reshape(-1)) / np.float32(behind[0])
    assert 0 < off.max() < MOST_OFF + 0.01


def test_corners_of_a_function_lie_at_ends_of_pieces():
    words = np.arange(-32_768, 32_768)
    real = (words - 2_345) * 0.0004
    values = np.rint(real * np.clip(real / 6 + 0.5, 0, 1) / 0.0003 - 20_000).astype(np.int16)
    curve = curve_of(values)
    assert curve is not None
    assert curve.off == 1
    corners = (np.array([-3, 3]) / 0.0004 + 2_345 - curve.start) * curve.scale + curve.zero
    np.testing.assert_allclose(corners / 512, np.rint(corners / 512), atol=2 / 512)


def test_a_function_of_one_layers_words_is_its_end():
    g, rng = Graph(), np.random.default_rng(5)
    weights = g.node("DequantizeLinear", g.constant(rng.integers(-127, 128, (5, 5, 3, 3), dtype=np.int8)),
                     g.constant(np.float32(0.003)), g.constant(np.int8(0)))
    x = g.quantised("x", X, *IN)[0]
    y = g.quantised(g.node("Conv", x, weights, pads=[1, 1, 1, 1]), X, 0.0004, np.int16(0))[0]
    name = g.quantised(g.node("HardSwish", y), X, 0.0002, np.int16(-30_000))[0]
    network = compile_layers(compile_network(model(g, name)), CURVED).network
    assert [layer.kind for layer in network.layers] == ["conv"]
    found, _ = results(g, name, CURVED)
    wanted, _ = results(g, name, PRESETS["base"])
    # Half a level of what is not rounded between is one of the result, where HardSwish rises most one and a half.
    assert np.abs(found.reshape(-1) - wanted.reshape(-1)).max() / 0.0002 < 2 * 1.5 + MOST_OFF


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
