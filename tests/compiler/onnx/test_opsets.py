"""Models of opsets 7 to 23 run: attributes that became inputs, operators that changed, quantisation since opset 10."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.tools.progress import Silence

OPSETS = range(7, 24)
IMAGE = (1, 3, 8, 8)
FLOATS_ON_CORE = "ignore::tilewright.runtime.session.FloatOnCoreWarning"


class Writer:
    """Nodes and constants of a model of one opset."""

    def __init__(self, opset):
        self.opset, self.nodes, self.constants = opset, [], {}
        self.rng = np.random.default_rng(opset)

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def floats(self, *shape):
        return self.constant((self.rng.normal(size=shape) * 0.3).astype(np.float32))

    def add(self, op, inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def stated(self, op, x, since, outputs=1, **values):
        """Add a node whose ``values`` are attributes before opset ``since``, and inputs, in order, from it on."""
        if self.opset < since:
            return self.add(op, [x], outputs, **values)
        inputs = [self.constant(np.float32(each) if isinstance(each, float) else np.array(each, np.int64))
                  for each in values.values()]
        return self.add(op, [x, *inputs], outputs)

    def model(self, output, shape):
        self.nodes.append(helper.make_node("Identity", [output], ["y"]))
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE)]
        if self.opset < 9:
            inputs += [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                       for name, value in self.constants.items()]
        graph = helper.make_graph(
            self.nodes, "opset", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        version = 3 if self.opset < 9 else 8 if self.opset < 19 else 10
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)


def network(opset):
    """Return Conv, BatchNormalization, Relu, MaxPool, Dropout, Flatten, Gemm, Softmax."""
    to = Writer(opset)
    x = to.add("Conv", ["x", to.floats(4, 3, 3, 3), to.floats(4)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = to.add("BatchNormalization", [x, to.floats(4), to.floats(4), to.floats(4), to.constant(np.ones(4, np.float32))])
    x = to.add("MaxPool", [to.add("Relu", [x])], kernel_shape=[2, 2], strides=[2, 2])
    x = to.add("Flatten", [to.stated("Dropout", x, 12, ratio=0.3)])
    x = to.add("Gemm", [x, to.floats(64, 5), to.floats(5)])
    return to.model(to.add("Softmax", [x], axis=1), (1, 5))


def split(to, x):
    """Cut the channels in two: by sizes that are an attribute, or an input since opset 13."""
    if to.opset < 13:
        return to.add("Split", [x], 2, axis=1, split=[1, 2])
    return to.add("Split", [x, to.constant(np.array([1, 2]))], 2, axis=1)


def movements(opset):
    """Return Clip, Pad, Slice, Unsqueeze, Squeeze, Split, Resize or Upsample, ReduceMean, ReduceSum."""
    to = Writer(opset)
    x = to.stated("Clip", "x", 11, min=-0.5, max=0.5)
    x = to.stated("Pad", x, 11, pads=[0, 0, 1, 1, 0, 0, 1, 1])
    x = to.stated("Slice", x, 10, starts=[1], ends=[9], axes=[2])
    x = to.stated("Unsqueeze", x, 13, axes=[1])
    x = to.stated("Squeeze", to.add("Relu", [x]), 13, axes=[1])
    x = to.add("Concat", split(to, x)[::-1], axis=1)
    factors = to.constant(np.array([1, 1, 2, 2], np.float32)) if opset >= 9 else ""
    if opset < 10:
        x = to.add("Upsample", [x, factors] if factors else [x], mode="nearest",
                   **({} if factors else {"scales": [1.0, 1.0, 2.0, 2.0]}))
    else:
        region = to.constant(np.zeros(0, np.float32)) if opset < 13 else ""
        modes = {} if opset == 10 else {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        x = to.add("Resize", [x, factors] if opset == 10 else [x, region, factors], mode="nearest", **modes)
    x = to.stated("ReduceMean", x, 18, axes=[2])
    return to.model(to.stated("ReduceSum", x, 13, axes=[3]), (1, 3, 1, 1))


def quantised(opset):
    """Return Conv, Relu, MaxPool and GlobalAveragePool between QuantizeLinear and DequantizeLinear."""
    to = Writer(opset)

    def pair(x, scale, zero):
        names = [to.constant(np.float32(scale)), to.constant(np.uint8(zero))]
        return to.add("DequantizeLinear", [to.add("QuantizeLinear", [x, *names]), *names])

    per_channel = opset >= 13
    weights = [to.constant(to.rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)),
               to.constant(np.array([0.01, 0.02, 0.01, 0.03] if per_channel else 0.01, np.float32)),
               to.constant(np.zeros(4 if per_channel else (), np.int8))]
    w = to.add("DequantizeLinear", weights, **({"axis": 0} if per_channel else {}))
    x = to.add("Conv", [pair("x", 0.03, 120), w], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = pair(to.add("Relu", [x]), 0.05, 0)
    x = pair(to.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), 0.05, 0)
    return to.model(pair(to.add("GlobalAveragePool", [x]), 0.05, 0), (1, 4, 1, 1))


def run_of(model, path):
    onnx.save(model, path)
    return run_model(ModelSource.of(path), PRESETS["base"], "fast", None)


@pytest.mark.filterwarnings(FLOATS_ON_CORE)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("build", [network, movements])
def test_float_models_of_every_opset_run(tmp_path, build, opset):
    assert run_of(build(opset), tmp_path / "model.onnx").comparison.matches is not False


@pytest.mark.parametrize("opset", range(10, 24))
def test_quantised_models_of_every_opset_run_on_the_datapath(tmp_path, opset):
    run = run_of(quantised(opset), tmp_path / "model.onnx")
    assert run.comparison.matches is True
    assert run.report.core_cycles == 0


@pytest.mark.parametrize("opset", [10, 12, 13])
def test_a_concatenation_of_scales_is_no_work_of_the_core_in_any_opset(tmp_path, opset):
    model = ModelBuilder("qoperator", seed=1, dtype=np.uint8, zero_point=None)
    x = model.input((1, 3, 8, 8))
    joined = model.concat([model.conv(x, 4), model.conv(x, 6)], np.float32(0.05))
    real = model.dequantised(joined)
    bounds = [model.constant(np.array([each])) for each in (2, 9, 1)]
    part = model.value((1, 7, 6, 6), joined.scale, joined.zero_point)
    model.quantised(model.node("Slice", [real, *bounds], "sliced"), part)
    model.output(model.conv(part, 4))
    proto = model.proto()
    proto.opset_import[0].version = opset
    run = run_of(proto, tmp_path / "model.onnx")
    assert (run.comparison.matches, run.report.core_cycles) == (True, 0)


def test_constants_of_the_oldest_format_need_not_be_inputs(tmp_path):
    proto = quantised(10)
    proto.ir_version = 3
    onnx.save(proto, tmp_path / "model.onnx")
    run = run_model(find_model(str(tmp_path / "model.onnx"), Silence()), PRESETS["base"], "fast", None)
    assert (run.comparison.matches, run.report.core_cycles) == (True, 0)
    assert "read as of IR version 4" in run.report.notes[0]


def test_dynamic_quantisation_is_told(tmp_path):
    to = Writer(13)
    levels, scale, zero = to.add("DynamicQuantizeLinear", ["x"], 3)
    weights = to.constant(to.rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8))
    sums = to.add("Cast", [to.add("ConvInteger", [levels, weights, zero])], to=TensorProto.FLOAT)
    path = tmp_path / "model.onnx"
    run = run_of(to.model(to.add("Mul", [sums, scale]), (1, 4, 6, 6)), path)
    assert run.comparison.matches is not False
    assert [note for note in notes_of(read_model(path)) if "dynamically" in note]
