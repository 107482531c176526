"""Sums, maxima, moves and lines of words: layers of the datapath whose results are those of float64, level by level."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.execute import execute
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.words.word_sums import MOST_ERROR, weigh
from tilewright.isa.machine import PRESETS
from tilewright.isa.words.word_planes import WORD_ERROR
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input

WIDE = replace(PRESETS["base"], wide_words=True)
X, Z = (8, 6, 10), (8, 6, 10)


class Graph:
    """Operators between quantisations, and what they compute in float64."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, *inputs, **attrs):
        self.nodes.append(helper.make_node(op, list(inputs), [f"t{len(self.nodes)}"], f"n{len(self.nodes)}", **attrs))
        return self.nodes[-1].output[0]

    def quantised(self, name, value, scale, zero):
        """Quantise a tensor and back; return its name and its value."""
        info, real = np.iinfo(zero.dtype), np.float64(np.float32(scale))
        parameters = [self.constant(np.float32(scale)), self.constant(zero)]
        levels = np.clip(np.rint(value / real) + int(zero), info.min, info.max)
        name = self.node("DequantizeLinear", self.node("QuantizeLinear", name, *parameters), *parameters)
        return name, (levels - int(zero)) * real


def ran(operate, kinds, scales, out, second=Z, core=()):
    """Return the levels by which ``operate`` of two quantised inputs is off float64.

    Asserts that all but ``core``, operators in their order, is the datapath's.
    """
    g, rng = Graph(), np.random.default_rng(4)
    given = {name: np.float32(rng.uniform(-9, 9, (1, *shape))) for name, shape in (("x", X), ("z", second))}
    read = [g.quantised(name, np.float64(given[name]), scale, zero)
            for name, scale, zero in zip(given, scales, kinds, strict=True)]
    name, value = operate(g, *read)
    name, value = g.quantised(name, value, *out)
    used = {each for node in g.nodes for each in node.input}
    graph = helper.make_graph(
        g.nodes, "words", [helper.make_tensor_value_info(each, TensorProto.FLOAT, given[each].shape)
                           for each in given if each in used],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)], g.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made)
    compiled = compile_layers(compile_network(made.SerializeToString()), WIDE)
    network = compiled.network
    assert tuple(layer.op for layer in network.layers if isinstance(layer, CoreLayer)) == core
    inputs = {info.name: quantise_input(info, given[info.onnx_name]) for info in network.inputs}
    found = run_network(network, inputs)[network.outputs[0].name]
    np.testing.assert_array_equal(execute(compiled, inputs)[network.outputs[0].name], found)
    result = dequantise_output(network.outputs[0], found)
    return np.abs(result - value).max() / np.float64(np.float32(out[0]))


def _added(g, x, z):
    return g.node("Add", x[0], z[0]), x[1] + z[1]


def _less(g, x, z):
    return g.node("Relu", g.node("Sub", x[0], z[0])), np.maximum(x[1] - z[1], 0)


def _maxima(g, x, z):
    windows = np.lib.stride_tricks.sliding_window_view(x[1], (3, 2), axis=(2, 3))[:, :, ::2, ::2]
    return g.node("MaxPool", x[0], kernel_shape=[3, 2], strides=[2, 2]), windows.max(axis=(4, 5))


def _joined(g, x, z):
    return g.node("Concat", x[0], z[0], axis=1), np.concatenate([x[1], z[1]], axis=1)


def _repeated(g, x, z):
    scales = g.constant(np.array([1, 1, 2, 3], np.float32))
    return g.node("Resize", x[0], "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor"), x[1].repeat(2, axis=2).repeat(3, axis=3)


def _line(g, x, z):
    return g.node("HardSigmoid", x[0], alpha=0.1, beta=0.4), np.clip(np.float32(0.1) * x[1] + np.float32(0.4), 0, 1)


def _transposed(g, x, z):
    levels, scale = np.random.default_rng(1).integers(-127, 128, (8, 5, 3, 3)).astype(np.int8), np.float32(0.004)
    w = g.node("DequantizeLinear", g.constant(levels), g.constant(scale), g.constant(np.int8(0)))
    full = np.zeros((5, 2 * X[1] + 1, 2 * X[2] + 1))
    for i, j in np.ndindex(X[1:]):
        full[:, 2 * i:2 * i + 3, 2 * j:2 * j + 3] += np.tensordot(x[1][0, :, i, j], levels * np.float64(scale), 1)
    return g.node("ConvTranspose", x[0], w, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
                  output_padding=[1, 1]), full[None, :, 1:, 1:]


WORDS = np.int16(-300), np.int16(40)


@pytest.mark.parametrize(("operate", "kinds", "scales", "out"), [
    (_added, WORDS, (0.0004, 0.00021), (0.0005, np.int16(11))),
    (_added, (np.uint16(30_000), np.uint16(33_000)), (0.0004, 0.0003), (0.0006, np.uint16(31_000))),
    (_added, (np.int16(3), np.int8(-7)), (0.0003, 0.08), (0.0005, np.int16(0))),
    (_added, (np.int8(3), np.int16(-7)), (0.07, 0.0002), (0.0006, np.int16(0))),
    (_added, WORDS, (0.0004, 0.00021), (0.11, np.int8(5))),
    (_less, WORDS, (0.0004, 0.0003), (0.0005, np.int16(0))),
    (_maxima, WORDS, (0.0004, 0.0003), (0.0004, np.int16(-300))),
    (_joined, (np.int16(5), np.int8(3)), (0.0004, 0.08), (0.0005, np.int16(9))),
    (_repeated, WORDS, (0.0004, 0.0003), (0.0004, np.int16(-300))),
    (_line, WORDS, (0.0004, 0.0003), (1 / 65_535, np.uint16(0))),
    (_transposed, WORDS, (0.0004, 0.0003), (0.0007, np.int16(-3)))])
def test_results_are_those_of_float64_within_the_bound(operate, kinds, scales, out):
    # Where the bound is below a level, values are a level apart when both are rounded; a maximum is exact.
    assert WORD_ERROR + MOST_ERROR < 1
    assert ran(operate, kinds, scales, out) <= (0.01 if operate in (_maxima, _repeated) else 1.01)


def _by_channel(g, x, z):
    return g.node("Mul", z[0], x[0]), x[1] * z[1]


def _by_channel_clamped(g, x, z):
    return g.node("Relu", g.node("Mul", x[0], z[0])), np.maximum(x[1] * z[1], 0)


@pytest.mark.parametrize(("operate", "kinds", "scales", "out"), [
    (_by_channel, (np.int16(-300), np.int16(-32_768)), (0.0003, 1 / 65_535), (0.0003, np.int16(-300))),
    (_by_channel, (np.int16(0), np.int16(0)), (0.0003, 0.0003), (0.002, np.int16(0))),
    (_by_channel, (np.int16(0), np.int16(0)), (0.0003, 0.0003), (0.0009, np.int16(7))),
    (_by_channel, WORDS, (0.0003, 0.0004), (0.003, np.int16(-17))),
    (_by_channel, (np.uint16(0), np.uint16(0)), (0.0002, 1 / 65_535), (0.0002, np.uint16(0))),
    (_by_channel_clamped, (np.int16(11), np.int16(-32_768)), (0.0003, 1 / 65_535), (0.0001, np.int16(-32_768))),
    (_by_channel, (np.int16(5), np.int8(-3)), (0.0003, 0.07), (0.002, np.int16(5))),
    (_by_channel, (np.int8(5), np.int16(-3)), (0.07, 0.0003), (0.002, np.int16(5)))])
def test_products_of_an_image_and_a_vector_are_those_of_float64_or_the_level_beside(operate, kinds, scales, out):
    assert ran(operate, kinds, scales, out, second=(8, 1, 1)) <= 1.01


@pytest.mark.parametrize("zero", [np.int16(-40), np.uint16(30_000)])
def test_a_product_of_two_matrices_of_words_is_the_core_s(zero):
    def multiplied(g, x, z):
        return g.node("MatMul", x[0], z[0]), x[1] @ z[1]

    ends = ("QuantizeLinear", "DequantizeLinear")
    off = ran(multiplied, (zero, zero), (3e-4, 3e-4), (1e-2, zero), (8, 10, 6), (*ends, *ends, "MatMul", ends[0]))
    assert off <= 1


def test_weights_of_a_sum_keep_their_bound_for_all_levels():
    rng = np.random.default_rng(8)
    for other, own in 2.0 ** -rng.uniform(0, 4, (40, 2)):
        found = weigh(other, own, 32_768, own_words=True)
        assert found.error < MOST_ERROR
        a, b = rng.integers(-32_768, 32_768, (2, 4_000)).astype(np.float64)
        upper = np.floor(b / 256)
        lower = b - 256 * upper - 128
        total = found.other * a + found.coarse * b + found.fine * upper + found.fine / 2
        assert np.abs(total * found.unit - other * a - own * b).max() <= found.error
        assert np.abs(lower).max() <= 128
