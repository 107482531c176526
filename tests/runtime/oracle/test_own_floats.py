"""Integer kernels of ONNX Runtime's that are far from its own float kernels are told, with the number of levels."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.onnx_runtime import Reference
from tilewright.runtime.oracle.own_floats import own_differences


@pytest.fixture
def model(tmp_path):
    def save(**attributes):
        """Write x of int8 -> two averages over windows of 2x2, the second with ``attributes``; return the file."""
        nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xd"]),
                 helper.make_node("AveragePool", ["xd"], ["a"], kernel_shape=[2, 2]),
                 helper.make_node("QuantizeLinear", ["a", "s", "z"], ["q"]),
                 helper.make_node("DequantizeLinear", ["q", "s", "z"], ["qd"]),
                 helper.make_node("AveragePool", ["qd"], ["b"], kernel_shape=[2, 2], strides=[2, 2], **attributes),
                 helper.make_node("QuantizeLinear", ["b", "s", "z"], ["y"])]
        x = helper.make_tensor_value_info("x", TensorProto.INT8, (1, 3, 16, 16))
        graph = helper.make_graph(nodes, "pools", [x],
                                  [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
                                  [numpy_helper.from_array(np.float32(0.05), "s"),
                                   numpy_helper.from_array(np.int8(3), "z")])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.save(proto, tmp_path / "pools.onnx")
        return tmp_path / "pools.onnx"
    return save


def inputs():
    return {"x": np.random.default_rng(0).integers(-128, 128, (1, 3, 16, 16)).astype(np.int8)}


def averages(q, counted):
    """Return the second average in floats: of windows at the edge divided by 4 if what is outside is counted."""
    padded = np.pad(0.05 * (q.astype(np.float64) - 3), [(0, 0), (0, 0), (0, 1), (0, 1)])
    sums = sum(padded[..., i::2, j::2] for i in (0, 1) for j in (0, 1))
    ones = np.pad(np.ones(q.shape), [(0, 0), (0, 0), (0, 1), (0, 1)])
    inside = sum(ones[..., i::2, j::2] for i in (0, 1) for j in (0, 1))
    return np.clip(np.rint(sums / (4 if counted else inside) / 0.05) + 3, -128, 127)


def test_padding_that_only_the_integer_kernel_counts_is_told(model):
    file = model(ceil_mode=1, count_include_pad=1)
    tensors = Reference(file).run(inputs())
    (found,) = own_differences(file, inputs(), tensors)
    assert (found.tensor, found.op) == ("y", "AveragePool")
    # The float kernel leaves out what ceil_mode adds, the integer one counts it.
    own = averages(tensors["q"], counted=False)
    assert abs(found.levels - np.abs(own - tensors["y"]).max()) <= 1
    assert found.levels > 20
    compared = run_model(ModelSource.of(file), PRESETS["base"], "fast", None)
    (note,) = [note for note in compared.report.notes if note.startswith("WARNING")]
    assert "y (AveragePool)" in note
    assert "levels" in note


def test_kernels_that_agree_are_not_told(model):
    file = model(ceil_mode=1)
    assert own_differences(file, inputs(), Reference(file).run(inputs())) == ()
