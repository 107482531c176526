"""Advice that helps: of each reason a small model, what is advised, and the model changed so, on the datapath."""

import ast
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.kernels.ways_out import MIDDLE, causes, texts, way_out
from tilewright.runtime.check.model_check import Check, check_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence

SOURCES = Path(__file__).parents[3] / "compiler"


def checked(model: onnx.ModelProto, folder: Path, machine: str = "base", **how: object) -> Check:
    onnx.save(model, folder / "net.onnx")
    return check_model(find_model(str(folder / "net.onnx"), Silence(), **how), design_of(machine))  # type: ignore[arg-type]


def qdq(build: Callable[[ModelBuilder, Value], Value | None], shape: tuple[int, ...] = (1, 8, 8, 8),
        **how: object) -> onnx.ModelProto:
    """Return a model that ``build`` writes behind a quantised input; its value is an output."""
    builder = ModelBuilder("qdq", seed=3, **how)  # type: ignore[arg-type]
    found = build(builder, builder.input(shape))
    if found is not None:
        builder.output(found)
    proto = builder.proto()
    proto.opset_import[0].version, proto.ir_version = 19, 9
    return proto


def operator(builder: ModelBuilder, op: str, *inputs: str, shape: tuple[int, ...], scale: float = 0.02,
             zero_point: int = 0, **attrs: object) -> Value:
    """Add an operator of float tensors, and what quantises its result."""
    out = builder.value(shape, np.float32(scale), zero_point)
    builder.quantised(builder.node(op, inputs, f"float{len(builder.nodes)}", **attrs), out)
    return out


def constant(builder: ModelBuilder, array: np.ndarray, scale: np.ndarray | float = 0.01, axis: int = 0,
             dtype: type = np.int8) -> str:
    """Add a quantised constant, and return the name of its floats."""
    scale = np.asarray(scale, np.float32)
    names = [builder.constant(array.astype(dtype)), builder.constant(scale),
             builder.constant(np.zeros(scale.shape, dtype))]
    return builder.node("DequantizeLinear", names, f"fixed{len(builder.nodes)}", axis=axis)


def levels(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).integers(-100, 100, shape)


def conv(b: ModelBuilder, x: Value, weights: str, channels: int, kernel: int = 1) -> Value:
    size = x.shape[2] - kernel + 1
    return operator(b, "Conv", b.dequantised(x), weights, shape=(1, channels, size, size))


# ---- the models


def float_weights(b, x):
    return conv(b, x, b.constant(levels(8, 8, 1, 1).astype(np.float32)), 8)


def quantised_weights(b, x):
    return conv(b, x, constant(b, levels(8, 8, 1, 1)), 8)


def kept_in_float(b, x):
    y = b.dequantised(quantised_weights(b, x))
    for _ in range(2):
        y = b.node("Conv", [y, b.constant(levels(8, 8, 1, 1).astype(np.float32) / 999)], f"kept{len(b.nodes)}")
    out = b.value(x.shape, np.float32(0.02), 0)
    b.quantised(y, out)
    return out


def quantised_twice(b, x):
    made = b.node("Conv", [b.dequantised(x), constant(b, levels(8, 8, 1, 1))], "made")
    for scale in (0.02, 0.03):
        out = b.value((1, 8, 8, 8), np.float32(scale), 0)
        b.quantised(made, out)
        b.output(out)


def quantised_once(b, x):
    made = quantised_weights(b, x)
    b.output(made)
    other = operator(b, "Relu", b.dequantised(made), shape=made.shape, scale=0.03)
    b.output(other)


def uint8_weights_along(axis):
    def build(b, x):
        return operator(b, "ConvTranspose", b.dequantised(x),
                        constant(b, levels(8, 6, 2, 2), np.linspace(0.01, 0.02, (8, 6)[axis]), axis),
                        shape=(1, 6, 16, 16), strides=[2, 2])
    return build


def dilated(dilation):
    size = 8 - 2 * dilation
    return lambda b, x: operator(b, "MaxPool", b.dequantised(x), shape=(1, 8, size, size), kernel_shape=[3, 3],
                                 dilations=[dilation, dilation])


def averaged_dilated(dilation):
    size = 8 - 2 * dilation
    return lambda b, x: operator(b, "AveragePool", b.dequantised(x), shape=(1, 8, size, size), kernel_shape=[3, 3],
                                 dilations=[dilation, dilation])


def dead_channel(scale):
    def build(b, x):
        scales = np.full(8, 0.01, np.float32)
        scales[3] = scale
        bias = b.constant(np.linspace(1, 2, 8).astype(np.float32))
        return operator(b, "Conv", b.dequantised(x), constant(b, levels(8, 8, 1, 1), scales), bias, shape=(1, 8, 8, 8))
    return build


def whole_window(b, x):
    return operator(b, "GlobalAveragePool", b.dequantised(x), shape=(1, 8, 1, 1))


def products(split):
    def build(b, x):
        weights = levels(3, 16, 8)
        if not split:
            return operator(b, "MatMul", b.dequantised(x), constant(b, weights), shape=(3, 1, 8))
        parts = [operator(b, "MatMul", b.dequantised(x), constant(b, each), shape=(1, 8)) for each in weights]
        return operator(b, "Concat", *map(b.dequantised, parts), shape=(1, 24), axis=1)
    return build


def activations(scales):
    def build(b, x):
        y = quantised_weights(b, x)
        size = (8,) if scales > 1 else ()
        names = [b.constant(np.full(size, 0.02, np.float32)), b.constant(np.zeros(size, np.int8))]
        made = b.node("QuantizeLinear", [b.dequantised(y), *names], "per_channel", axis=1)
        read = b.node("DequantizeLinear", [made, *names], "per_channel_float", axis=1)
        return operator(b, "Conv", read, constant(b, levels(4, 8, 1, 1)), shape=(1, 4, 8, 8))
    return build


def slopes(shape):
    return lambda b, x: operator(b, "PRelu", b.dequantised(x), constant(b, levels(*shape)), shape=x.shape)


def resized(**attrs):
    def build(b, x):
        scales = b.constant(np.array([1, 1, 2, 2], np.float32))
        return operator(b, "Resize", b.dequantised(x), "", scales, shape=(1, 8, 16, 16), **attrs)
    return build


def ended(op, **attrs):
    return lambda b, x: b.outputs.append(b.float_output(
        b.node(op, [b.dequantised(quantised_weights(b, x))], "end", **attrs), x.shape))


def in_the_middle(op, **attrs):
    def build(b, x):
        y = operator(b, op, b.dequantised(quantised_weights(b, x)), shape=x.shape, scale=1 / 128, **attrs)
        return quantised_weights(b, y)
    return build


def normalised(op):
    def build(b, x):
        y = b.dequantised(quantised_weights(b, x))
        names = [b.constant(np.full(8, value, np.float32)) for value in (1.5, 0, 0.1, 2)]
        return operator(b, op, y, *names, shape=x.shape)
    return build


def normalised_and_rectified(b, x):
    y = b.dequantised(quantised_weights(b, x))
    names = [b.constant(np.full(8, value, np.float32)) for value in (1.5, 0, 0.1, 2)]
    y = b.node("BatchNormalization", [y, *names], "normalised")
    slope = b.constant(np.linspace(0, 0.3, 8).astype(np.float32).reshape(8, 1, 1))
    return quantised_weights(b, operator(b, "PRelu", y, slope, shape=x.shape))


def by_constant(op, array, *, behind=""):
    """Return what builds an operator of levels and a constant in float, perhaps with a function behind it."""
    def build(b, x):
        y = b.dequantised(operator(b, "Relu", b.dequantised(quantised_weights(b, x)), shape=x.shape))
        y = b.node(op, [y, b.constant(array)], "by_constant")
        y = b.node(behind, [y], "behind") if behind else y
        return quantised_weights(b, operator(b, "Identity", y, shape=x.shape))
    return build


def of_two(op):
    def build(b, x):
        one, other = (b.dequantised(quantised_weights(b, x)) for _ in range(2))
        other = b.dequantised(operator(b, "Sigmoid", other, shape=x.shape, scale=1 / 128))
        return quantised_weights(b, operator(b, op, one, other, shape=x.shape))
    return build


def times_reciprocal(b, x):
    one, other = (b.dequantised(quantised_weights(b, x)) for _ in range(2))
    other = b.dequantised(operator(b, "Sigmoid", other, shape=x.shape, scale=1 / 128))
    other = b.dequantised(operator(b, "Reciprocal", other, shape=x.shape))
    return quantised_weights(b, operator(b, "Mul", one, other, shape=x.shape))


def pooled(op):
    return lambda b, x: operator(b, op, b.dequantised(quantised_weights(b, x)), shape=(1, 8, 4, 4),
                                 kernel_shape=[2, 2], strides=[2, 2])


def expanded(*shape):
    return lambda b, x: operator(b, "Expand", b.dequantised(operator(
        b, "ReduceMax", b.dequantised(quantised_weights(b, x)), b.constant(np.int64([2])), shape=(1, 8, 1, 8))),
        b.constant(np.int64(shape)), shape=shape)


def softmax_of(channels):
    def build(b, x):
        wide = operator(b, "Conv", b.dequantised(x), constant(b, levels(channels, 8, 1, 1)), shape=(1, channels, 8, 8))
        y = operator(b, "Softmax", b.dequantised(wide), shape=wide.shape, scale=1 / 128, axis=1)
        return operator(b, "Conv", b.dequantised(y), constant(b, levels(8, channels, 1, 1)), shape=(1, 8, 8, 8))
    return build


def weights_of_no_levels(b, x):
    return conv(b, x, b.constant(np.random.default_rng(0).normal(size=(8, 8, 1, 1)).astype(np.float32)), 8)


def masked(op):
    """Return what builds a choice by a mask that is an input, or a product by one of floats."""
    def build(b, x):
        y = b.dequantised(quantised_weights(b, x))
        if op == "Mul":
            return operator(b, "Mul", y, b.dequantised(b.input((1, 1, 8, 8))), shape=x.shape)
        b.inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, (1, 1, 8, 8)))
        return operator(b, "Where", "mask", y, b.constant(np.float32(0)), shape=x.shape)
    return build


def quantised_at_run_time():
    """Return a product as quantize_dynamic writes it, with a function of its own."""
    nodes = [("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), ("MatMulInteger", ["q", "w", "z"], ["m"]),
             ("Cast", ["m"], ["f"]), ("Mul", ["s", "t"], ["u"]), ("Mul", ["f", "u"], ["g"]), ("Relu", ["g"], ["y"])]
    made = [helper.make_node(op, given, out, out[0], **({"to": TensorProto.FLOAT} if op == "Cast" else {}))
            for op, given, out in nodes]
    constants = {"w": levels(16, 8).astype(np.int8), "t": np.float32(0.01)}
    graph = helper.make_graph(
        made, "dynamic", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8))],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


RAMP = np.linspace(1, 3, 8).astype(np.float32).reshape(8, 1, 1)


@dataclass(frozen=True, eq=False)
class Row:
    """A reason: a model that has it, words of the advice, and the model changed as advised, or the options."""

    cause: str
    before: onnx.ModelProto
    advice: str
    after: onnx.ModelProto | None
    machines: tuple[str, str] = ("base", "base")
    calibrated: bool = False
    samples: tuple[int, ...] = (4, 8, 8, 8)


ROWS = {
    "a layer kept in float": Row("weights are float|not quantised|is float", qdq(kept_in_float), "--calibrate FILE",
                                 None, calibrated=True),
    "a normalisation whose result is float": Row("not quantised immediately", qdq(normalised_and_rectified),
                                                 "--calibrate FILE", None, calibrated=True),
    "slopes whose input is float": Row("input '.*' is float", qdq(normalised_and_rectified), "--calibrate FILE", None,
                                       calibrated=True),
    "weights that are no levels": Row("weights are float", qdq(weights_of_no_levels), "--calibrate FILE", None,
                                      calibrated=True),
    "longer rows than the machine takes": Row(
        "takes rows of up to", qdq(softmax_of(100)), "more parameter_channels", qdq(softmax_of(100)),
        machines=("base,row_unit=true,parameter_channels=64", "base,row_unit=true,parameter_channels=256")),
    "longer rows than any machine takes": Row(
        "takes rows of at most", qdq(softmax_of(4104)), "fewer channels", qdq(softmax_of(2048)),
        machines=("base,row_unit=true",) * 2),
    "slopes before a function": Row("not quantised immediately", qdq(by_constant("PRelu", RAMP / 9, behind="Tanh")),
                                    "--calibrate FILE", None, calibrated=True),
    "a function behind floats": Row("no such operator$", qdq(by_constant("PRelu", RAMP / 9, behind="Tanh")),
                                    "a table of 256 values", None, calibrated=True),
    "ranges of the run": Row("scale '.*' is computed while", quantised_at_run_time(), "--calibrate FILE", None,
                             calibrated=True, samples=(4, 16)),
    "an exponent for each channel": Row("no such operator$", qdq(by_constant("Pow", RAMP)), "use one exponent",
                                        qdq(by_constant("Pow", np.float32(2)))),
    "a bound for each channel": Row("no such operator$", qdq(by_constant("Max", RAMP)), "by one number",
                                    qdq(by_constant("Max", np.float32(0.5)))),
    "a bound for each channel, or a tensor": Row("no such operator$", qdq(by_constant("Min", RAMP)),
                                                 "a quantised tensor of the same shape", qdq(of_two("Min"))),
    "a quotient of tensors": Row("no such operator$", qdq(of_two("Div")), "Reciprocal", qdq(times_reciprocal)),
    "a choice by a mask": Row("no such operator$", qdq(masked("Where")), "a mask of 0 and 1", qdq(masked("Mul"))),
    "a pooling of norms": Row("no such operator$", qdq(pooled("LpPool")), "MaxPool", qdq(pooled("MaxPool"))),
    "an image repeated": Row("no such operator$", qdq(expanded(2, 8, 8, 8)), "not the image",
                             qdq(expanded(1, 8, 8, 8))),
    "a result quantised twice": Row("whole sums of a product", qdq(quantised_twice), "also quantise",
                                    qdq(quantised_once)),
    "scales along the input channels": Row("scales of its weights", qdq(uint8_weights_along(0)),
                                           "axis of its output channels", qdq(uint8_weights_along(1))),
    "weights of three dimensions": Row("weights have the shape", qdq(products(False), (1, 16)), "Concat",
                                       qdq(products(True), (1, 16))),
    "a resize with antialias": Row("antialias", qdq(resized(mode="linear", antialias=1)), "mode nearest",
                                   qdq(resized(mode="nearest", nearest_mode="floor",
                                               coordinate_transformation_mode="asymmetric"))),
    "a Softmax at the end": Row("no such operator$", qdq(ended("Softmax", axis=1)), "end the model before it",
                                qdq(quantised_weights)),
    "a LogSoftmax in the middle": Row(MIDDLE, qdq(in_the_middle("LogSoftmax", axis=1)), "Sigmoid",
                                      qdq(in_the_middle("Sigmoid"))),
    "a Softmax without a row unit": Row("no row unit", qdq(in_the_middle("Softmax", axis=1)), "row_unit=true",
                                        qdq(in_the_middle("Softmax", axis=1)),
                                        machines=("base", "base,row_unit=true")),
    "an ArgMin": Row("no such operator$", qdq(lambda b, x: b.outputs.append(helper.make_tensor_value_info(
        b.node("ArgMin", [b.dequantised(quantised_weights(b, x))], "end", axis=1), TensorProto.INT64, (1, 1, 8, 8)))),
        "outside of the model", qdq(quantised_weights)),
    "an ArgMax": Row("no row unit", qdq(lambda b, x: b.outputs.append(helper.make_tensor_value_info(
        b.node("ArgMax", [b.dequantised(quantised_weights(b, x))], "end", axis=1), TensorProto.INT64, (1, 1, 8, 8)))),
        "row_unit=true", qdq(quantised_weights)),
    "a normalisation by its own values": Row("no such operator", qdq(in_the_middle("LRN", size=3)),
                                             "BatchNormalization", qdq(normalised("BatchNormalization"))),
    "a unit that the machine leaves out": Row("leaves out", qdq(in_the_middle("Sigmoid")), "base has every unit",
                                              qdq(in_the_middle("Sigmoid")),
                                              machines=("base,value_tables=false", "base")),
}


TAKEN = {
    "weights kept in float": qdq(float_weights),
    "a dilated pooling": qdq(dilated(2)),
    "a dilated average": qdq(averaged_dilated(2)),
    "an average of a large image": qdq(whole_window, (1, 8, 80, 80)),
    "a dead channel": qdq(dead_channel(1e-12)),
    "an activation with several scales": qdq(activations(8)),
    "a slope for each element": qdq(slopes((8, 8, 8))),
}
"""What looks like a reason, and is the datapath's without a change."""


@pytest.mark.parametrize("name", TAKEN)
def test_no_advice_where_the_datapath_computes_all(name, tmp_path):
    found = checked(TAKEN[name], tmp_path)
    assert found.compiles
    assert found.layers
    assert "core" not in {layer.runs_on for layer in found.layers}


@cache
def checked_before(row: Row) -> Check:
    """Return what is said of a row's model before it is changed."""
    with tempfile.TemporaryDirectory() as folder:
        return checked(row.before, Path(folder), row.machines[0])


@pytest.mark.parametrize("name", ROWS)
def test_what_is_advised_takes_the_layer_off_the_core(name, tmp_path):
    row = ROWS[name]
    before = checked_before(row)
    told = [(each.reason, each.way_out) for each in (*before.core_share.causes, *before.refusals)]
    advice = [text for reason, text in told if re.search(row.cause, reason)]
    assert any(row.advice in text for text in advice), told
    how = {}
    if row.calibrated:
        np.save(tmp_path / "samples.npy", np.random.default_rng(0).normal(size=row.samples).astype(np.float32))
        how["calibrate"] = tmp_path / "samples.npy"
    after = checked(row.before if row.after is None else row.after, tmp_path, row.machines[1], **how)
    assert after.compiles
    assert [layer.name for layer in after.layers if layer.runs_on == "core"] == []
    assert not before.compiles or after.cycles < before.cycles


def test_what_only_follows_says_which_layer_to_change(tmp_path):
    found = checked(qdq(in_the_middle("Softmax", axis=1)), tmp_path).core_share
    follows = [cause for cause in found.causes if cause.operator in ("QuantizeLinear", "DequantizeLinear")]
    assert all("change the layer that" in cause.way_out for cause in follows)


def reasons():
    """Yield the literal reasons in the compiler's sources: what a refusal says, and what a node or layer is given."""
    for path in sorted((*SOURCES.glob("passes/**/*.py"), *SOURCES.glob("graph/*.py"), *SOURCES.glob("plan/*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [each.value for each in node.keywords if each.arg == "reason"]
            if name in ("refusal", "_refusal"):
                given += node.args[0 if name == "refusal" else 1:][:1]
            if name == "UnsupportedNodeError":
                given += node.args[2:3]
            yield from ((path.name, each) for each in given if " " in words(each, ""))


def words(node, formatted):
    """Return the words of a literal, with ``formatted`` in place of what it formats, in quotes if it does so."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else
                       f"'{formatted}'" if each.conversion == ord("r") else formatted for each in node.values)
    return ""


def test_every_reason_has_advice_of_its_own():
    general = {"the datapath has no such operator", ", and on the core: "}
    found = [(path, each) for path, each in reasons() if words(each, "") not in general]
    assert len(found) > 50
    table = way_out("Sigmoid")
    formatted = "8", "int4", "mode"
    lacking = sorted({(path, words(each, "…")) for path, each in found
                      if all(way_out("Sigmoid", words(each, text)) == table for text in formatted)})
    assert lacking == [], "compiler.kernels.ways_out has no advice for these reasons"


def test_every_advice_on_a_cause_is_given_for_some_reason():
    """No pattern is said nowhere, and none stands behind another that takes all of its reasons."""
    found = {words(node, text) for path in SOURCES.rglob("*.py") if path.name != "ways_out.py"
             for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.Constant | ast.JoinedStr)
             for text in (("8", "int4", "mode", "scale", "512") if isinstance(node, ast.JoinedStr) else ("",))}
    patterns = [re.compile(each) for each in causes()]
    first = {next((place for place, each in enumerate(patterns) if each.search(text)), None) for text in found}
    assert [each.pattern for place, each in enumerate(patterns) if place not in first] == []


def test_every_option_that_is_advised_is_tried():
    """All but whose arithmetic a file needs, which tests of .tflite files and of PULP's try."""
    options = {text for text in texts() if "--" in text or ("machine" in text and "no machine" not in text)}
    tried = {each.way_out for row in ROWS.values() if row.after is None or row.machines[0] != row.machines[1]
             for each in checked_before(row).core_share.causes if re.search(row.cause, each.reason)}
    assert {each for each in options - tried if "integer_requantise" not in each} == set()
