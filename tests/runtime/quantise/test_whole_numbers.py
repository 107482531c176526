"""Inputs of whole numbers get values that the model can take."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.test_app import invoke
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.quantise.samples import NoValuesError
from tilewright.runtime.quantise.whole_numbers import MOST_UNBOUND, table_ranges, whole_bounds
from tilewright.tools.progress import Silence


def tokens(rows=7, name="ids"):
    """Return a model that looks up rows of a table and multiplies them."""
    draw = np.random.default_rng(0)
    constants = {"table": draw.normal(size=(rows, 8)), "matrix": draw.normal(size=(8, 4))}
    nodes = [helper.make_node("Cast", [name], ["wide"], to=TensorProto.INT64),
             helper.make_node("Gather", ["table", "wide"], ["embedded"]),
             helper.make_node("MatMul", ["embedded", "matrix"], ["y"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info(name, TensorProto.INT32, [1, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, 4])],
                              [numpy_helper.from_array(each.astype(np.float32), key)
                               for key, each in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_table_bounds_what_chooses_from_it():
    assert whole_bounds(tokens()) == {"ids": 7}
    model = tokens(name="attention_mask")
    assert whole_bounds(model) == {"attention_mask": 2}
    del model.graph.node[1:]
    model.graph.input[0].name = model.graph.node[0].input[0] = "bytes"
    assert whole_bounds(model) == {"bytes": MOST_UNBOUND}
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    assert whole_bounds(model) == {}


def test_rows_are_quantised_at_the_range_of_all_of_them():
    model = tokens()
    table = numpy_helper.to_array(model.graph.initializer[0])
    assert table_ranges(model) == {"embedded": [{"rmin": table.min(), "rmax": table.max()}]}
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 6), np.int64), "wide"))
    assert table_ranges(model) == {}


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_an_embedding_is_a_copy_of_rows_of_levels(tmp_path, kind):
    model = tokens(40)
    model.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model.graph.node[1].input[1] = "ids"
    del model.graph.node[0]
    onnx.save(model, tmp_path / "net.onnx")
    ids = np.random.default_rng(1).integers(-40, 40, (4, 1, 6)).astype(kind)
    np.savez(tmp_path / "ids.npz", ids=ids)
    given = find_model(str(tmp_path / "net.onnx"), Silence(), calibrate=tmp_path / "ids.npz")
    run = run_model(given, PRESETS["base"], "fast", None)
    assert run.comparison.matches
    (copied,) = (each for each in run.report.layers if each.kind == "core")
    assert copied.name.startswith("Gather")
    assert copied.counts["cycles"] < 2_500


@pytest.mark.parametrize("words", [("check",), ("run",)])
def test_a_model_of_bytes_has_a_quick_look(tmp_path, words):
    model = tokens()
    del model.graph.node[:2]
    model.graph.initializer.append(numpy_helper.from_array(np.arange(7, dtype=np.int32), "letters"))
    model.graph.initializer.append(numpy_helper.from_array(np.array([2]), "last"))
    one_hot = [helper.make_node("Unsqueeze", ["ids", "last"], ["column"]),
               helper.make_node("Equal", ["column", "letters"], ["same"]),
               helper.make_node("Cast", ["same"], ["chosen"], to=TensorProto.FLOAT),
               helper.make_node("MatMul", ["chosen", "table"], ["embedded"])]
    nodes = [*one_hot, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "net.onnx")
    done = invoke(*words, tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert f"whole numbers for ids below {MOST_UNBOUND}" in done.output


def masked(*shape):
    """Return a convolution of which a mask, an input of its own, chooses elements."""
    weights = np.random.default_rng(0).normal(size=(4, 4, 1, 1)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Where", ["mask", "a", "none"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6]),
              helper.make_tensor_value_info("mask", TensorProto.BOOL, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])]
    graph = helper.make_graph(nodes, "net", inputs, outputs,
                              [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.float32(0), "none")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_mask_is_drawn_and_a_setting_is_asked_for(tmp_path):
    onnx.save(masked(1, 1, 6, 6), tmp_path / "mask.onnx")
    onnx.save(masked(), tmp_path / "setting.onnx")
    model = find_model(str(tmp_path / "mask.onnx"), Silence())
    run = run_model(model, PRESETS["base"], "fast", None)
    assert run.comparison.matches
    assert np.unique(run.outputs["y"]).size > 9
    assert (run.outputs["y"] == 0).any()
    with pytest.raises(NoValuesError, match="'mask' is bool"):
        find_model(str(tmp_path / "setting.onnx"), Silence())
