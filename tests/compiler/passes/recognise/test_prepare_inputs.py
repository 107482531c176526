"""Arithmetic before the first quantisation is the host's, to the bit; on images of 8 bits it is the datapath's."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder, Value
from tilewright.compiler.kernels.preparation import PreparationStep, prepared, unprepared
from tilewright.compiler.network.layers import CoreLayer

SHAPE = (1, 3, 8, 8)
MEAN = np.array((0.485, 0.456, 0.406), np.float32).reshape(1, 3, 1, 1)
DEVIATION = np.array((0.229, 0.224, 0.225), np.float32).reshape(1, 3, 1, 1)

# operator, constant, whether the constant comes first
CHAINS = {
    "divided": [("Div", np.float32(255), False)],
    "normalised": [("Sub", MEAN, False), ("Div", DEVIATION, False)],
    "scaled, then normalised": [("Div", np.float32(255), False), ("Sub", MEAN, False), ("Div", DEVIATION, False)],
    "torchvision": [("Mul", np.float32(1 / 255), False), ("Sub", MEAN[0], False), ("Mul", 1 / DEVIATION, False)],
    "symmetric": [("Mul", np.float32(2 / 255), False), ("Add", np.array([-1], np.float32), False)],
    "inverted": [("Sub", np.float32(1), True), ("Mul", MEAN, True)],
    "relu": [("Relu", None, False)],
    "clipped": [("Sub", MEAN, False), ("Clip", None, False)],
}


def chained(model, name, steps):
    """Add ``steps`` behind the float tensor ``name``."""
    for op, constant, first in steps:
        names = [name]
        if op == "Clip":
            names += [model.constant(np.float32(-0.4)), model.constant(np.float32(0.5))]
        elif constant is not None:
            names.insert(0 if first else 1, model.constant(constant))
        name = model.node(op, names, f"step{len(model.nodes)}")
    return name


def reached(steps):
    """Return the largest value of an input that is still inside of the range of what is quantised."""
    return 255.0 if any(np.size(constant) == 1 and op in ("Div", "Mul") for op, constant, _ in steps) else 1.0


def image(model, name, kind, shape=SHAPE):
    model.inputs.append(helper.make_tensor_value_info(name, kind, shape))
    return name


def scale_of(steps):
    """Return the scale that the results of 0 .. the largest input need."""
    value = np.stack([np.zeros(SHAPE, np.float32), np.full(SHAPE, reached(steps), np.float32)])
    for op, constant, first in steps:
        if constant is not None:
            function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[op]
            value = function(constant, value) if first else function(value, constant)
    return np.float32(np.abs(value).max() / 127)


def on_datapath(network):
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    return network


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
def test_arithmetic_on_a_float_input_is_the_hosts(steps, form, dtype):
    model = ModelBuilder(form, seed=1, dtype=dtype, zero_point=None)
    x = model.value(SHAPE, scale_of(steps), 0 if dtype == np.int8 else 128)
    model.quantised(chained(model, image(model, "image", TensorProto.FLOAT), steps), x)
    network = on_datapath(assert_layers(model.finish(model.conv(x, 4))))
    assert [info.onnx_name for info in network.inputs] == ["image"]
    assert all(layer.exact for layer in network.layers)
    assert len(network.layers) == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("steps", [each for name, each in CHAINS.items() if name not in ("relu", "clipped")],
                         ids=[name for name in CHAINS if name not in ("relu", "clipped")])
def test_arithmetic_on_an_image_of_bytes_is_the_datapaths(steps, dtype):
    model = ModelBuilder("qdq", seed=2, dtype=dtype, zero_point=None)
    name = model.node("Cast", [image(model, "image", TensorProto.UINT8)], "real", to=TensorProto.FLOAT)
    scale = scale_of(steps) * np.float32(255 / reached(steps))
    x = model.value(SHAPE, scale, 0 if dtype == np.int8 else 128)
    model.quantised(chained(model, name, steps), x)
    network = on_datapath(assert_layers(model.finish(model.conv(x, 4))))
    assert [info.onnx_dtype for info in network.inputs] == ["uint8"]


@pytest.mark.parametrize("early", [False, True])
def test_a_transpose_may_stand_before_or_behind(early):
    model = ModelBuilder("qdq", seed=3)
    name = image(model, "image", TensorProto.FLOAT, (1, 8, 8, 3))
    if early:
        name = model.node("Transpose", [name], "turned", perm=(0, 3, 1, 2))
        name = chained(model, name, CHAINS["normalised"])
    else:
        last = [(op, each.reshape(3), first) for op, each, first in CHAINS["normalised"]]
        name = model.node("Transpose", [chained(model, name, last)], "turned", perm=(0, 3, 1, 2))
    x = model.value(SHAPE, np.float32(0.02), 0)
    model.quantised(name, x)
    network = on_datapath(assert_layers(model.finish(model.conv(x, 4))))
    assert [info.onnx_shape for info in network.inputs] == [(1, 8, 8, 3)]


@pytest.mark.parametrize("early", [False, True])
def test_an_nhwc_image_of_bytes_is_turned_for_nothing(early):
    model = ModelBuilder("qdq", seed=6, dtype=np.uint8, zero_point=None)
    name = image(model, "image", TensorProto.UINT8, (1, 8, 8, 3))
    steps = CHAINS["scaled, then normalised"]
    if early:
        name = model.node("Transpose", [name], "turned", perm=(0, 3, 1, 2))
    name = model.node("Cast", [name], "real", to=TensorProto.FLOAT)
    if not early:
        steps = [(op, each.reshape(3) if np.size(each) == 3 else each, first) for op, each, first in steps]
    name = chained(model, name, steps)
    if not early:
        name = model.node("Transpose", [name], "turned", perm=(0, 3, 1, 2))
    x = model.value(SHAPE, np.float32(0.02), 120)
    model.quantised(name, x)
    network = on_datapath(assert_layers(model.finish(model.conv(x, 4))))
    assert len(network.layers) == 2


@pytest.mark.parametrize("size", [1, 3])
def test_an_nhwc_image_times_quantised_constants_is_turned_for_nothing(size):
    # tf2onnx: Q(DQ(image) * DQ(constant)), and the transposition behind all of them.
    model = ModelBuilder("qdq", seed=8)
    rng = np.random.default_rng(8)
    x = Value(image(model, "image", TensorProto.INT8, (1, 8, 8, 3)), (1, 8, 8, 3), np.float32(1 / 255), -128)
    for op, scale, zero in (("Mul", 2 / 255, -128), ("Sub", 2 / 255, -1)):
        levels = rng.integers(90, 128, size).astype(np.int8) if size > 1 else np.int8(127)
        constant = [model.constant(each) for each in (levels, np.float32(2 / 127 if op == "Mul" else 1 / 127),
                                                      np.int8(0))]
        operands = [model.dequantised(x), model.node("DequantizeLinear", constant, f"{op}:constant")]
        y = model.value(x.shape, np.float32(scale), zero)
        model.quantised(model.node(op, operands, f"{op}:float"), y)
        x = y
    turned = model.moved("Transpose", x, SHAPE, perm=(0, 3, 1, 2))
    network = on_datapath(assert_layers(model.finish(model.conv(turned, 4))))
    assert [layer.in_shape for layer in network.layers] == [SHAPE[1:]] * (2 if size == 1 else 3)


def test_bounds_between_levels_are_not_rounded_before_a_sum():
    model = ModelBuilder("qdq", seed=7)
    name = model.node("Cast", [image(model, "image", TensorProto.UINT8)], "real", to=TensorProto.FLOAT)
    clip = model.node("Clip", [name, model.constant(np.float32(-0.5)), model.constant(np.float32(1.5))], "clipped")
    x = model.value(SHAPE, np.float32(0.01), 0)
    model.quantised(chained(model, model.node("Relu", [clip], "relu"), [("Sub", np.float32(1), False)]), x)
    on_datapath(assert_layers(model.finish(model.conv(x, 4))))


def test_what_is_computed_per_pixel_stays_the_cores():
    model = ModelBuilder("qdq", seed=4)
    steps = [("Mul", np.linspace(0.5, 1.5, 3 * 64 * 64, dtype=np.float32).reshape(1, 3, 64, 64), False)]
    x = model.value((1, 3, 64, 64), np.float32(0.02), 0)
    model.quantised(chained(model, image(model, "image", TensorProto.FLOAT, x.shape), steps), x)
    network = assert_layers(model.finish(model.conv(x, 4)))
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == ["Mul", "QuantizeLinear"]


def test_several_factors_between_quantisations_are_one_layer():
    model = ModelBuilder("qdq", seed=5, dtype=np.uint8, zero_point=None)
    x = model.conv(model.input(SHAPE), 3, kernel=1)
    y = model.value(SHAPE, np.float32(x.scale * 6), 100)
    model.quantised(chained(model, model.dequantised(x), [*CHAINS["normalised"], ("Relu", None, False)]), y)
    network = on_datapath(assert_layers(model.finish(y)))
    assert len(network.layers) == 2


def test_steps_are_computed_in_order_in_float32():
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(1, 3, 2, 2)
    steps = (PreparationStep("subtract", tuple(map(float, MEAN.ravel())), MEAN.shape),
             PreparationStep("divide", tuple(map(float, DEVIATION.ravel())), DEVIATION.shape),
             PreparationStep("subtract", (1.0,), swapped=True))
    found = prepared(steps, x)
    np.testing.assert_array_equal(found, np.float32(1) - (x - MEAN) / DEVIATION)
    assert found.dtype == np.float32
    np.testing.assert_allclose(unprepared(steps, found), x, atol=1e-5)
