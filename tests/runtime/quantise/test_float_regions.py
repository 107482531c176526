"""What is quantised is found by what there is, and a layer as it should be is no float region."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.support.float_models import FloatBuilder
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.quantise.float_regions import Precision, float_regions, precision_of
from tilewright.tools.progress import Silence


class Quantised(FloatBuilder):
    """Adds pairs of QuantizeLinear and DequantizeLinear, and products of quantised weights."""

    def pair(self, x: str, scale: float = 0.02) -> str:
        parameters = self.constant(np.float32(scale)), self.constant(np.array(0, np.int8))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *parameters), *parameters)

    def image(self) -> str:
        return self.pair(self.input((1, 4, 8, 8)))

    def product(self, x: str) -> str:
        levels = self.rng.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
        weights = self.node("DequantizeLinear", self.constant(levels), self.number(0.01),
                            self.constant(np.array(0, np.int8)))
        return self.node("Conv", x, weights, pads=[1] * 4)

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def normalised(self, x: str) -> str:
        return self.node("BatchNormalization", x, *(self.constant(np.full(4, each, np.float32)) for each in (
            1.5, 0.1, 0.2, 2)))

    def slope(self) -> str:
        return self.constant(self.rng.uniform(0, 0.3, (4, 1, 1)).astype(np.float32))

    def row(self) -> str:
        return self.constant(self.rng.normal(size=(1, 4, 1, 1)).astype(np.float32))


def swish(b: Quantised, x: str) -> str:
    return b.node("Mul", x, b.node("Sigmoid", x))


LAYERS = {
    "product": lambda b, x: b.product(x),
    "product, then a clamp and a move": lambda b, x: b.node("Transpose", b.node("Relu", b.product(x)),
                                                            perm=[0, 2, 3, 1]),
    "sum, then a clamp": lambda b, x: b.node("Relu", b.node("Add", x, b.pair(b.product(x)))),
    "average": lambda b, x: b.node("GlobalAveragePool", x),
    "function of several operators": swish,
    "function and a move": lambda b, x: b.node("Transpose", swish(b, x), perm=[0, 2, 3, 1]),
    "moves and clamps": lambda b, x: b.node("Relu", b.node("Concat", x, b.node("Slice", x, *(
        b.constant(np.array([each])) for each in (0, 2, 1))), axis=1)),
    "softmax": lambda b, x: b.node("Softmax", x, axis=1),
    "normalisation": lambda b, x: b.normalised(x),
    "slopes of channels": lambda b, x: b.node("PRelu", x, b.slope()),
}
"""What stands between a DequantizeLinear and a QuantizeLinear as it should."""

FLOATS = {
    "product of floats": lambda b, x: b.conv(x, 4, 4),
    "product and a function": lambda b, x: swish(b, b.product(x)),
    "two products": lambda b, x: b.product(b.product(x)),
    "clamp before a sum": lambda b, x: b.node("Add", x, b.node("Relu", b.pair(b.product(x)))),
    "function before an average": lambda b, x: b.node("GlobalAveragePool", b.node("LeakyRelu", x)),
    "sum, clamp, average": lambda b, x: b.node("GlobalAveragePool", b.node("Relu", b.node(
        "Add", x, b.pair(b.product(x))))),
    "a sum of a function and its input's twin": lambda b, x: b.node("Add", swish(b, x), b.pair(b.product(x))),
    "factors of channels and a function": lambda b, x: b.node("Sigmoid", b.node("Mul", x, b.row())),
    "normalisation before slopes of channels": lambda b, x: b.node("PRelu", b.normalised(x), b.slope()),
    "slopes of channels before a normalisation": lambda b, x: b.normalised(b.node("PRelu", x, b.slope())),
    "move of pixels of several sources": lambda b, x: b.node("LeakyRelu", b.node("Concat", x, b.pair(
        b.product(x)), axis=1)),
}

ENDS = {
    "product": (lambda b, x: b.product(x), True),
    "function": (lambda b, x: b.node("Sigmoid", x), True),
    "normalisation": (lambda b, x: b.normalised(x), True),
    "move": (lambda b, x: b.node("Flatten", x), False),
    "softmax": (lambda b, x: b.node("Softmax", x, axis=1), False),
}
"""What stands between a DequantizeLinear and the model's output, and whether it can be quantised."""


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_between_quantised_tensors_is_quantised(name):
    builder = Quantised()
    proto = builder.finish(builder.pair(LAYERS[name](builder, builder.image())))
    assert precision_of(proto) is Precision.QUANTISED


@pytest.mark.parametrize("name", FLOATS)
def test_what_is_computed_in_float_between_quantised_tensors_is_found(name):
    builder = Quantised()
    proto = builder.finish(builder.pair(FLOATS[name](builder, builder.image())))
    assert precision_of(proto) is Precision.MIXED
    assert len(float_regions(proto.graph)) == 1


@pytest.mark.parametrize("name", ENDS)
def test_what_makes_a_float_output_is_quantised_where_that_is_possible(name):
    make, expected = ENDS[name]
    builder = Quantised()
    proto = builder.finish(make(builder, builder.image()))
    assert precision_of(proto) is (Precision.MIXED if expected else Precision.QUANTISED)


def test_what_prepares_an_input_is_no_float_region():
    builder = Quantised()
    x = builder.node("Div", builder.node("Sub", builder.input((1, 4, 8, 8)), builder.number(3)), builder.number(7))
    assert precision_of(builder.finish(builder.pair(builder.product(builder.pair(x))))) is Precision.QUANTISED


def test_a_function_of_an_input_that_is_quantised_too_is_a_float_region():
    builder = Quantised()
    x = builder.input((1, 4, 8, 8))
    curve = builder.pair(builder.node("Sub", builder.node("Pow", x, builder.number(2)), x))
    proto = builder.finish(builder.pair(builder.node("Mul", curve, builder.pair(builder.product(builder.pair(x))))))
    assert precision_of(proto) is Precision.MIXED
    assert [proto.graph.node[index].op_type for index in float_regions(proto.graph)[0].nodes] == ["Pow", "Sub"]


def test_shapes_that_are_computed_join_nothing():
    builder = Quantised()
    x = builder.image()
    shape = builder.node("Concat", builder.node("Slice", builder.node("Shape", x), *(
        builder.constant(np.array([each])) for each in (0, 1, 0))), builder.constant(np.array([-1])), axis=0)
    proto = builder.finish(builder.pair(builder.product(builder.pair(builder.node("LeakyRelu", x)))),
                           builder.pair(builder.node("Reshape", x, shape)))
    assert precision_of(proto) is Precision.QUANTISED


def counts(dtype: int) -> onnx.ModelProto:
    """Return a model of one input of integers, which it computes with as floats."""
    builder = FloatBuilder(4)
    x = builder.node("Cast", builder.input((1, 3, 8, 8), "counts", dtype), to=TensorProto.FLOAT)
    return builder.finish(builder.node("Relu", builder.conv(x, 3, 4)))


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT32])
def test_a_float_model_of_integer_inputs_is_float(tmp_path, monkeypatch, dtype):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    assert precision_of(counts(dtype)) is Precision.FLOAT
    onnx.save(counts(dtype), tmp_path / "counts.onnx")
    np.save(tmp_path / "counts.npy", np.random.default_rng(0).integers(0, 99, (5, 3, 8, 8)).astype(
        onnx.helper.tensor_dtype_to_np_dtype(dtype)))
    done = run_model(find_model(str(tmp_path / "counts.onnx"), Silence(), calibrate=tmp_path / "counts.npy"),
                     PRESETS["base"], "fast", None)
    assert done.comparison.matches, done.comparison
    assert any(layer.algorithm.startswith("conv") for layer in done.report.layers)
    assert find_model(str(tmp_path / "counts.onnx"), Silence())     # whole numbers are drawn for a quick look


def test_words_by_number_are_no_quantisation():
    builder = FloatBuilder(4)
    table = builder.constant(builder.rng.normal(size=(11, 8)).astype(np.float32))
    x = builder.node("Gather", table, builder.input((1, 6), "words", TensorProto.INT64), axis=0)
    x = builder.node("MatMul", x, builder.constant(builder.rng.normal(size=(8, 8)).astype(np.float32)))
    assert precision_of(builder.finish(x)) is Precision.FLOAT


def test_integers_alone_are_no_float_model():
    builder = FloatBuilder()
    builder.input((1, 1, 4, 4), "x", TensorProto.INT8)
    proto = builder.finish()
    proto.graph.node.append(onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2]))
    assert precision_of(proto) is Precision.QUANTISED
