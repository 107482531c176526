"""QONNX's Quant becomes quantisation of the same values, for all bits, signs and scales; its dialects are refused."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.onnx.dialects.qonnx import expand_qonnx
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.onnx_runtime import run_reference

SHAPE = (1, 4, 6, 6)


def quant(x: str, name: str, scale, bits: float, *, zero: float = 0, values=None, **attributes):
    """Return a Quant's node and constants; of constant ``values``, if there are some."""
    constants = {f"{name}_scale": scale, f"{name}_zero": zero, f"{name}_bits": bits}
    if values is not None:
        constants[x] = values
    domain = attributes.pop("domain", "qonnx.custom_op.general")
    node = helper.make_node(attributes.pop("op", "Quant"), [x, *list(constants)[:3]], [name], name, domain=domain,
                            **({"signed": 1, "narrow": 0, "rounding_mode": "ROUND"} | attributes))
    return node, [numpy_helper.from_array(np.asarray(value, np.float32), each) for each, value in constants.items()]


def model_of(nodes, constants, output, *, shape=SHAPE, opset=17, domains=("qonnx.custom_op.general",)):
    graph = helper.make_graph(nodes, "qonnx", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(each, 1) for each in domains]
                              + [helper.make_opsetid("", opset)], ir_version=8)
    for _ in shape:
        model.graph.output[0].type.tensor_type.shape.dim.add()
    return model


def expected(x, scale, bits, zero, signed, narrow):
    """Return what qonnx/custom_op/general/quant.py computes."""
    low = (-2**(bits - 1) + narrow) if signed else 0
    high = 2**(bits - 1) - 1 if signed else 2**bits - 1 - narrow
    scale = np.asarray(scale, np.float32)
    levels = np.clip(np.round(x / scale + np.float32(zero)), low, high)
    return ((levels - zero) * scale).astype(np.float32)


@pytest.mark.parametrize(("bits", "signed", "narrow", "zero"), [
    (8, 1, 0, 0), (8, 1, 1, 0), (8, 0, 0, 0), (8, 0, 0, 128), (7, 0, 0, 0), (4, 1, 0, 0), (4, 1, 1, 0), (4, 0, 0, 3),
    (2, 1, 1, 0), (1, 0, 0, 0),
])
@pytest.mark.parametrize("constant", [False, True])
def test_values_are_those_of_quant(bits, signed, narrow, zero, constant):
    x = np.random.default_rng(bits).normal(0, 20, SHAPE).astype(np.float32)
    source = "w" if constant else "x"
    node, constants = quant(source, "q", 0.25, bits, zero=zero, values=x if constant else None, signed=signed,
                            narrow=narrow)
    add = helper.make_node("Sub", ["q", "x"], ["y"]) if constant else helper.make_node("Identity", ["q"], ["y"])
    model = read_model(model_of([node, add], constants, "y").SerializeToString())
    found = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": np.zeros_like(x) if constant else x})[0]
    np.testing.assert_array_equal(found, expected(x, 0.25, bits, zero, signed, narrow))
    assert all(node.domain == "" for node in model.graph.node)
    assert len(notes_of(model)) == 1


@pytest.mark.parametrize("shape", [(5, 1, 1, 1), (1, 4, 1, 1)])
def test_a_scale_per_channel_has_its_axis(shape):
    values = np.random.default_rng(0).normal(0, 3, (5, 4, 3, 3)).astype(np.float32)
    scale = np.linspace(0.1, 0.4, max(shape)).reshape(shape).astype(np.float32)
    node, constants = quant("w", "q", scale, 4, values=values, narrow=1)
    model = expand_qonnx(model_of([node, helper.make_node("Conv", ["x", "q"], ["y"])], constants, "y"))
    kept = next(each for each in model.graph.node if each.op_type == "DequantizeLinear")
    assert kept.attribute[0].i == int(np.argmax(shape))
    tensors = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    levels = tensors[kept.input[0]].astype(np.float32)
    np.testing.assert_array_equal(levels * scale, expected(values, scale, 4, 0, 1, 1))


def layered(*, opset=17, domain="onnx.brevitas", channels_last=False) -> onnx.ModelProto:
    """Return Quant, Conv of quantised weights and bias, Relu, Quant of four bits: in NHWC too."""
    rng = np.random.default_rng(1)
    shape = (1, 6, 6, 4) if channels_last else SHAPE
    weights = rng.normal(0, 1, (8, 3, 3, 4) if channels_last else (8, 4, 3, 3))
    parts = [quant("x", "a", 0.125, 4, domain=domain),
             quant("w", "b", np.full((8, 1, 1, 1), 0.2), 4, values=weights, domain=domain, narrow=1),
             quant("v", "c", 0.05, 6, values=rng.normal(0, 1, 8), domain=domain)]
    conv = helper.make_node("Conv", ["a", "b", "c"], ["y"], "conv", kernel_shape=[3, 3], pads=[1] * 4,
                            domain="qonnx.custom_op.channels_last" if channels_last else "")
    last = quant("r", "z", 0.5, 4, signed=0, domain=domain)
    nodes = [*(node for node, _ in parts), conv, helper.make_node("Relu", ["y"], ["r"], "relu"), last[0]]
    constants = [each for _, some in (*parts, last) for each in some]
    return model_of(nodes, constants, "z", shape=shape, opset=opset, domains=(domain,))


@pytest.mark.parametrize("given", [{}, {"opset": 11}, {"domain": "qonnx.custom_op.general"}, {"channels_last": True}])
def test_a_layer_of_qonnx_runs_on_the_datapath(given, tmp_path):
    model = read_model(layered(**given).SerializeToString())
    onnx.save(model, tmp_path / "layer.onnx")
    network = compile_network(tmp_path / "layer.onnx")
    assert [layer.name for layer in network.layers if hasattr(layer, "reason")] == []
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(2).normal(size=shape)
    assert len(np.unique(run_reference(tmp_path / "layer.onnx", {"x": x.astype(np.float32)})["z"])) > 4


def test_a_missing_import_of_the_domain_is_no_fault():
    model = layered()
    kept = [each for each in model.opset_import if not each.domain]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    assert all(node.domain == "" for node in read_model(model.SerializeToString()).graph.node)


@pytest.mark.parametrize("given", [
    {"rounding_mode": "FLOOR"}, {"bits": 16}, {"bits": 3.5}, {"zero": 0.5}, {"zero": 256, "bits": 8}, {"scale": 0},
    {"scale": np.ones((2, 3, 1, 1))}, {"bits": np.inf}, {"bits": 2**20}, {"zero": np.nan},
    {"scale": np.ones((0, 1))}, {"op": "BipolarQuant"}, {"op": "Trunc"},
])
def test_what_has_no_such_form_is_refused_by_name(given):
    scale, bits = given.pop("scale", 0.5), given.pop("bits", 4)
    node, constants = quant("x", "q", scale, bits, **given)
    with pytest.raises(UnsupportedNodeError) as raised:
        read_model(model_of([node], constants, "q").SerializeToString())
    assert raised.value.node == "q"
    assert raised.value.way_out


def test_every_refusal_is_known():
    nodes, constants = zip(*(quant("x", name, 0.5, 16) for name in "abc"), strict=True)
    with pytest.raises(UnsupportedNodeError) as raised:
        read_model(model_of(nodes, [each for some in constants for each in some], "c").SerializeToString())
    assert len(raised.value.others) == 2


# ---- dialects of integers


@pytest.mark.parametrize(("op", "tool"), [
    ("iSoftmax", "Deeploy"), ("MultiThreshold", "FINN"), ("FakeQuantize", "OpenVINO"),
    ("TRT_INT8QuantizeLinear", "TensorRT")])
def test_dialects_are_refused_by_the_tools_name(op, tool):
    model = model_of([helper.make_node(op, ["x"], ["y"], "odd")], [], "y")
    with pytest.raises(UnsupportedModelError, match=rf"'odd' .*{tool}"):
        read_model(model.SerializeToString())


@pytest.mark.parametrize(("layers", "refused"), [(1, False), (2, True)])
def test_sums_that_are_multiplied_shifted_and_clipped_twice_are_an_integer_network(layers, refused):
    nodes, x = [], "x"
    for index in range(layers):
        for op, other in (("Mul", "n"), ("Add", "n"), ("Div", "n"), ("Floor", ""), ("Clip", "")):
            inputs = [x, other] if other else [x]
            x = f"{op}{index}"
            nodes.append(helper.make_node(op, inputs, [x], x))
    model = model_of(nodes, [numpy_helper.from_array(np.float32(2), "n")], x)
    if refused:
        with pytest.raises(UnsupportedNodeError, match=r"Clip0.*bounds"):
            read_model(model.SerializeToString())
    else:
        read_model(model.SerializeToString())


@pytest.mark.parametrize("op", ["Conv", "Upsample"])
def test_channels_in_blocks_of_a_processor_are_refused_with_the_level_that_has_none(op):
    domain = "com.microsoft.nchwc"
    nodes = [helper.make_node("ReorderInput", ["x"], ["a"], domain=domain),
             helper.make_node(op, ["a", "w"], ["b"], "odd", domain=domain),
             helper.make_node("ReorderOutput", ["b"], ["y"], domain=domain, channels=16)]
    weights = numpy_helper.from_array(np.zeros((16, 16, 1, 1), np.float32), "w")
    with pytest.raises(UnsupportedModelError, match=r"'odd'.*blocks") as raised:
        read_model(model_of(nodes, [weights], "y", domains=(domain,)).SerializeToString())
    assert "ORT_ENABLE_EXTENDED" in raised.value.way_out
