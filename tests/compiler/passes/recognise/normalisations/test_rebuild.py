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
