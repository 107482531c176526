"""LRN of a float model is quantised as squares, sums of neighbouring channels, a table and a product."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.test_app import invoke
from tilewright.compiler.onnx.reader import read_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.float_graph import prepare
from tilewright.runtime.quantise.quantiser import quantise
from tilewright.tools.progress import Silence

_SHAPE = (1, 3, 20, 20)


def _model(path, **attributes):
    """Write Conv -> Relu -> LRN -> MaxPool -> Conv, as AlexNet begins."""
    rng = np.random.default_rng(4)
    constants = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * np.float32(0.2), name)
                 for name, shape in (("w", (12, 3, 3, 3)), ("b", (12,)), ("v", (8, 12, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("LRN", ["r"], ["n"], "response", **attributes),
             helper.make_node("MaxPool", ["n"], ["p"], kernel_shape=[3, 3], strides=[2, 2]),
             helper.make_node("Conv", ["p", "v"], ["y"])]
    graph = helper.make_graph(nodes, "alex", [helper.make_tensor_value_info("x", TensorProto.FLOAT, _SHAPE)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def _floats(model, image):
    return session(model).run(None, {"x": image})[0]


@pytest.mark.parametrize("attributes", [{"size": 5}, {"size": 3, "alpha": 2.0, "bias": 0.5}, {"size": 1, "beta": 0.5},
                                        {"size": 31, "alpha": 3.0, "beta": 1.0, "bias": 2.0}])
def test_the_prepared_model_computes_the_same(tmp_path, attributes):
    path = _model(tmp_path / "alex.onnx", **attributes)
    found = prepare(read_model(path)).proto
    assert "LRN" not in {node.op_type for node in found.graph.node}
    image = np.random.default_rng(1).standard_normal(_SHAPE).astype(np.float32)
    np.testing.assert_allclose(_floats(found.SerializeToString(), image), _floats(path.read_bytes(), image),
                               rtol=1e-4, atol=1e-5)


def test_nothing_of_it_runs_on_the_core_and_the_answer_stays_near_that_in_float(tmp_path):
    path, samples = _model(tmp_path / "alex.onnx", size=5, alpha=1.0), tmp_path / "samples.npy"
    images = np.random.default_rng(2).standard_normal((8, *_SHAPE[1:])).astype(np.float32)
    np.save(samples, images)
    assert "Core: 0 %" in invoke("run", path, "--calibrate", samples).stdout
    made = quantise(read_model(path), path, samples, Silence()).model.read_bytes()
    expected = np.concatenate([_floats(path.read_bytes(), image[None]) for image in images])
    found = np.concatenate([_floats(made, image[None]) for image in images])
    noise = np.square(found - expected).mean() / np.square(expected).mean()
    assert 10 * np.log10(noise) < -28
