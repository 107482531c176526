"""Tensors of a user whose names are those that images of others would have keep their own values."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.onnx.cleaning import rename_images
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


def two_branches(line: str, image: str, given: str = "image") -> onnx.ModelProto:
    """Return two convolutions of a line, between them the levels ``line``, and two of an image, ``image`` likewise.

    ``given`` is the name of the input image.
    """
    rng, values, nodes = np.random.default_rng(1), {"s": np.float32(.05), "z": np.int8(3), "zero": np.int8(0)}, []

    def quantised(x: str, name: str) -> str:
        nodes.extend([helper.make_node("QuantizeLinear", [x, "s", "z"], [name]),
                      helper.make_node("DequantizeLinear", [name, "s", "z"], [f"{name}/real"])])
        return f"{name}/real"

    def convolved(x: str, name: str, *shape: int) -> str:
        values[f"{name}/weights"] = rng.integers(-127, 128, shape).astype(np.int8)
        nodes.extend([helper.make_node("DequantizeLinear", [f"{name}/weights", "s", "zero"], [f"{name}/kernel"]),
                      helper.make_node("Conv", [x, f"{name}/kernel"], [f"{name}/sums"])])
        return f"{name}/sums"

    first = quantised(convolved(quantised("row", "row/levels"), "first", 8, 4, 3), line)
    second = quantised(convolved(quantised(given, "given/levels"), "second", 8, 4, 3, 3), image)
    outputs = [quantised(convolved(first, "third", 8, 8, 3), "y"),
               quantised(convolved(second, "fourth", 8, 8, 3, 3), "v")]
    graph = helper.make_graph(
        nodes, "branches",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
         for name, shape in (("row", (1, 4, 20)), (given, (1, 4, 7, 7)))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
         for name, shape in zip(outputs, ((1, 8, 16), (1, 8, 3, 3)), strict=True)],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(("line", "image", "said"), [
    ("t", "t:line", "'t:line' is called 't_line'"), ("t:line", "t", "'t:line' is called 't_line'"), ("t", "u", "")])
def test_a_name_that_an_image_would_have_is_changed_and_that_is_said(tmp_path, monkeypatch, line, image, said):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(two_branches(line, image), tmp_path / "net.onnx")
    source = find_model(str(tmp_path / "net.onnx"), Silence())
    assert any(said in note for note in source.notes) == bool(said)
    done = run_model(source, PRESETS["base"], "fast", None)
    assert done.comparison.matches is True, done.comparison


def test_of_a_name_that_a_user_feeds_the_other_one_is_changed():
    proto = two_branches("t", "u", given="t:line")
    assert rename_images(proto) == {"t": "t_"}
    assert [each.name for each in proto.graph.input] == ["row", "t:line"]
    assert rename_images(proto) == {}


def test_names_that_are_free_are_found_one_behind_another():
    proto = two_branches("t", "t:rows")
    proto.graph.value_info.append(helper.make_tensor_value_info("t:rows", TensorProto.INT8, None))
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.int8), "t_rows"))
    assert rename_images(proto) == {"t:rows": "t_rows_"}
    assert [each.name for each in proto.graph.value_info] == ["t_rows_"]
