"""A softmax between words is one operator of the host core, whose result the model's border reads in planes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.words.test_word_functions import X, model
from tests.compiler.words.test_word_operators import Graph
from tests.support.execute import execute
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.oracle.conversion import dequantise_output

WIDE = replace(PRESETS["base"], wide_words=True)


@pytest.mark.parametrize("out", [(1 / 32_767, np.int16(0)), (1 / 65_535, np.uint16(0))])
def test_a_softmax_of_words_is_within_a_level_of_float64(out):
    g, kind = Graph(), type(out[1])
    name, x = g.quantised("x", np.float64(X), 0.0003, kind(20))
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    real = powers / powers.sum(axis=1, keepdims=True)
    name, _ = g.quantised(g.node("Softmax", name, axis=1), real, *out)
    compiled = compile_layers(compile_network(model(g, name)), WIDE)
    network = compiled.network
    kernels = [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]
    assert kernels == ["QuantizeLinear", "SoftmaxOfWords"]
    inputs = {info.name: X for info in network.inputs}
    (info,), found = network.outputs, run_network(network, inputs)
    np.testing.assert_array_equal(execute(compiled, inputs)[info.name], found[info.name])
    off = dequantise_output(info, found[info.name]).reshape(X.shape) - real
    assert np.abs(off).max() / np.float32(out[0]) < 0.55
