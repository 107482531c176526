"""Constants that contradict their operator are not computed, and end nothing."""

import itertools

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper

from tilewright.compiler.normal.folding import ELEMENTWISE, result
from tilewright.compiler.normal.values import MOVES

_FIRST = (np.zeros((2, 3), np.float32), np.float32(1), np.zeros((0, 3), np.int8), np.zeros((2, 2, 2, 2), np.int32))
_SECOND = (None, np.array([7, -9]), np.array(2.5, np.float32), np.zeros((5, 4, 3), np.int64), np.array([], np.int64),
           np.array([np.iinfo(np.int64).max] * 2))


@pytest.mark.parametrize("op", sorted(ELEMENTWISE | MOVES))
def test_what_the_reference_does_not_compute_is_none(op):
    for x, other, opset in itertools.product(_FIRST, _SECOND, (9, 13, 21)):
        with np.errstate(all="ignore"):
            value = result(ir.node(op, []), [np.asarray(x), *([] if other is None else [other])], opset)
        assert value is None or isinstance(value, np.ndarray)


def test_what_it_computes_is_a_constant():
    value = result(ir.node("Mul", []), [np.array([3], np.float32), np.float32(.5)], 21)
    np.testing.assert_array_equal(value, np.array([1.5], np.float32))


@pytest.mark.parametrize("kind", [ir.DataType.INT4, ir.DataType.UINT4, ir.DataType.INT2, ir.DataType.UINT2])
def test_a_cast_to_few_bits_rounds_as_onnx_runtime_does(kind):
    x = np.arange(-9, 17, .25, np.float32)
    nodes = [helper.make_node("Cast", ["x"], ["narrow"], to=kind),
             helper.make_node("Cast", ["narrow"], ["y"], to=onnx.TensorProto.FLOAT)]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, x.shape) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "casts", values[:1], values[1:]),
                              opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    value = result(ir.node("Cast", [], {"to": int(kind)}), [x], 25)
    assert value.dtype == kind.numpy()
    np.testing.assert_array_equal(value.astype(np.float32), session.run(None, {"x": x})[0])
