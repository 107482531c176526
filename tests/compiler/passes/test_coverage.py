"""The manual's table of operators is true: an example of every line is compiled, and runs where it says, as exactly."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler import operators_page
from tilewright.compiler.explain import explain_layers
from tilewright.compiler.graph.onnx_names import CHOICES
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.network.layers import CoreLayer, Layer, Network
from tilewright.compiler.onnx import reader as frontend
from tilewright.compiler.passes.coverage import DATAPATH, RUNS_ON
from tilewright.compiler.plan.planner import plan_layer
from tilewright.isa.machine import PRESETS

SHAPE = (1, 4, 8, 8)
# Operators with attributes, or that need a newer opset than 17.
ATTRIBUTES = {"LeakyRelu": {"alpha": 0.1}, "ThresholdedRelu": {"alpha": 0.3}}
OPSETS = {"Mish": 18, "Gelu": 20, "Swish": 24}
CONSTANTS = {"Pow": np.float32(2), "Div": np.float32(1.7), "PRelu": np.float32(0.2)}


def between(model, op, *extra, shape=SHAPE, x=None, scale=None, **attrs):
    """Add ``op`` between a DequantizeLinear of ``x`` and a QuantizeLinear, and return what that writes."""
    x = x or model.input(SHAPE)
    y = model.value(shape, np.float32(scale or x.scale), x.zero_point)
    domain = "com.microsoft" if op == "QuickGelu" else ""
    model.quantised(model.node(op, [model.dequantised(x), *extra], f"float{len(model.nodes)}", domain, **attrs), y)
    return y


def qlinear(model, op, x, **attrs):
    """Add com.microsoft's ``op`` of one tensor."""
    y = model.value(x.shape, np.float32(0.01))
    model.node(op, [x.name, *model.parameters(x), *model.parameters(y)], y.name, "com.microsoft", **attrs)
    return y


def affine(model, op):
    if op == "BatchNormalization":
        vectors = [model.constant(model.rng.uniform(0.5, 1.5, 4).astype(np.float32)) for _ in range(4)]
        return between(model, op, *vectors, scale=0.05)
    return between(model, op, model.constant(model.rng.uniform(0.5, 1.5, (4, 1, 1)).astype(np.float32)), scale=0.05)


def by_channel(model, op):
    x = model.input(SHAPE)
    factor, y = model.average(x), model.value(SHAPE, np.float32(0.01))
    if op == "QLinearMul":
        names = [name for value in (x, factor) for name in (value.name, *model.parameters(value))]
        model.node(op, [*names, *model.parameters(y)], y.name, "com.microsoft")
        return y
    return between(model, op, model.dequantised(factor), x=x, scale=y.scale)


def transposes(model):
    real = model.dequantised(model.conv(model.input(SHAPE), 4))
    there = model.node("Transpose", [real], "there", perm=(0, 2, 3, 1))
    back = model.node("Transpose", [model.node("Sigmoid", [there], "sigmoid")], "back", perm=(0, 3, 1, 2))
    y = model.value((1, 4, 6, 6), np.float32(0.01))
    model.quantised(back, y)
    return model.conv(y, 3)


def split(model):
    x = model.conv(model.input(SHAPE), 4, kernel=1)
    parts = [Value(f"part{i}", (1, 2, 8, 8), x.scale, x.zero_point) for i in range(2)]
    model.split(model.dequantised(x), ["real0", "real1"], (2, 2))
    for index, part in enumerate(parts):
        model.quantised(f"real{index}", part)
    return model.add(*(model.conv(part, 3) for part in parts))


def moved(model, op):
    x = model.conv(model.input(SHAPE), 4, kernel=1)

    def constant(*values, dtype=np.int64):
        return model.constant(np.array(values, dtype))

    if op in ("Concat", "QLinearConcat"):
        return model.conv(model.concat([x, model.conv(x, 4, kernel=1)], x.scale), 3)
    if op == "Slice":
        bounds = tuple(map(constant, (0, 8, 2, 2)))
        return model.conv(model.moved(op, x, (1, 4, 4, 8), extra=bounds), 3)
    if op == "Pad":
        return model.conv(model.moved(op, x, (1, 4, 10, 8), extra=(constant(0, 0, 1, 0, 0, 0, 1, 0),)), 3)
    if op == "DepthToSpace":
        return model.conv(model.moved(op, x, (1, 1, 16, 16), blocksize=2), 3)
    if op == "SpaceToDepth":
        return model.conv(model.moved(op, x, (1, 16, 4, 4), blocksize=2), 3)
    if op == "Gather":
        return model.conv(model.moved(op, x, (1, 2, 8, 8), extra=(constant(1, 2),), axis=1), 3)
    if op == "Tile":
        return model.conv(model.moved(op, x, (1, 4, 16, 8), extra=(constant(1, 1, 2, 1),)), 3)
    if op == "Expand":
        row = model.conv(x, 4, kernel=(8, 1))
        return model.conv(model.moved(op, row, (1, 4, 3, 8), extra=(constant(1, 1, 3, 1),)), 3)
    scales = constant(1, 1, 2, 2, dtype=np.float32)
    return model.conv(model.moved(op, x, (1, 4, 16, 16), extra=("", scales), mode="nearest"), 3)


def viewed(model, op):
    x = model.conv(model.input(SHAPE), 4, kernel=8)
    extra = {"Reshape": (model.constant(np.array([1, 4])),), "Squeeze": (model.constant(np.array([2, 3])),)}
    if op == "Unsqueeze":
        y = model.gemm(model.moved("Flatten", x, (1, 4)), 4)
        return model.moved(op, y, (1, 4, 1, 1), extra=(model.constant(np.array([2, 3])),))
    return model.gemm(model.moved(op, x, (1, 4), extra=extra.get(op, ())), 5)


def prepared(model, op):
    """Add ``op`` between an input of floats and its quantisation, and a convolution."""
    constants = [] if op == "Relu" else [model.constant(np.float32(1.25))]
    model.inputs.append(helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE))
    x = model.value(SHAPE, np.float32(0.02), 0)
    model.quantised(model.node(op, ["image", *constants], "float"), x)
    return model.conv(x, 4)


def chosen(model, op):
    """Add a choice between x and x / 10 by a condition, that ``op`` makes or uses."""
    x = model.input(SHAPE)
    real = model.dequantised(x)

    def compared(by, bound):
        return model.node(by, [real, model.constant(np.float32(bound))], f"{by} {bound}")

    condition = compared(op if op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual") else "Greater", 0.2)
    if op in ("And", "Or", "Xor"):
        condition = model.node(op, [condition, compared("Less", 0.7)], "both")
    elif op == "Not":
        condition = model.node(op, [condition], "other")
    small = model.node("Mul", [real, model.constant(np.float32(0.1))], "small")
    result = model.node("Mul", [real, model.node(op, [condition], "mask", to=TensorProto.FLOAT)], "masked") \
        if op == "Cast" else model.node("Where", [condition, real, small], "chosen")
    y = model.value(SHAPE, np.float32(0.03), x.zero_point)
    model.quantised(result, y)
    return y


def example(op, line):
    """Return a model with ``op`` as the line of the table means it, and the node's name."""
    form = "qoperator" if op.startswith("QLinear") or op == "QGemm" else "qdq"
    model = ModelBuilder(form, seed=3)
    name = op.removeprefix("QLinear") if form == "qoperator" else op
    if op in ("Conv", "QLinearConv"):
        y = model.conv(model.input(SHAPE), 4)
    elif op == "ConvTranspose":
        weights = model.value((4, 3, 3, 3), np.float32(0.01), 0)
        model.initializers.append(helper.make_tensor(
            weights.name, TensorProto.INT8, weights.shape, model.rng.integers(-127, 128, 108)))
        y = between(model, op, model.dequantised(weights), shape=(1, 3, 17, 17), scale=0.1, kernel_shape=(3, 3),
                    strides=(2, 2))
    elif op in ("Gemm", "QGemm"):
        y = model.gemm(model.input((1, 12)), 5)
    elif op in ("MatMul", "QLinearMatMul"):
        y = model.matmul(model.input((1, 12)), 5)
    elif line.runs_on == ("act",) and name == "Add":
        y = model.add(model.input(SHAPE), model.input(SHAPE))
    elif line.operators == ("Max", "ReduceMax"):
        y = between(model, op, model.dequantised(model.input(SHAPE)), scale=0.03) if op == "Max" else \
            between(model, op, shape=(1, 4, 1, 1), axes=(2, 3))
    elif line.operators == ("PRelu",):
        y = between(model, op, model.constant(model.rng.uniform(0.1, 0.9, (4, 1, 1)).astype(np.float32)), scale=0.05)
    elif line.operators == ("Sub",):
        y = between(model, op, model.dequantised(model.input(SHAPE)), scale=0.1)
    elif "QLinearMul" in line.operators:
        y = by_channel(model, op)
    elif line.runs_on == ("nothing",) and "Div" in line.operators:
        y = prepared(model, op)
    elif "BatchNormalization" in line.operators:
        y = affine(model, op)
    elif name in ("GlobalAveragePool", "AveragePool"):
        # A third of a level per count: no sum is near a rounding boundary.
        y = model.average(model.input(SHAPE), 2, 0.015, strides=(2, 2)) if name == "AveragePool" else \
            model.average(model.input(SHAPE))
    elif op == "ReduceMean":
        y = between(model, op, shape=(1, 4, 1, 1), axes=(2, 3), scale=0.008)
    elif op == "ReduceSum":
        y = between(model, op, model.constant(np.array([1])), shape=(1, 1, 8, 8), scale=0.05)
    elif op in ("MaxPool", "GlobalMaxPool"):
        y = model.max_pool(model.input(SHAPE), strides=(2, 2)) if op == "MaxPool" else \
            model.moved(op, model.input(SHAPE), (1, 4, 1, 1))
    elif op == "Relu":
        y = model.relu(model.input(SHAPE))
    elif op == "Clip":
        y = model.clip(model.input(SHAPE), -0.5, 1.0)
    elif form == "qoperator" and line.runs_on == ("table",):
        y = qlinear(model, op, model.input(SHAPE), **ATTRIBUTES.get(name, {}))
    elif op in CHOICES:
        y = chosen(model, op)
    elif line.runs_on == ("table",):
        second = (model.constant(CONSTANTS.get(op, np.float32(0.3))),) if "Min" in line.operators else ()
        y = between(model, op, *second, scale=0.03, **ATTRIBUTES.get(op, {}))
    elif op == "Split":
        y = split(model)
    elif line.runs_on == ("placement",):
        y = moved(model, op)
    elif op == "Resize":
        sizes = model.constant(np.array([1, 4, 12, 16]))
        y = between(model, op, "", "", sizes, shape=(1, 4, 12, 16), scale=0.02, mode="linear")
    elif "Flatten" in line.operators:
        y = viewed(model, op)
    elif op == "Transpose":
        y = transposes(model)
    elif op in ("Identity", "Dropout"):
        y = model.conv(model.moved(op, model.input(SHAPE), SHAPE), 3)
    else:
        y = model.conv(model.input(SHAPE), 4)
    model.output(y)
    proto = model.proto()
    if op in OPSETS:
        proto.opset_import[0].version, proto.ir_version = OPSETS[op], 10
    return proto.SerializeToString(), next(node.name for node in proto.graph.node if node.op_type == op)


CASES = [pytest.param(op, line, id=f"{op}-{line.runs_on[0]}") for line in DATAPATH for op in line.operators]


def runs_on(network: Network, layer: Layer) -> str:
    (explained,) = explain_layers((plan_layer(layer, PRESETS["base"]),), PRESETS["base"])
    if layer.table is not None:
        return "table"
    return "act" if layer.kind == "pass" else explained.algorithm


@pytest.mark.parametrize(("op", "line"), CASES)
def test_operators_run_where_the_manual_says_as_exactly(op, line):
    content, name = example(op, line)
    network = assert_layers(content)
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    own = [layer for layer in network.layers if name in layer.onnx_nodes]
    if line.runs_on[0] in ("nothing", "placement"):
        assert all(layer.kind == "pass" or layer.onnx_nodes != (name,) for layer in own)
    else:
        assert own
        assert {runs_on(network, layer) for layer in own} <= set(line.runs_on)
    if line.exactness.startswith("exact"):
        assert all(layer.exact for layer in own)
    else:
        assert not all(layer.exact for layer in own)


def test_every_operator_that_is_taken_is_in_the_manual():
    listed = {op for line in DATAPATH for op in line.operators} | KERNELS.keys()
    # These are taken apart before, and said to be.
    assert frontend._OPERATORS | frontend._CONTRIB.keys() <= listed | {"QLinearSoftmax"}
    assert {op for line in DATAPATH for op in line.operators} <= frontend._OPERATORS | frontend._CONTRIB.keys()
    assert {place for line in DATAPATH for place in line.runs_on} == RUNS_ON.keys()


def test_the_page_is_up_to_date():
    page = Path(__file__).parents[3] / "docs" / "operators.md"
    assert page.read_text() == operators_page.page(), "run: make docs"
