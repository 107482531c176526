"""Models newer than ONNX Runtime's kernels are read in an opset that it computes, and mean the same there."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.compiler.onnx.test_opsets import network, quantised
from tilewright.compiler.onnx.opset import converted, with_gelu, with_kernels, with_round
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

NEWEST = onnx.defs.onnx_opset_version()


def one(op, opset, constants=None, shape=(1, 4, 4, 4), dtype=TensorProto.FLOAT, **attributes):
    node = helper.make_node(op, ["x", *(constants or {})], ["y"], "it", **attributes)
    graph = helper.make_graph([node], "one", [helper.make_tensor_value_info("x", dtype, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(value), name)
                               for name, value in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def runs(model):
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except ONNX_RUNTIME_ERRORS:
        return False
    return True


def opset_of(model):
    return next(each.version for each in model.opset_import if each.domain == "")


@pytest.mark.parametrize("opset", range(17, NEWEST + 1))
def test_a_model_is_changed_where_onnx_runtime_does_not_run_it_and_then_it_does(opset):
    model = one("DequantizeLinear", opset, {"s": np.float32(0.1)}, dtype=TensorProto.INT8)
    ran, before = runs(model), model.SerializeToString()
    read = with_kernels(model)
    assert runs(read)
    assert (opset_of(read) == opset) == ran
    assert bool(notes_of(read)) != ran
    assert not ran or read.SerializeToString() == before


def test_the_newest_opset_that_runs_is_taken():
    model = one("DequantizeLinear", NEWEST, {"s": np.float32(0.1)}, dtype=TensorProto.INT8)
    assert not runs(model), "ONNX Runtime has caught up: nothing here is tested"
    read = with_kernels(model)
    assert all(not runs(one("DequantizeLinear", opset, {"s": np.float32(0.1)}, dtype=TensorProto.INT8))
               for opset in range(opset_of(read) + 1, NEWEST + 1))


@pytest.mark.parametrize("opset", [7, 9, 12, 17, 23])
def test_older_models_stay_as_they_are(opset):
    model = network(opset)
    before = model.SerializeToString()
    assert with_kernels(model).SerializeToString() == before


def test_metadata_and_names_stay():
    model = quantised(23)
    model.opset_import[0].version = NEWEST
    model.metadata_props.add(key="author", value="someone")
    names = [node.name for node in model.graph.node]
    read = with_kernels(model)
    assert [node.name for node in read.graph.node] == names
    assert ("author", "someone") in {(each.key, each.value) for each in read.metadata_props}


def test_what_means_something_else_there_stays_as_it_is():
    model = one("SpaceToDepth", NEWEST, blocksize=2, mode="CRD")
    assert with_kernels(model) is model


def test_a_fast_gelu_needs_an_opset_that_has_a_gelu():
    model = one("FastGelu", 17)
    model.graph.node[0].domain = "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.metadata_props.add(key="author", value="someone")
    made = with_gelu(model)
    assert opset_of(made) == 20
    assert [each.key for each in made.metadata_props] == ["author"]
    assert runs(made)
    assert with_gelu(made) is made


@pytest.mark.filterwarnings("ignore::tilewright.errors.FloatOnCoreWarning")
@pytest.mark.parametrize("opset", range(24, NEWEST + 1))
@pytest.mark.parametrize("build", [network, quantised])
def test_models_of_the_newest_opsets_run_as_older_ones_do(tmp_path, build, opset):
    model, older = build(23), build(23)
    model.opset_import[0].version = opset
    reports = []
    for name, each in (("newer", model), ("older", older)):
        (tmp_path / name).mkdir()
        onnx.save(each, tmp_path / name / "net.onnx")
        run = run_model(find_model(str(tmp_path / name / "net.onnx"), Silence()), PRESETS["base"], "fast", None)
        assert run.comparison.matches is not False
        assert run.comparison.compared
        reports.append(run.report)
    assert reports[0].cycles == reports[1].cycles
    feed = {"x": np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    np.testing.assert_array_equal(*(InferenceSession(each).run(None, feed)[0] for each in (model, older)))


def test_quantisation_of_opset_10_is_brought_to_that_of_a_round(tmp_path):
    """ONNX Runtime rounds a float bias, which is an operator of opset 11."""
    constants = {"s": np.float32(.05), "z": np.int8(0), "w": np.arange(27, dtype=np.int8).reshape(1, 3, 3, 3),
                 "b": np.float32([.3])}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
             helper.make_node("Conv", ["d", "v", "b"], ["c"]),
             helper.make_node("QuantizeLinear", ["c", "s", "z"], ["r"]),
             helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"])]
    graph = helper.make_graph(nodes, "old", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 6, 6))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1, 4, 4))],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
    assert with_round(proto).opset_import[0].version == 11
    path = tmp_path / "old.onnx"
    onnx.save(proto, path)
    assert run_model(find_model(str(path), Silence()), PRESETS["base"], "fast", None).comparison.matches is True


SCALES = {"s": np.array([1, 1, 2, 2], np.float32)}


@pytest.mark.parametrize("model", [
    one("Upsample", 9, SCALES, mode="linear"), one("Upsample", 9, SCALES, mode="nearest"),
    one("Resize", 10, SCALES, mode="linear"), one("Resize", 10, SCALES, mode="nearest"),
    one("Softmax", 11, shape=(3, 2, 4)),
], ids=["linear 9", "nearest 9", "linear 10", "nearest 10", "Softmax"])
def test_an_older_model_means_the_same_in_a_newer_opset(model):
    model.ir_version = 4
    shape = tuple(extent.dim_value for extent in model.graph.input[0].type.tensor_type.shape.dim)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    made = converted(model, 17)
    assert opset_of(made) == 17
    before, after = (onnxruntime.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x})[0] for each in (model, made))
    assert np.allclose(before, after, atol=1e-6)
