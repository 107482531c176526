"""The built-in models and digits load without torch, are what they say, and classify in ONNX Runtime."""

import subprocess
import sys
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tilewright.models import BUILTIN, builtin, data
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

MAC_LAYERS = {"lenet5": (3, 2), "lenet5_accel": (6, 2), "lenet5_qoperator": (3, 2)}  # convolutions, Gemms


def static_shape(value):
    return [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]


def test_using_a_built_in_model_imports_neither_torch_nor_scikit_learn():
    script = ("import sys; from tilewright.models import builtin, data; builtin('lenet5'); data.samples(); "
              "sys.exit(bool({'torch', 'sklearn', 'onnx'} & sys.modules.keys()))")
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"Built-in model.*not 'lenet6'"):
        builtin("lenet6")


def test_samples_are_float_images_of_every_digit():
    images, labels = data.samples()
    assert images.shape == (data.SAMPLES, 1, data.SIDE, data.SIDE)
    assert images.dtype == np.float32
    assert set(labels.tolist()) == set(range(10))
    assert images.min() == pytest.approx((0 - data.MEAN) / data.SPREAD)
    assert images.max() == pytest.approx((1 - data.MEAN) / data.SPREAD)


@pytest.mark.parametrize("name", BUILTIN)
def test_model_is_static_int8_and_valid(name):
    model = onnx.load(builtin(name))
    onnx.checker.check_model(model, full_check=True)
    assert [static_shape(value) for value in model.graph.input] == [[1, 1, 32, 32]]
    assert [static_shape(value) for value in model.graph.output] == [[1, 10]]
    ops = Counter(node.op_type for node in model.graph.node)
    assert (ops["Conv"] + ops["QLinearConv"], ops["Gemm"] + ops["QGemm"]) == MAC_LAYERS[name]
    weights = [t for t in model.graph.initializer if t.name.endswith("weight_quantized")]
    assert {t.data_type for t in weights} == {onnx.TensorProto.INT8}
    assert len(weights) == sum(MAC_LAYERS[name])


@pytest.mark.parametrize(("name", "zero_points"), [
    ("lenet5", False), ("lenet5_accel", False), ("lenet5_qoperator", True),
])
def test_weights_are_per_channel_and_only_the_qoperator_form_has_zero_points(name, zero_points):
    tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(builtin(name)).graph.initializer}
    for weight in (n for n in tensors if n.endswith("weight_quantized")):
        stem = weight.removesuffix("_quantized")
        assert tensors[f"{stem}_scale"].shape == tensors[weight].shape[:1]
        assert not tensors[f"{stem}_zero_point"].any()
    activations = [t for n, t in tensors.items() if n.endswith("output_0_zero_point")]
    assert activations
    assert any(t.any() for t in activations) is zero_points


@pytest.mark.parametrize("name", BUILTIN)
def test_model_classifies_the_samples(name):
    images, labels = data.samples()
    session = onnx_session(builtin(name))
    logits = np.concatenate([session.run(["logits"], {"image": image[np.newaxis]})[0] for image in images])
    # 0.987 is the lowest accuracy on all test digits (models/lenet5.py): one of these 32 may be wrong.
    assert np.count_nonzero(logits.argmax(axis=1) != labels) <= 1


def test_enlarging_keeps_corners_constants_and_ramps():
    rng = np.random.default_rng(0)
    small = rng.random((3, 8, 8))
    large = data.enlarge(small, 32)
    assert large.shape == (3, 32, 32)
    np.testing.assert_array_equal(large[:, ::31, ::31], small[:, ::7, ::7])
    np.testing.assert_allclose(data.enlarge(np.ones((1, 8, 8)), 32), 1)
    # A ramp stays a ramp of a quarter of the slope, away from the edges.
    ramp = np.broadcast_to(np.arange(8.0), (1, 8, 8))
    np.testing.assert_allclose(np.diff(data.enlarge(ramp, 32)[0, :, 2:-2], axis=1), 0.25)
