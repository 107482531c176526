"""QDQ models of 16 bits: layers of the datapath on a machine of wide words, equal to float64 but for a level."""

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
from tilewright.compiler.words.word_layers import NO_WORDS
from tilewright.isa.machine import PRESETS
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input

BASE = PRESETS["base"]
WIDE = replace(BASE, wide_words=True)
_ZERO = {np.int8: 3, np.int16: -40, np.uint16: 30_000}


class _Model:
    """Writes Conv and others between quantisations, and computes in float64 what it writes."""

    def __init__(self, domain="", weight_zero=None):
        self.rng, self.nodes, self.constants, self.domain = np.random.default_rng(5), [], [], domain
        self.weight_zero = weight_zero

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, *inputs, domain="", **attrs):
        self.nodes.append(helper.make_node(op, list(inputs), [f"t{len(self.nodes)}"], f"n{len(self.nodes)}",
                                           domain=domain, **attrs))
        return self.nodes[-1].output[0]

    def quantised(self, name, value, kind):
        """Quantise a tensor and back; return its name and its float64 value."""
        scale, zero, info = np.float32(np.abs(value).max() / (100 if kind == np.int8 else 25_000)), _ZERO[kind], None
        parameters = [self.constant(scale), self.constant(kind(zero))]
        info = np.iinfo(kind)
        levels = np.clip(np.rint(value / np.float64(scale)) + zero, info.min, info.max)
        q = self.node("QuantizeLinear", name, *parameters, domain=self.domain)
        return self.node("DequantizeLinear", q, *parameters, domain=self.domain), (levels - zero) * np.float64(scale)

    def weights(self, shape):
        levels, scale, zero = self.rng.integers(-127, 128, shape).astype(np.int8), np.float32(0.01), np.int8(0)
        if self.weight_zero is not None:
            levels, zero = self.rng.integers(0, 256, shape).astype(np.uint8), np.uint8(self.weight_zero)
        name = self.node("DequantizeLinear", self.constant(levels), self.constant(scale), self.constant(zero))
        return name, (levels - np.int64(zero)) * np.float64(scale)


def _conv(x, w, groups, pad):
    padded, each = np.pad(x, ((0, 0), (pad, pad), (pad, pad))), len(w) // groups
    height, width = padded.shape[1] - w.shape[2] + 1, padded.shape[2] - w.shape[3] + 1
    out = np.zeros((len(w), height, width))
    for o in range(len(w)):
        first = o // each * w.shape[1]
        for i, j in np.ndindex(height, width):
            out[o, i, j] = (padded[first:first + w.shape[1], i:i + w.shape[2], j:j + w.shape[3]] * w[o]).sum()
    return out


def model_of(kinds, domain="", weight_zero=None):
    """Return a model of three convolutions, an average and a product, its input, and its output in float64.

    With ``weight_zero``, weights are uint8 with that zero point, all of 0 to 255 among them.
    """
    m = _Model(domain, weight_zero)
    x = m.rng.standard_normal((3, 7, 6))
    name, value = m.quantised("x", x.astype(np.float32).astype(np.float64), kinds[0])
    for (outputs, kernel, groups), kind in zip(((8, 3, 1), (8, 3, 8), (10, 1, 1)), kinds[1:], strict=True):
        w, real = m.weights((outputs, len(value) // groups, kernel, kernel))
        bias = m.rng.standard_normal(outputs).astype(np.float32)
        name = m.node("Conv", name, w, m.constant(bias), kernel_shape=[kernel] * 2, group=groups,
                      pads=[kernel // 2] * 4)
        value = _conv(value, real, groups, kernel // 2) + bias[:, None, None]
        if groups == 1:
            name, value = m.node("Relu", name), np.maximum(value, 0)
        name, value = m.quantised(name, value, kind)
    name, value = m.quantised(m.node("GlobalAveragePool", name), value.mean(axis=(1, 2)), kinds[-1])
    name = m.node("Flatten", name)
    w, real = m.weights((4, 10))
    name, value = m.quantised(m.node("Gemm", name, w, transB=1), real @ value, kinds[-1])
    graph = helper.make_graph(m.nodes, "words", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, *x.shape))],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4))], m.constants)
    opsets = [helper.make_opsetid("", 21), *([helper.make_opsetid(domain, 1)] if domain else [])]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(made)
    return made.SerializeToString(), x.astype(np.float32)[None], value


@pytest.mark.parametrize(("kinds", "domain", "most"), [
    ([np.int16] * 4, "", 12), ([np.uint16] * 4, "", 12), ([np.int16] * 4, "com.microsoft", 12),
    ([np.int8, np.int16, np.int16, np.int16], "", 12),
    ([np.int16, np.int16, np.int8, np.int16], "", 1_000)])     # a level of int8 are 250 of these
def test_layers_of_words_are_the_datapath_s_and_near_float64(kinds, domain, most):
    _computes_what_the_model_means(model_of(kinds, domain), most)


@pytest.mark.parametrize(("kinds", "zero"), [
    ([np.uint16] * 4, 120), ([np.uint16] * 4, 0), ([np.int8, *[np.int16] * 3], 255)])  # 255 levels on a side of zero
def test_words_take_uint8_weights_with_any_zero_point(kinds, zero):
    _computes_what_the_model_means(model_of(kinds, "", zero), 12)


def _computes_what_the_model_means(made, most):
    """Assert that no layer is the core's, that all are the reference's, and the output within levels of float64."""
    model, x, expected = made
    compiled = compile_layers(compile_network(model), WIDE, keep_tensors=True)
    network = compiled.network
    assert not [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]
    given = {info.name: quantise_input(info, x) for info in network.inputs}
    found, reference = execute(compiled, given), run_network(network, given)
    for layer in network.layers:
        for name in layer.writes:
            np.testing.assert_array_equal(found[name], reference[name])
    output = network.outputs[0]
    level = float(output.scale)
    assert np.abs(dequantise_output(output, found[output.name])[0] - expected).max() <= most * level


def test_a_machine_without_them_says_what_would_take_it():
    layers = compile_layers(compile_network(model_of([np.int16] * 4)[0]), BASE).network.layers
    assert [layer.op for layer in layers if layer.reason == NO_WORDS] == ["Conv"] * 3 + ["GlobalAveragePool", "Gemm"]
