"""Where ONNX Runtime's fusion breaks a model that it runs otherwise, the reference leaves nodes at fault unfused."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS, Reference, session


def pools(*dilations):
    """Return x -> an average over 2x2 windows for each of the dilations, one behind the other, quantised between."""
    constants = {"s": np.float32(0.03), "z": np.int8(-4)}
    nodes, name = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q0"])], "q0"
    for index, dilation in enumerate(dilations, start=1):
        extra = {"dilations": [dilation] * 2} if dilation > 1 else {}
        nodes += [helper.make_node("DequantizeLinear", [name, "s", "z"], [f"d{index}"]),
                  helper.make_node("AveragePool", [f"d{index}"], [f"a{index}"], f"pool{index}", kernel_shape=[2, 2],
                                   **extra),
                  helper.make_node("QuantizeLinear", [f"a{index}", "s", "z"], [f"q{index}"])]
        name = f"q{index}"
    nodes.append(helper.make_node("DequantizeLinear", [name, "s", "z"], ["y"]))
    graph = helper.make_graph(nodes, "pools", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 12, 12))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9).SerializeToString()


X = {"x": np.random.default_rng(0).normal(size=(1, 4, 12, 12)).astype(np.float32)}


def unfused_values(model):
    """Return every tensor of levels as ONNX Runtime's float kernels give it."""
    proto = onnx.load_from_string(model)
    names = [node.output[0] for node in proto.graph.node if node.op_type == "QuantizeLinear"]
    proto.graph.output.extend(map(helper.make_empty_tensor_value_info, names))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(names, plain.run(names, X), strict=True))


def test_the_node_at_fault_alone_is_left_unfused():
    model = pools(1, 3, 1)
    reference = Reference(model)
    assert reference.unfused == ("pool2",)
    kinds = {operator.output: operator.op for operator in reference.operators}
    fused = "QLinearAveragePool"
    assert [kinds[name] for name in ("q1", "q2", "q3")] == [fused, "QuantizeLinear", fused]
    assert "a2" not in reference.run(X)


def test_what_is_left_unfused_has_the_float_kernels_values():
    found = Reference(model := pools(3, 3)).run(X)
    for name, expected in unfused_values(model).items():
        np.testing.assert_array_equal(found[name], expected)
    np.testing.assert_array_equal(session(model).run(None, X)[0], found["y"])


def test_nothing_is_left_unfused_without_need():
    assert Reference(pools(1, 1)).unfused == ()


def test_a_model_that_is_at_fault_itself_is_refused():
    broken = onnx.load_from_string(pools(1))
    broken.graph.node[2].op_type = "MeanPool"
    with pytest.raises(ONNX_RUNTIME_ERRORS):
        Reference(broken.SerializeToString())


def test_a_run_says_it(tmp_path):
    (tmp_path / "pools.onnx").write_bytes(pools(2))
    compared = run_model(ModelSource.of(tmp_path / "pools.onnx"), PRESETS["base"], "fast", None)
    (note,) = [note for note in compared.report.notes if "invalid model" in note]
    assert "pool1" in note
    assert "unfused" in note
    assert compared.comparison.difference is None
    assert compared.comparison.compared


def test_data_in_a_file_beside_the_model_are_found(tmp_path):
    proto = onnx.load_from_string(pools(1))
    onnx.save(proto, tmp_path / "net.onnx", save_as_external_data=True, size_threshold=0, location="net.bin")
    (found,) = [Reference(tmp_path / "net.onnx").run(X)["q1"]]
    np.testing.assert_array_equal(found, Reference(pools(1)).run(X)["q1"])
    compared = run_model(ModelSource.of(tmp_path / "net.onnx"), PRESETS["base"], "fast", None)
    assert compared.comparison.matches




@pytest.mark.parametrize("read", [False, True])
def test_levels_of_a_scale_per_channel_are_read_and_made_by_the_float_kernel(tmp_path, read):
    rng = np.random.default_rng(2)
    constants = {"s": np.float32(.02), "z": np.int8(0), "t": rng.uniform(.01, .1, 4).astype(np.float32),
                 "u": np.zeros(4, np.int8), "w": rng.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)}
    before, behind = (("t", "u"), ("s", "z")) if read else (("s", "z"), ("t", "u"))
    nodes = [helper.make_node("QuantizeLinear", ["x", *before], ["q"], axis=1),
             helper.make_node("DequantizeLinear", ["q", *before], ["d"], axis=1),
             helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"]),
             helper.make_node("Conv", ["d", "wd"], ["c"], "conv"),
             helper.make_node("QuantizeLinear", ["c", *behind], ["cq"], axis=1),
             helper.make_node("DequantizeLinear", ["cq", *behind], ["y"], axis=1)]
    graph = helper.make_graph(nodes, "scales", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 12, 12))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    found = Reference(model.SerializeToString(), mended=False)
    assert found.unfused == ("conv",)
    np.testing.assert_array_equal(found.run(X)["cq"], unfused_values(model.SerializeToString())["cq"])
    session(model.SerializeToString()).run(None, X)
    onnx.save(model, tmp_path / "net.onnx")
    assert run_model(ModelSource.of(tmp_path / "net.onnx"), PRESETS["base"], "fast", None).comparison.matches
