"""Open dimensions are named all at once, with sizes that the model takes and options that can be pasted."""

import json
import re
import shlex

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.test_app import invoke, refused
from tests.support.float_models import FloatBuilder
from tilewright.compiler.onnx.given_shapes import proposed_values
from tilewright.compiler.onnx.open_shapes import BATCH_NOTE, OpenShapesError, has_open_batch, open_shapes
from tilewright.errors import InputError
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.standard_file import standard_file


def weights(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def net(shape, *, steps=(), head=None, outputs=None, metadata=()):
    """Return a model of convolutions with strides, and a head; inputs and metadata as stated."""
    nodes, constants, name = [], [], "x"
    channels = next((each for each in shape[1:2] if isinstance(each, int)), 3)
    for index, stride in enumerate(steps):
        constants.append(onnx.numpy_helper.from_array(weights(8, channels, 3, 3), f"w{index}"))
        nodes.append(helper.make_node("Conv", [name, f"w{index}"], [f"y{index}"], strides=stride, pads=[1, 1, 1, 1]))
        name, channels = f"y{index}", 8
    if head is not None:
        constants.append(onnx.numpy_helper.from_array(weights(head, 5), "head"))
        nodes += [helper.make_node("Flatten", [name], ["flat"]), helper.make_node("Gemm", ["flat", "head"], ["out"])]
        name = "out"
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, outputs)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    return model


@pytest.mark.parametrize(("model", "options"), [
    (net(("n", 3, "height", "width"), steps=[[2, 2]] * 5, outputs=["n", 8, "a", "b"]), ["height=320", "width=320"]),
    (net(("n", 3, "h", "w"), steps=[[2, 2]] * 2, head=8 * 7 * 7, outputs=["n", 5]), ["h=28", "w=28"]),
    (net(("n", 3, "h", "w"), steps=[[2, 2]], outputs=["n", 8, "a", "b"], metadata={"imgsz": "[480, 640]"}),
     ["h=480", "w=640"]),
    (net((-1, 3, "?", "?"), steps=[[2, 2], [2, 1], [2, 1], [2, 1]], outputs=["n", 8, "a", "b"]), ["x=1,3,48,320"]),
    (net(("n", 3, 48, "DynamicDimension.1"), steps=[[2, 2]], outputs=["n", 8, "a", "b"]), ["x=1,3,48,320"]),
    (net(("n", "c", 32, 32), steps=[[1, 1]], outputs=["n", 8, 32, 32]), ["c=3"]),
], ids=["detector", "what its layers take", "metadata", "lines of text", "width of a line", "channels"])
def test_sizes_are_proposed_with_which_the_model_runs(model, options, tmp_path):
    error = open_shapes(model)
    assert list(error.options[1::2]) == options
    assert set(error.options[::2]) == {"--shape"}
    # Done as told, ONNX Runtime runs the model.
    onnx.save(model, tmp_path / "net.onnx")
    shapes = {text.partition("=")[0]: tuple(map(int, text.partition("=")[2].split(","))) for text in options}
    runs = onnx_session(standard_file(tmp_path / "net.onnx", shapes)[0].read_bytes())
    (asked,) = runs.get_inputs()
    shape = [each if isinstance(each, int) else 1 for each in asked.shape]
    runs.run(None, {"x": np.zeros(shape, np.float32)})


def several():
    builder = FloatBuilder()
    model = builder.finish(builder.node("Relu", builder.conv(builder.input(("n", 3, "h", "w")), 3, 4)))
    model.graph.input.append(helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", "length"]))
    model.graph.input.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, [2, "?", 64]))
    return model


def test_all_open_inputs_are_named_at_once_and_the_command_can_be_pasted(tmp_path):
    onnx.save(several(), tmp_path / "net.onnx")
    told = refused(2, "check", tmp_path / "net.onnx", "--float")
    for name in ("'image' (n,3,h,w)", "'tokens' (n,length)", "'state' (2,?,64)"):
        assert name in told
    command = re.search(r"tilewright (check .*)$", told)[1]
    done = invoke(*shlex.split(command))
    assert done.exit_code == 0, done.output


def test_the_same_symbol_has_one_size():
    model = several()
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "h"
    del model.graph.input[2]
    error = open_shapes(model)
    assert [text.partition("=")[0] for text in error.options[1::2]] == ["h", "w"]


def test_symbols_are_taken_one_by_one_or_all(tmp_path):
    onnx.save(net(("n", 3, "height", "width"), steps=[[1, 1]], outputs=["n", 8, "a", "b"]), tmp_path / "net.onnx")
    told = refused(2, "check", tmp_path / "net.onnx", "--shape", "height=64")
    assert "width" in told
    assert "--shape height=64 --shape width=" in told
    assert invoke("check", tmp_path / "net.onnx", "--shape", "height=64", "--shape", "width=32").exit_code == 0


def test_a_batch_of_one_is_taken_with_a_note(tmp_path):
    model = net(("n", 3, 16, 16), steps=[[1, 1]], outputs=["n", 8, 16, 16])
    assert has_open_batch(model)
    onnx.save(model, tmp_path / "net.onnx")
    for words in (("run", "--engine", "cycles"), ("check",)):
        done = invoke(words[0], tmp_path / "net.onnx", *words[1:])
        assert done.exit_code == 0, done.output
        assert BATCH_NOTE in done.stdout
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, tmp_path / "one.onnx")
    assert BATCH_NOTE not in invoke("check", tmp_path / "one.onnx").stdout
    assert isinstance(open_shapes(several()), OpenShapesError)


def test_a_size_of_0_is_told(tmp_path):
    model = net(("n", 3, 16, 16), steps=[[1, 1]], outputs=["n", 8, 16, 16])
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 0
    onnx.save(model, tmp_path / "net.onnx")
    told = refused(2, "check", tmp_path / "net.onnx")
    assert "'x' (n,3,0,16) has open dimensions, as a size of 0 is" in told
    assert invoke(*shlex.split(re.search(r"tilewright (check .*)$", told)[1])).exit_code == 0


# ---- inputs that are always the same


def with_rate(kind=TensorProto.INT64, shape=()):
    """Return a model that computes one thing for a rate of 16000, and another for 8000."""
    builder = FloatBuilder()
    x = builder.input((1, 3, 8, 8))
    model = builder.finish(builder.conv(x, 3, 4))
    model.graph.input.append(helper.make_tensor_value_info("rate", kind, shape))
    branches = []
    for name, factor in (("then", 1.0), ("else", 2.0)):
        constant = onnx.numpy_helper.from_array(np.float32(factor), f"factor_{name}")
        branches.append(helper.make_graph(
            [helper.make_node("Mul", [model.graph.output[0].name, f"factor_{name}"], [f"out_{name}"])], name, [],
            [helper.make_tensor_value_info(f"out_{name}", TensorProto.FLOAT, None)], [constant]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.int64(16000), "wide"))
    model.graph.node.append(helper.make_node("Equal", ["rate", "wide"], ["is_wide"]))
    model.graph.node.append(helper.make_node("If", ["is_wide"], ["chosen"], then_branch=branches[0],
                                             else_branch=branches[1]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("chosen", TensorProto.FLOAT, [1, 4, 8, 8]))
    return model


@pytest.mark.parametrize("rate", [16000, 8000])
def test_an_input_with_a_value_is_folded(tmp_path, rate):
    onnx.save(with_rate(), tmp_path / "net.onnx")
    done = invoke("run", tmp_path / "net.onnx", "--input-value", f"rate={rate}", "--float")
    assert done.exit_code == 0, done.output
    file, _ = standard_file(tmp_path / "net.onnx", {}, {"rate": (rate,)})
    x = np.ones((1, 3, 8, 8), np.float32)
    fixed, whole = onnx_session(file.read_bytes()), onnx_session((tmp_path / "net.onnx").read_bytes())
    assert [each.name for each in fixed.get_inputs()] == ["image"]
    (made,) = fixed.run(None, {"image": x})
    np.testing.assert_array_equal(made, whole.run(None, {"image": x, "rate": np.array(rate, np.int64)})[0])


@pytest.mark.parametrize(("values", "match"), [
    ({"rat": (1.0,)}, "rate is near"), ({"rate": (0.5,)}, "int64"), ({"rate": (1.0, 2.0)}, "one value"),
    ({"rate": (1.0,), "image": (0.0,)}, "leave the model an input"),
])
def test_values_that_do_not_go_with_the_model_are_refused(tmp_path, values, match):
    onnx.save(with_rate(), tmp_path / "net.onnx")
    with pytest.raises(InputError, match=match):
        standard_file(tmp_path / "net.onnx", {}, values)


def test_where_no_values_can_be_made_up_the_option_is_named(tmp_path):
    onnx.save(with_rate(), tmp_path / "net.onnx")
    told = refused(2, "check", tmp_path / "net.onnx")
    assert "--input-value rate=16000" in told
    assert invoke(*shlex.split(re.search(r"the command is tilewright (check .*)$", told)[1])).exit_code == 0


def test_a_branch_that_an_input_decides_names_the_option(tmp_path):
    onnx.save(with_rate(), tmp_path / "net.onnx")
    done = invoke("check", tmp_path / "net.onnx", "--float", "--json", tmp_path / "check.json")
    assert done.exit_code == 2
    (refusal,) = json.loads((tmp_path / "check.json").read_text())["refusals"]
    assert refusal["op"] == "If"
    assert "--input-value rate=16000" in refusal["way_out"]


def test_sizes_and_values_are_proposed_in_one_command(tmp_path):
    model = with_rate()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "rows"
    onnx.save(model, tmp_path / "net.onnx")
    told = refused(2, "check", tmp_path / "net.onnx")
    assert "the value that 'rate' always has" in told
    assert invoke(*shlex.split(re.search(r"the command is tilewright (check .*)$", told)[1])).exit_code == 0


@pytest.mark.parametrize(("name", "kind", "values"), [
    ("sr", TensorProto.INT64, {"sr": 16000}), ("sampling_rate", TensorProto.INT32, {"sampling_rate": 16000}),
    ("rate", TensorProto.INT64, {"rate": 16000}), ("count", TensorProto.INT64, {}), ("sr", TensorProto.FLOAT, {})])
def test_a_setting_is_told_by_what_it_is_compared_with_or_its_name(name, kind, values):
    model = with_rate(kind)
    if name != "rate":
        model.graph.input[1].name = name
        model.graph.node[-2].input[0] = "image"
    assert proposed_values(model) == values


def test_texts_that_are_no_values_are_refused(tmp_path):
    onnx.save(with_rate(), tmp_path / "net.onnx")
    for text in ("rate", "rate=fast", "=3"):
        assert "--input-value must have the form" in refused(2, "check", tmp_path / "net.onnx", "--input-value", text)
    assert "built in" in refused(2, "check", "lenet5", "--input-value", "image=1")
