"""Normalisations that were taken apart run in integers again, within a level of ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.fuzz.float_builder import FloatBuilder
from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tests.support.taken_apart import FORMS, taken_apart
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.onnx.reader import read_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.float_graph import prepare


def on_core(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def vectors(model, shape, axes):
    extents = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    return model.rng.uniform(-1.5, 1.5, extents), model.rng.uniform(-1, 1, extents)


def between_quantisations(form, axes, *, gained=True, shifted=True, dtype=np.int8, zero_point=0, epsilon=0.01):
    model = ModelBuilder("qdq", seed=3, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=1)
    gain, shift = vectors(model, x.shape, axes)
    out = model.value(x.shape, np.float32(1 / 40))
    model.quantised(taken_apart(model, model.dequantised(x), axes, form, gain if gained else None,
                                shift if shifted else None, epsilon), out)
    return model.finish(model.conv(out, 4, kernel=1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("axes", [(1,), (3,), (2, 3), (1, 2, 3)])
def test_every_form_along_any_axes_is_one_normalisation_of_levels(form, axes):
    network = assert_layers(between_quantisations(form, axes))
    assert on_core(network) == ["NormalisationOfLevels"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("gained", "shifted"), [(True, False), (False, True), (False, False)])
def test_gain_and_shift_may_be_missing(form, gained, shifted):
    network = assert_layers(between_quantisations(form, (1,), gained=gained, shifted=shifted))
    assert on_core(network) == ["NormalisationOfLevels"]


@pytest.mark.parametrize(("dtype", "zero_point"), [(np.int8, None), (np.uint8, None), (np.uint8, 128)])
def test_any_levels_will_do(dtype, zero_point):
    network = assert_layers(between_quantisations("power", (1,), dtype=dtype, zero_point=zero_point))
    assert on_core(network) == ["NormalisationOfLevels"]


@pytest.mark.parametrize(("kernel", "group"), [(1, True), (1, False)])
def test_a_group_of_channels_is_one_too(kernel, group):
    """GroupNormalization by means, as TensorFlow and Flax compute it."""
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=kernel)
    groups = model.reshape(x, (1, 3, 4, 6, 5) if group else (1, 3, 120))
    axes = (2, 3, 4) if group else (2,)
    out = model.value(groups.shape, np.float32(1 / 40))
    model.quantised(taken_apart(model, model.dequantised(groups), axes, "power", None, None), out)
    network = assert_layers(model.finish(model.conv(model.reshape(out, x.shape), 4, kernel=1)))
    assert on_core(network) == ["NormalisationOfLevels"]


def test_what_varies_along_other_axes_stays_behind_it():
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=1)
    gain = model.rng.uniform(0.5, 1.5, (1, 12, 1, 1))
    out = model.value(x.shape, np.float32(1 / 40))
    model.quantised(taken_apart(model, model.dequantised(x), (3,), "power", gain, None), out)
    assert "NormalisationOfLevels" not in on_core(assert_layers(model.finish(out)))


@pytest.mark.parametrize("change", ["other axes", "no epsilon", "another tensor", "cube"])
def test_what_only_looks_like_one_stays_as_it_is(change):
    model = ModelBuilder("qdq", seed=6)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=1)
    other = model.conv(x, 12, kernel=1)

    def node(op, *inputs, **attributes):
        return model.node(op, list(inputs), f"alike{len(model.nodes)}", **attributes)

    real = model.dequantised(x)
    less = node("Sub", real, node("ReduceMean", model.dequantised(other) if change == "another tensor" else real,
                                  axes=[1]))
    square = node("Abs", node("Pow", less, model.constant(np.float32(3)))) if change == "cube" else \
        node("Mul", less, less)
    variance = node("ReduceMean", square, axes=[3 if change == "other axes" else 1])
    if change != "no epsilon":
        variance = node("Add", variance, model.constant(np.float32(0.01)))
    out = model.value(x.shape, np.float32(1 / 40))
    model.quantised(node("Div", less, node("Sqrt", variance)), out)
    network = assert_layers(model.finish(out))
    assert {"NormalisationOfLevels", "LayerNormalization"}.isdisjoint(on_core(network))


@pytest.mark.parametrize("opset", [11, 13, 17])
@pytest.mark.parametrize("form", ["power", "tensorflow"])
def test_before_quantisation_a_float_model_gets_the_operator_back(form, opset, tmp_path):
    model = FloatBuilder("qdq", seed=7)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=1)
    gain, shift = vectors(model, x.shape, (1,))
    out = model.value(x.shape, np.float32(1))
    model.quantised(taken_apart(model, x.name, (1,), form, gain, shift), out)
    model.output(model.conv(out, 4, kernel=1))
    proto = model.proto()
    proto.opset_import[0].version = opset
    onnx.save(proto, tmp_path / "net.onnx")
    prepared = prepare(read_model(tmp_path / "net.onnx")).proto
    operators = [node.op_type for node in prepared.graph.node]
    assert "LayerNormalization" in operators
    assert {"ReduceMean", "Sub", "Sqrt", "Div", "Reciprocal"}.isdisjoint(operators)
    assert all(value.type.tensor_type.elem_type == TensorProto.FLOAT for value in prepared.graph.input)
    feed = {model.inputs[0].name: np.random.default_rng(1).standard_normal((1, 3, 6, 5)).astype(np.float32)}
    (wanted,), (found,) = (session(each.SerializeToString()).run(None, feed) for each in (proto, prepared))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def about_zero(model, form, x, count):
    """Return a tensor divided along its last axis by its root mean square or its length, in the form of an exporter."""
    def node(op, *inputs, **attributes):
        return model.node(op, list(inputs), f"about{len(model.nodes)}", **attributes)

    def number(value):
        return model.constant(np.float32(value))

    gain = model.constant(np.linspace(0.5, 1.5, count).astype(np.float32))
    square = node("Pow", x, number(2)) if form in ("hugging face", "torch") else node("Mul", x, x)
    mean = node("ReduceMean", square, axes=[-1])
    match form:
        case "hugging face":
            root = node("Sqrt", node("Add", mean, number(1e-6)))
            return node("Mul", gain, node("Mul", x, node("Div", number(1), root)))
        case "torch":
            return node("Mul", node("Div", x, node("Sqrt", node("Add", mean, number(1e-6)))), gain)
        case "reciprocal":
            return node("Mul", node("Mul", x, node("Reciprocal", node("Sqrt", node("Add", number(1e-6), mean)))), gain)
        case "length":
            return node("LpNormalization", x, axis=-1)
        case "clipped length":
            return node("Div", x, node("Clip", node("ReduceL2", x, axes=[-1]), number(1e-12), ""))
    root = node("Sqrt", node("Max", node("ReduceSumSquare", x, axes=[-1]), number(1e-12)))
    return node("Mul", x, node("Reciprocal", root))


ABOUT_ZERO = ("hugging face", "torch", "reciprocal", "length", "clipped length", "tensorflow's length")


@pytest.mark.parametrize("form", ABOUT_ZERO)
def test_the_root_mean_square_and_the_length_of_a_row_normalise_levels(form):
    model = ModelBuilder("qdq", seed=8)
    x = model.conv(model.input((1, 3, 6, 40)), 8, kernel=1)
    out = model.value(x.shape, np.float32(1 / 40 if "length" not in form else 1 / 200))
    model.quantised(about_zero(model, form, model.dequantised(x), 40), out)
    assert on_core(assert_layers(model.finish(model.conv(out, 4, kernel=1)))) == ["NormalisationOfLevels"]


def test_a_length_that_is_bounded_within_what_levels_show_stays_as_it_is():
    model = ModelBuilder("qdq", seed=9)
    x = model.conv(model.input((1, 3, 6, 40)), 8, kernel=1)
    real, out = model.dequantised(x), model.value(x.shape, np.float32(1 / 200))
    length = model.node("ReduceL2", [real], "length", axes=[-1])
    bounded = model.node("Clip", [length, model.constant(np.float32(3)), ""], "bounded")
    model.quantised(model.node("Div", [real, bounded], "quotient"), out)
    assert "NormalisationOfLevels" not in on_core(assert_layers(model.finish(out)))


@pytest.mark.parametrize("form", ABOUT_ZERO)
def test_before_quantisation_a_float_model_gets_the_root_mean_square_back(form, tmp_path):
    model = FloatBuilder("qdq", seed=7)
    x = model.conv(model.input((1, 3, 6, 40)), 12, kernel=1)
    out = model.value(x.shape, np.float32(1))
    model.quantised(about_zero(model, form, x.name, 40), out)
    model.output(model.conv(out, 4, kernel=1))
    onnx.save(model.proto(), tmp_path / "net.onnx")
    prepared = prepare(read_model(tmp_path / "net.onnx")).proto
    assert [node.op_type for node in prepared.graph.node] == ["Conv", "RMSNormalization", "Conv"]
    feed = {model.inputs[0].name: np.random.default_rng(1).standard_normal((1, 3, 6, 40)).astype(np.float32)}
    (wanted,), (found,) = (session(each.SerializeToString()).run(None, feed) for each in (model.proto(), prepared))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
