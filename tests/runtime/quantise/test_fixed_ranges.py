"""Models that quantise at run time, with ranges of samples instead: what they compute in float, and what they keep."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.onnx.reader import DYNAMIC_NOTE, read_model
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.fixed_ranges import FIXED_NOTE, with_fixed_ranges
from tilewright.tools.progress import Silence

RNG = np.random.default_rng(8)
IMAGE, LINE, ROWS = (1, 6, 7, 7), (1, 6, 20), (1, 4, 12)


class Writer:
    """Nodes and constants of a model of x and y."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, op, inputs, count=1, output="", **attributes):
        names = [output or f"t{len(self.nodes)}{index}" for index in range(count)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if count == 1 else names

    def levels(self, x):
        return self.add("DynamicQuantizeLinear", [x], 3)

    def product(self, levels, weights, factor, *, split=False, zero=None, op="ConvInteger", **attributes):
        """Write a product of integers and its factors: in one Mul, as ONNX Runtime does, or one behind the other."""
        inputs = [levels[0], self.constant(weights), levels[2], *([self.constant(zero)] if zero is not None else [])]
        real = self.add("Cast", [self.add(op, inputs, **attributes)], to=TensorProto.FLOAT)
        factor = self.constant(np.asarray(factor, np.float32))
        if split:
            return self.add("Mul", [factor, self.add("Mul", [real, levels[1]])])
        return self.add("Mul", [real, self.add("Mul", [levels[1], factor])])

    def model(self, result, shape, path):
        self.add("Identity", [result], output="y")
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def weights(*shape, dtype=np.int8):
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)


def dense(to):
    """Relu of a product of rows and a bias, and one more."""
    first = to.product(to.levels("x"), weights(12, 16), 0.01, op="MatMulInteger")
    relu = to.add("Relu", [to.add("Add", [first, to.constant(RNG.normal(size=16).astype(np.float32))])])
    return to.product(to.levels(relu), weights(16, 5), 0.02, op="MatMulInteger"), ROWS


def shared(to):
    """Two convolutions of the same levels, with their sum; one with asymmetric uint8 weights, factors one by one."""
    levels = to.levels("x")
    one = to.product(levels, weights(6, 6, 3, 3), 0.01, pads=[1, 1, 1, 1])
    two = to.product(levels, weights(6, 6, 1, 1, dtype=np.uint8), 0.02, split=True, zero=np.uint8(131))
    return to.add("Add", [one, two]), IMAGE


def by_channel(to):
    """A depthwise convolution in one dimension with a scale per channel, behind which x is dequantised."""
    levels = to.levels("x")
    scale = RNG.uniform(0.01, 0.02, (6, 1))
    one = to.product(levels, weights(6, 1, 3, dtype=np.uint8), scale, group=6, pads=[1, 1],
                     zero=np.uint8(120))
    return to.add("Add", [one, to.add("DequantizeLinear", levels)]), LINE


def computed(to):
    """A product of two computed matrices, as of an attention, that is scaled."""
    one, two = to.levels("x"), to.levels(to.add("Transpose", ["x"], perm=[0, 2, 1]))
    real = to.add("Cast", [to.add("MatMulInteger", [one[0], two[0], one[2], two[2]])], to=TensorProto.FLOAT)
    factor = to.add("Mul", [to.add("Mul", [one[1], two[1]]), to.constant(np.float32(0.25))])
    return to.add("Mul", [real, factor]), ROWS


def rounded_bias(to, divisor=0.001):
    """A convolution whose bias is divided by the scales and rounded at run time, as Neural Compressor writes it."""
    levels, factor = to.levels("x"), to.constant(np.float32(0.001))
    sums = to.add("ConvInteger", [levels[0], to.constant(weights(6, 6, 1, 1)), levels[2]])
    other = factor if divisor == 0.001 else to.constant(np.float32(divisor))
    steps = to.add("Div", [to.constant(RNG.normal(size=6).astype(np.float32)), to.add("Mul", [levels[1], other])])
    bias = to.add("Reshape", [to.add("Cast", [to.add("Floor", [steps])], to=TensorProto.INT32),
                              to.constant(np.int64([1, 6, 1, 1]))])
    real = to.add("Cast", [to.add("Add", [sums, bias])], to=TensorProto.FLOAT)
    return to.add("Mul", [real, to.add("Mul", [levels[1], factor])]), IMAGE


def test_a_bias_that_is_rounded_by_other_scales_than_its_sums_is_of_no_such_form(tmp_path):
    to = Writer()
    to.model(*rounded_bias(to, divisor=0.002), tmp_path / "net.onnx")
    assert with_fixed_ranges(read_model(tmp_path / "net.onnx")) is None


@pytest.mark.parametrize("kind", [dense, shared, by_channel, computed, rounded_bias], ids=lambda kind: kind.__name__)
def test_the_floats_are_those_that_were_quantised_at_run_time(kind, tmp_path):
    to = Writer()
    result, shape = kind(to)
    to.model(result, shape, tmp_path / "net.onnx")
    model = read_model(tmp_path / "net.onnx")
    fixed = with_fixed_ranges(model)
    assert not {"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "Cast"} & {
        node.op_type for node in fixed.graph.node}
    x = RNG.normal(size=shape).astype(np.float32)
    before, after = (session(each.SerializeToString()).run(None, {"x": x})[0] for each in (model, fixed))
    assert np.abs(before - after).max() < 0.02 * np.abs(before).max()
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in fixed.graph.initializer}
    kept = [given[node.input[0]] for node in fixed.graph.node if node.op_type == "DequantizeLinear"]
    written = [value for value in to.constants.values() if value.dtype in (np.int8, np.uint8) and value.ndim > 1]
    assert len(kept) == len(written)
    assert all(any(np.array_equal(each, other) for other in kept) for each in written)


def test_with_samples_a_model_is_quantised_statically_and_says_so(tmp_path):
    to, path = Writer(), tmp_path / "net.onnx"
    result, shape = shared(to)
    to.model(to.add("Relu", [result]), shape, path)
    np.savez(tmp_path / "samples.npz", x=RNG.normal(size=(4, *shape[1:])).astype(np.float32))
    left = find_model(str(path), Silence())
    assert DYNAMIC_NOTE in left.notes
    assert left.in_float
    source = find_model(str(path), Silence(), calibrate=tmp_path / "samples.npz")
    assert (DYNAMIC_NOTE in source.notes, FIXED_NOTE in source.notes) == (False, True)
    run = run_model(source, PRESETS["base"], "fast", None)
    assert (run.comparison.matches, run.report.core_cycles) == (True, 0)


def test_another_form_is_refused_by_what_it_needs(tmp_path):
    to, path = Writer(), tmp_path / "net.onnx"
    levels = to.levels("x")
    sums = to.add("ConvInteger", [levels[0], to.constant(weights(2, 6, 1, 1)), levels[2]])
    to.model(to.add("Cast", [sums], to=TensorProto.FLOAT), IMAGE, path)
    np.savez(tmp_path / "samples.npz", x=np.zeros(IMAGE, np.float32))
    with pytest.raises(InputError, match=re.escape("as quantize_dynamic of ONNX Runtime or Neural")):
        find_model(str(path), Silence(), calibrate=tmp_path / "samples.npz")
