"""Quantised ConvTranspose runs on the datapath, at most one level from ONNX Runtime, which computes it in float."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer

CASES = {
    "2x2 stride 2": ((2, 2), {"strides": (2, 2)}),
    "3x3 stride 2": ((3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1), "output_padding": (1, 1)}),
    "4x4 stride 2": ((4, 4), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "3x2 strides 1, 3": ((3, 2), {"strides": (1, 3), "pads": (1, 0, 0, 1)}),
    "dilated": ((3, 3), {"strides": (2, 2), "dilations": (2, 1)}),
    "grouped": ((3, 3), {"strides": (2, 2), "group": 2}),
}


def transposed(model, x, outputs, kernel, per_channel=True, clip="", zero=None, **attrs):
    """Add a quantised ConvTranspose, with uint8 weights of the zero points ``zero`` if there are some."""
    groups, channels = attrs.get("group", 1), x.shape[1]
    low, kind = (-127, np.int8) if zero is None else (0, np.uint8)
    weights = model.rng.integers(low, low + 255, (channels, outputs // groups, *kernel)).astype(kind)
    size = outputs // groups if per_channel else ()
    scale = model.rng.uniform(0.004, 0.01, size).astype(np.float32)
    zeros = np.broadcast_to(np.array(0 if zero is None else zero, kind), size)
    w = [model.constant(weights), model.constant(scale), model.constant(zeros)]
    bias = model.constant(model.rng.integers(-9000, 9000, outputs).astype(np.int32))
    # A scale along axis 1 belongs to that channel of every group.
    bias_scale = np.resize(x.scale * scale, outputs).astype(np.float32)
    b = [bias, model.constant(bias_scale), model.constant(np.zeros(outputs, np.int32))]
    inputs = [model.dequantised(x), model.node("DequantizeLinear", w, f"weights{len(model.nodes)}", axis=1),
              model.node("DequantizeLinear", b, f"bias{len(model.nodes)}", axis=0)]
    real = model.node("ConvTranspose", inputs, f"float{len(model.nodes)}", kernel_shape=kernel, **attrs)
    if clip:
        real = model.node(clip, [real], f"float{len(model.nodes)}")
    strides, dilations = attrs.get("strides", (1, 1)), attrs.get("dilations", (1, 1))
    pads, extra = attrs.get("pads", (0,) * 4), attrs.get("output_padding", (0, 0))
    shape = tuple(strides[i] * (x.shape[2 + i] - 1) + extra[i] + dilations[i] * (kernel[i] - 1) + 1
                  - pads[i] - pads[i + 2] for i in range(2))
    y = model.value((1, outputs, *shape), np.float32(x.scale * 0.007 * np.sqrt(channels / groups) * 74**2 / 40))
    model.quantised(real, y)
    return y


@pytest.mark.parametrize(("dtype", "zero_point"), [(np.int8, 0), (np.int8, None), (np.uint8, None)])
@pytest.mark.parametrize("case", CASES)
def test_any_transposed_convolution(case, dtype, zero_point):
    kernel, attrs = CASES[case]
    model = ModelBuilder("qdq", seed=len(case), dtype=dtype, zero_point=zero_point)
    network = assert_layers(model.finish(transposed(model, model.input((1, 4, 5, 6)), 6, kernel, **attrs)))
    assert not any(isinstance(layer, CoreLayer) or layer.exact for layer in network.layers)


@pytest.mark.parametrize(("kernel", "size", "attrs"), [
    ((3, 3), (10, 12), {"strides": (2, 2), "auto_pad": "SAME_UPPER"}),
    ((4, 3), (10, 12), {"strides": (2, 2), "auto_pad": "SAME_LOWER"}),
    ((2, 5), (11, 16), {"strides": (2, 2), "auto_pad": "VALID"} | {"dilations": (2, 1)}),
    ((3, 3), (9, 12), {"strides": (2, 2), "output_shape": (9, 12)}),
    ((3, 4), (10, 11), {"strides": (2, 2), "output_shape": (10, 11), "auto_pad": "SAME_UPPER"}),
    ((2, 2), (10, 13), {"strides": (2, 2), "output_shape": (10, 13)})])
def test_padding_may_be_told_by_the_size_of_the_result(kernel, size, attrs):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    y = transposed(model, model.input((1, 4, 5, 6)), 6, kernel, **attrs)
    network = assert_layers(model.finish(replace(y, shape=(1, 6, *size))))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("zero", [0, 128, 119, 255, [0, 40, 100, 128, 200, 255]])
@pytest.mark.parametrize("case", ["3x3 stride 2", "grouped"])
def test_weights_of_nine_bits_are_split(case, zero):
    kernel, attrs = CASES[case]
    model = ModelBuilder("qdq", seed=len(case), zero_point=None)
    per_channel = np.size(zero) > 1
    if per_channel and "group" in attrs:
        zero, per_channel = zero[4], False
    network = assert_layers(model.finish(transposed(
        model, model.input((1, 4, 5, 6)), 6, kernel, per_channel=per_channel, zero=zero, **attrs)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_what_follows_joins():
    model = ModelBuilder("qdq", seed=1)
    y = transposed(model, model.conv(model.input((1, 3, 6, 6)), 4), 6, (2, 2), clip="Relu", strides=(2, 2))
    network = assert_layers(model.finish(model.conv(y, 4)), levels=2)
    assert [layer.kind for layer in network.layers] == ["conv"] * 6
