"""A model that is quantised here runs in a batch, on as many of its calibration samples."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.network.options import Options
from tilewright.isa.machine import preset
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


def test_a_batch_is_as_many_calibration_samples(tmp_path):
    weights = np.random.default_rng(0).normal(size=(6, 1, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])], "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 5, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    source = find_model(str(tmp_path / "m.onnx"), Silence())
    found = run_model(source, preset("base"), "fast", None, options=Options(batch=3))
    assert found.comparison.matches
    assert found.outputs["y"].shape == (3, 6, 3, 4)
    assert not np.array_equal(found.outputs["y"][0], found.outputs["y"][1])
