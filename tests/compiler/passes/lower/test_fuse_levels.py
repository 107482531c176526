"""Softmax, LRN and ArgMax of quantised tensors are computed with levels on the host core."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def core(model):
    return [layer.op for layer in compile_network(model).layers if isinstance(layer, CoreLayer)]


def built(op, dtype, zero_point, *, quantised, shape=(1, 8, 4, 3), **attrs):
    """Return a model of one operator between quantisations, or behind one."""
    model = ModelBuilder("qdq", seed=6, dtype=dtype, zero_point=zero_point)
    x = model.input(shape)
    float_ = model.node(op, [model.dequantised(x)], "float", **attrs)
    if quantised:
        y = model.value(shape, np.float32(1 / 200 if op == "Softmax" else x.scale))
        model.quantised(float_, y)
        return model.finish(y)
    kind = TensorProto.INT64 if op.startswith("Arg") else TensorProto.FLOAT
    result = (1, 1, *shape[2:]) if op.startswith("Arg") else shape
    model.outputs.append(helper.make_tensor_value_info("float", kind, result))
    return model.proto().SerializeToString()


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize(("op", "quantised", "kernels", "attrs"), [
    ("Softmax", True, ["SoftmaxOfLevels"], {"axis": 1}), ("Softmax", False, ["SoftmaxOfLevels"], {"axis": -1}),
    ("LogSoftmax", False, ["LogSoftmaxOfLevels"], {"axis": 1}),
    ("LogSoftmax", True, ["LogSoftmaxOfLevels", "QuantizeLinear"], {"axis": 1}),
    ("LRN", True, ["ResponseOfLevels"], {"size": 5}), ("LRN", False, ["DequantizeLinear", "LRN"], {"size": 5}),
    ("ArgMax", False, ["ArgMax"], {"axis": 1}), ("ArgMin", False, ["ArgMin"], {"axis": 1})])
def test_levels_stand_for_numbers(op, quantised, kernels, attrs, dtype, zero_point):
    network = assert_layers(built(op, dtype, zero_point, quantised=quantised, **attrs))
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == kernels


def test_what_the_levels_cannot_is_left_in_float():
    assert core(built("LRN", np.int8, 0, quantised=True, size=5, bias=-1.0)) == [
        "DequantizeLinear", "LRN", "QuantizeLinear"]
