"""Concatenation, slices, upsampling and padding of integers are addresses, equal to ONNX Runtime in both forms."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.execute import execute
from tests.support.onnx_models import FORMS, ModelBuilder, Value
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import BadModelError
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import preset

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def on_datapath(model, *values):
    """Compare reference and functional engine with ONNX Runtime; nothing is left to the core."""
    network = assert_layers(model.finish(*values))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    rng = np.random.default_rng(0)
    inputs = {info.name: rng.integers(-128, 128, info.array_shape, dtype=np.int8) for info in network.inputs}
    expected = run_network(network, inputs)
    compiled = compile_layers(network, preset("base"), keep_tensors=True)
    check((command for _, command in compiled.program.commands()), compiled.machine)
    for name, value in execute(compiled, inputs).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    return network


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("same", [True, False])
def test_channels_are_concatenated_without_a_layer(same, form, dtype, zero_point):
    model = ModelBuilder(form, seed=1, dtype=dtype, zero_point=zero_point)
    x = model.input((1, 3, 8, 8))
    parts = [model.conv(x, 4, kernel=1), model.conv(x, 6, kernel=3, pads=(1, 1, 1, 1)), model.conv(x, 2, kernel=1)]
    scale = parts[0].scale
    if same:
        parts = [model.moved("MaxPool", parts[0], parts[0].shape, kernel_shape=(1, 1))] * 1 + parts[1:]
    y = model.concat(parts, np.float32(scale * 1.1))
    network = on_datapath(model, model.conv(y, 5))
    assert [layer.kind for layer in network.layers] == ["conv"] * 4
    assert all(network.tensors[layer.output].place is not None for layer in network.layers[:3])


def test_a_concatenation_needs_three_inputs_for_each_tensor():
    model = ModelBuilder("qoperator", seed=2)
    x = model.input((1, 3, 6, 6))
    y = model.concat([x, x], np.float32(0.05))
    del model.nodes[-1].input[-1]
    with pytest.raises(BadModelError, match=r"Node.*'QLinearConcat1'"):
        compile_network(model.finish(y))


@pytest.mark.parametrize("form", FORMS)
def test_an_input_and_a_tensor_of_two_concatenations_are_copied(form):
    model = ModelBuilder(form, seed=2)
    x = model.input((1, 3, 6, 6))
    y = model.conv(x, 5, kernel=1)
    first = model.concat([x, y], np.float32(0.05))
    second = model.concat([y, y], np.float32(0.06))
    on_datapath(model, model.conv(first, 4), model.conv(second, 3))


@pytest.mark.parametrize("axis", [2, 3, -1])
def test_rows_and_columns_are_concatenated(axis):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.input((1, 3, 6, 6))
    on_datapath(model, model.conv(model.concat([model.conv(x, 4), model.conv(x, 4)], np.float32(0.2), axis), 3))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("axes", "starts", "ends", "steps"), [
    ((1,), (2,), (5,), (1,)), ((2, 3), (1, 0), (-1, 5), (1, 2)), ((1, 2), (-3, 2), (100, 100), (1, 3))])
def test_slices_are_read_where_they_lie(axes, starts, ends, steps, form):
    model = ModelBuilder(form, seed=4, zero_point=-3)
    x = model.conv(model.input((1, 3, 9, 9)), 6)
    bounds = tuple(model.constant(np.array(each)) for each in (starts, ends, axes, steps))
    shape = np.zeros(x.shape)[tuple(
        slice(starts[axes.index(a)], ends[axes.index(a)], steps[axes.index(a)]) if a in axes else slice(None)
        for a in range(4))].shape
    y = model.moved("Slice", x, shape, extra=bounds)
    on_datapath(model, model.conv(y, 4, kernel=1))


@pytest.mark.parametrize("form", FORMS)
def test_split_is_slices(form):
    model = ModelBuilder(form, seed=5)
    x = model.conv(model.input((1, 3, 6, 6)), 8)
    source = model.dequantised(x) if form == "qdq" else x.name
    parts = [Value(f"part{i}", (1, n, 4, 4), x.scale, 0) for i, n in enumerate((3, 5))]
    names = [f"real{i}" if form == "qdq" else part.name for i, part in enumerate(parts)]
    model.split(source, names, (3, 5))
    if form == "qdq":
        for name, part in zip(names, parts, strict=True):
            model.quantised(name, part)
    on_datapath(model, model.conv(parts[0], 4), model.conv(parts[1], 4))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("factors", "attrs"), [
    ((2, 2), {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    ((3, 2), {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_floor"}),
    ((1, 4), {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"})])
def test_nearest_upsampling_stores_each_pixel_several_times(factors, attrs, form):
    model = ModelBuilder(form, seed=6)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    scales = model.constant(np.array([1, 1, *factors], np.float32))
    y = model.moved("Resize", x, (1, 4, 4 * factors[0], 4 * factors[1]), extra=("", scales), mode="nearest", **attrs)
    on_datapath(model, model.conv(y, 3))


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_padding(form, dtype, zero_point):
    model = ModelBuilder(form, seed=7, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    value = np.float32(0.31) if form == "qdq" else dtype(17)
    extra = (model.constant(np.array([0, 0, 1, 2, 0, 0, 0, 3])), model.constant(value))
    y = model.moved("Pad", x, (1, 4, 5, 9), extra=extra)
    on_datapath(model, model.conv(y, 3))


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 2, 0, 3)])
def test_channels_beside_those_of_an_image_are_computed(pads, form, dtype, zero_point):
    model = ModelBuilder(form, seed=8, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    top, left, bottom, right = pads
    value = np.float32(0.31) if form == "qdq" else dtype(17)
    extra = (model.constant(np.array([0, 1, top, left, 0, 3, bottom, right])), model.constant(value))
    y = model.moved("Pad", x, (1, 8, 4 + top + bottom, 4 + left + right), extra=extra)
    network = on_datapath(model, model.add(y, model.conv(y, 8, pads=(1, 1, 1, 1))))
    assert all(layer.exact for layer in network.layers)


@pytest.mark.parametrize("channels", [0, 3])
def test_what_is_padded_with_may_be_quantised_itself(channels):
    model = ModelBuilder("qdq", seed=9, zero_point=None)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    level, scale, zero = (model.constant(each) for each in (np.int8(9), np.float32(0.04), np.int8(2)))
    value = model.node("DequantizeLinear", [level, scale, zero], "value")
    extra = (model.constant(np.array([0, 0, 1, 1, 0, channels, 1, 1])), value)
    on_datapath(model, model.conv(model.moved("Pad", x, (1, 4 + channels, 6, 6), extra=extra), 3))


def transposed(model, name, perm):
    """Add a Transpose of any tensor and return its name."""
    return model.node("Transpose", [name], f"transposed{len(model.nodes)}", perm=perm)


TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def nhwc_input(model, shape):
    """Add a float input in NHWC, quantised; return the float tensor behind its DequantizeLinear."""
    x = model.input(shape)
    return x, model.dequantised(x)


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_a_model_in_nhwc_moves_nothing(dtype, zero_point):
    """As tf2onnx writes it: NHWC at the border and for the elementwise, NCHW for the convolutions."""
    model = ModelBuilder("qdq", seed=8, dtype=dtype, zero_point=zero_point)
    x, real = nhwc_input(model, (1, 8, 9, 3))
    inner = Value("inner", (1, 3, 8, 9), x.scale, x.zero_point)
    model.quantised(transposed(model, real, TO_NCHW), inner)
    y = model.conv(inner, 4)
    back = Value("back", (1, 6, 7, 4), y.scale, y.zero_point)
    model.quantised(transposed(model, model.dequantised(y), TO_NHWC), back)
    clipped = Value("clipped", back.shape, y.scale, y.zero_point)
    model.quantised(model.node("Relu", [model.dequantised(back)], "relu"), clipped)
    again = Value("again", y.shape, y.scale, y.zero_point)
    model.quantised(transposed(model, model.dequantised(clipped), TO_NCHW), again)
    z = model.conv(again, 5)
    end = Value("end", (1, 4, 5, 5), z.scale, z.zero_point)
    model.quantised(transposed(model, model.dequantised(z), TO_NHWC), end)
    network = on_datapath(model, end)
    assert [layer.kind for layer in network.layers] == ["conv", "conv"]


def test_transposes_on_the_float_side_move_nothing():
    model = ModelBuilder("qdq", seed=9)
    x, real = nhwc_input(model, (1, 8, 9, 3))
    y = model.conv(Value("x", (1, 3, 8, 9), x.scale, 0), 4)
    conv = next(node for node in model.nodes if node.op_type == "Conv")
    model.nodes.remove(next(node for node in model.nodes if node.output[0] == conv.input[0]))
    name = transposed(model, real, TO_NCHW)
    model.nodes.insert(model.nodes.index(conv), model.nodes.pop())
    conv.input[0] = name
    end = transposed(model, model.dequantised(y), TO_NHWC)
    model.outputs.append(model.float_output(end, (1, 6, 7, 4)))
    network = on_datapath(model)
    assert [layer.kind for layer in network.layers] == ["conv"]
    assert network.outputs[0].onnx_shape == (1, 6, 7, 4)


def test_flattening_in_nhwc_moves_nothing():
    model = ModelBuilder("qdq", seed=10)
    y = model.conv(model.input((1, 3, 6, 6)), 4)
    back = Value("back", (1, 4, 4, 4), y.scale, 0)
    model.quantised(transposed(model, model.dequantised(y), TO_NHWC), back)
    network = on_datapath(model, model.gemm(model.reshape(back, (1, 64)), 5))
    assert [layer.kind for layer in network.layers] == ["conv", "conv"]


@pytest.mark.parametrize("form", FORMS)
def test_a_channel_shuffle_is_a_convolution(form):
    model = ModelBuilder(form, seed=11, zero_point=5)
    x = model.conv(model.input((1, 4, 6, 6)), 12, groups=2)
    y = model.reshape(x, (1, 3, 4, 4, 4))
    y = model.moved("Transpose", y, (1, 4, 3, 4, 4), perm=(0, 2, 1, 3, 4))
    y = model.reshape(y, x.shape)
    network = on_datapath(model, model.conv(y, 4, groups=2))
    assert [layer.kind for layer in network.layers] == ["conv"] * 3


def test_other_transposes_are_copies():
    model = ModelBuilder("qdq", seed=12)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    y = model.moved("Transpose", x, x.shape, perm=(0, 1, 3, 2))
    network = assert_layers(model.finish(model.conv(y, 4)))
    assert [layer.kind for layer in network.layers] == ["conv", "pass", "conv"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_padding_of_zeros_is_the_convolutions_own(dtype, zero_point, form):
    model = ModelBuilder(form, seed=13, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    value = np.float32(0) if form == "qdq" else dtype(x.zero_point)
    extra = (model.constant(np.array([0, 0, 0, 1, 0, 0, 1, 2])), model.constant(value))
    y = model.moved("Pad", x, (1, 4, 5, 7), extra=extra)
    network = on_datapath(model, model.conv(y, 3, strides=(2, 2)))
    assert [layer.pads for layer in network.layers] == [(0, 0, 0, 0), (0, 1, 1, 2)]


def test_padding_of_the_least_is_the_poolings_own():
    model = ModelBuilder("qoperator", seed=14)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    extra = (model.constant(np.array([0, 0, 0, 0, 0, 0, 1, 1])), model.constant(np.int8(-128)))
    network = on_datapath(model, model.conv(model.max_pool(model.moved("Pad", x, (1, 4, 5, 5), extra=extra)), 3))
    assert [layer.kind for layer in network.layers] == ["conv", "conv"]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("grouped", [False, True])
def test_depth_to_space_stores_each_phase_to_its_place(mode, form, grouped):
    model = ModelBuilder(form, seed=15, zero_point=-9)
    x = model.conv(model.input((1, 4, 6, 7)), 12, groups=2 if grouped else 1)
    y = model.moved("DepthToSpace", x, (1, 3, 8, 10), blocksize=2, mode=mode)
    network = on_datapath(model, model.conv(y, 3))
    convolutions = 3 if grouped and mode == "CRD" else 2
    assert sorted(layer.kind for layer in network.layers) == ["conv"] * convolutions + ["pass"] * 4


@pytest.mark.parametrize("form", FORMS)
def test_a_shuffle_behind_a_convolution_is_an_order_of_its_weights(form):
    model = ModelBuilder(form, seed=16)
    x = model.conv(model.input((1, 3, 6, 6)), 12, per_channel=form == "qdq")
    y = model.moved("Transpose", model.reshape(x, (1, 2, 6, 4, 4)), (1, 6, 2, 4, 4), perm=(0, 2, 1, 3, 4))
    network = on_datapath(model, model.conv(model.reshape(y, x.shape), 4))
    assert [layer.kind for layer in network.layers] == ["conv", "conv"]


@pytest.mark.parametrize("op", ["Concat", "Resize"])
def test_a_clamp_behind_a_move(op):
    """Concat → Relu → Q, with no quantisation between."""
    model = ModelBuilder("qdq", seed=17)
    x = model.conv(model.input((1, 3, 6, 6)), 4)
    if op == "Concat":
        parts = [x, model.conv(x, 5, kernel=1)]
        real = model.node("Concat", [model.dequantised(part) for part in parts], "joined", axis=1)
        y = model.value((1, 9, 4, 4), np.float32(0.3))
    else:
        scales = model.constant(np.array([1, 1, 2, 2], np.float32))
        real = model.node("Resize", [model.dequantised(x), "", scales], "large", mode="nearest")
        y = model.value((1, 4, 8, 8), x.scale)
    model.quantised(model.node("Relu", [real], "clamped"), y)
    network = on_datapath(model, model.conv(y, 3))
    assert min(layer.requantisation.low for layer in network.layers) == -128


@pytest.mark.parametrize("same", [True, False])
def test_an_input_is_quantised_before_it_is_cut(same):
    """As some detectors begin: every second row and column, four times, side by side."""
    model = ModelBuilder("qdq", seed=18)
    model.inputs.append(model.float_output("image", (1, 3, 8, 8)))
    parts = []
    for row in range(2):
        axes = [model.constant(np.array([value])) for value in (row, 2**31, 2, 2)]
        rows = model.node("Slice", ["image", *axes], f"rows{row}")
        for column in range(2):
            axes = [model.constant(np.array([value])) for value in (column, 2**31, 3, 2)]
            part = model.value((1, 3, 4, 4), np.float32(0.02 if same else 0.02 + 0.003 * (row + column)))
            model.quantised(model.node("Slice", [rows, *axes], f"part{row}{column}"), part)
            parts.append(part)
    joined = model.concat(parts, np.float32(0.02))
    network = on_datapath(model, model.conv(joined, 4))
    assert {info.onnx_name for info in network.inputs} == {"image"}


def test_interpolation_with_too_many_phases_is_the_cores():
    model = ModelBuilder("qoperator", seed=19, dtype=np.int8)
    x = model.conv(model.input((1, 3, 3, 7)), 4, kernel=1)
    sizes = model.constant(np.array([1, 4, 17, 27]))
    y = model.moved("Resize", x, (1, 4, 17, 27), extra=("", "", sizes), mode="linear")
    network = assert_layers(model.finish(y), levels=2)
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == [
        "DequantizeLinear", "Resize", "QuantizeLinear"]
