"""A bias that products share is quantised for each, whatever the names of the tensors around it are."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.own_biases import own_biases
from tilewright.runtime.session import InferenceSession

RNG = np.random.default_rng(3)
IMAGES = RNG.normal(0, 1, (4, 4, 8, 8)).astype(np.float32)


def shared():
    """Return two convolutions that share a bias, with results named as ONNX Runtime's quantiser names copies of it."""
    constants = {f"w{place}": RNG.normal(0, 0.3, (8, 4, 3, 3)).astype(np.float32) for place in range(2)}
    constants["bias"] = RNG.normal(0, 0.1, 8).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", f"w{place}", "bias"], [f"bias{place}"], pads=[1] * 4) for place in range(2)]
    nodes += [helper.make_node("Neg", ["bias0"], ["n0"]), helper.make_node("Neg", ["bias1"], ["n1"]),
              helper.make_node("Concat", ["n0", "n1"], ["y"], axis=1)]
    graph = helper.make_graph(
        nodes, "shared", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 8, 8])],
        [numpy_helper.from_array(values, name) for name, values in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_quantised_model_computes_what_the_float_one_does(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    model = shared()
    onnx.save(model, tmp_path / "net.onnx")
    (found,) = InferenceSession(tmp_path / "net.onnx", calibrate=IMAGES).run(None, {"x": IMAGES[:1]})
    (expected,) = session(model.SerializeToString()).run(None, {"x": IMAGES[:1]})
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


def test_copies_have_names_that_nothing_has():
    model = shared()
    model.graph.node[2].output[0] = model.graph.node[4].input[0] = "bias:2"
    own_biases(model.graph)
    assert [node.input[2] for node in model.graph.node[:2]] == ["bias", "bias:3"]
    onnx.checker.check_model(model)
