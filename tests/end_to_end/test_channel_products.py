"""A squeeze-and-excitation block in RTL, its product included: the bits of the reference, and nothing on the core."""

import numpy as np
import pytest

from tests.support.onnx_models import ModelBuilder
from tests.support.rtl import execute_rtl
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS


@pytest.mark.parametrize("zero_point", [0, None])
def test_squeeze_and_excitation(tmp_path, zero_point):
    model = ModelBuilder("qdq", seed=7, zero_point=zero_point)
    x = model.conv(model.input((1, 4, 6, 6)), 10)
    gate = model.conv(model.average(x), 10, kernel=1)
    opened = model.value(gate.shape, np.float32(1 / 255), -128)
    model.quantised(model.node("HardSigmoid", [model.dequantised(gate)], "opened", alpha=1 / 6, beta=0.5), opened)
    y = model.value(x.shape, np.float32(x.scale * 0.6))
    model.quantised(model.node("Mul", [model.dequantised(x), model.dequantised(opened)], "product"), y)
    network = compile_network(model.finish(model.conv(y, 3, kernel=1)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    compiled = compile_layers(network, PRESETS["base"], keep_tensors=True)
    rng = np.random.default_rng(3)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    tensors, _ = execute_rtl(compiled, inputs, tmp_path)
    expected = run_network(compiled.network, inputs)
    for name in (y.name, compiled.network.outputs[0].name):
        np.testing.assert_array_equal(tensors[name], expected[name])
