"""A softmax of levels as ONNX Runtime computes it, and models that have one."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

__all__ = ["quantised_softmax"]


def quantised_softmax(length, dtype, x_scale, y_scale, zero_point):
    """Return ONNX Runtime's session of a QLinearSoftmax of rows of ``dtype``, whose input has the zero point 0."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    numbers = {"xs": np.float32(x_scale), "ys": np.float32(y_scale), "xz": dtype(0), "yz": dtype(zero_point)}
    node = helper.make_node("QLinearSoftmax", ["x", "xs", "xz", "ys", "yz"], ["y"], domain="com.microsoft", axis=-1,
                            opset=13)
    graph = helper.make_graph([node], "one", *([helper.make_tensor_value_info(name, kind, ["n", length])]
                                               for name in "xy"),
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17),
                                                                  helper.make_opsetid("com.microsoft", 1)])
    assert kind in (TensorProto.INT8, TensorProto.UINT8)
    return onnx_session(model.SerializeToString())
