"""Every integer tensor of every supported operator equals ONNX Runtime's, in both ONNX forms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.exactness import assert_exact, assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.network.layers import Residual
from tilewright.compiler.network.reference import accumulate, requantise, residual_table, run_layer, run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa import numerics
from tilewright.models import BUILTIN, builtin

# Type and zero point of the activations: symmetric, or one drawn per tensor.
QUANTISATIONS = [(np.int8, 0), (np.int8, None), (np.uint8, 128), (np.uint8, None)]

CONVOLUTIONS = {
    "1x1": {"kernel": 1},
    "2x2": {"kernel": 2, "pads": (1, 0, 0, 1)},
    "3x3": {"kernel": 3, "pads": (1, 1, 1, 1)},
    "3x3 stride 2": {"kernel": 3, "strides": (2, 2), "pads": (1, 0, 0, 1)},
    "5x5 strides 2, 1": {"kernel": 5, "strides": (2, 1), "pads": (2, 2, 2, 2)},
    "7x7 stride 2": {"kernel": 7, "strides": (2, 2), "pads": (3, 3, 3, 3)},
    "1x7": {"kernel": (1, 7), "pads": (0, 3, 0, 3)},
    "dilated": {"kernel": 3, "dilations": (2, 3), "pads": (2, 3, 2, 3)},
    "grouped": {"kernel": 3, "groups": 2},
    "depthwise": {"kernel": 3, "groups": 6, "pads": (1, 1, 1, 1)},
    "one scale": {"kernel": 3, "per_channel": False},
    "no bias": {"kernel": 3, "bias": "none"},
    "whole image": {"kernel": (9, 10)},
}


@pytest.mark.parametrize(("dtype", "zero_point"), QUANTISATIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case, form, dtype, zero_point):
    model = ModelBuilder(form, seed=len(case), dtype=dtype, zero_point=zero_point)
    y = model.conv(model.input((1, 6, 9, 10)), 12, **CONVOLUTIONS[case])
    network = assert_exact(model.finish(y))
    assert [layer.kind for layer in network.layers] == ["conv"]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_any_convolution_with_pooling(data):
    def numbers(count, low, high):
        return tuple(data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    kernel, pads = numbers(2, 1, 5), numbers(4, 0, 3)
    groups = data.draw(st.sampled_from([1, 2, 4]))
    model = ModelBuilder(data.draw(st.sampled_from(FORMS)), seed=data.draw(st.integers(0, 99)), zero_point=None)
    y = model.conv(model.input((1, 4, *numbers(2, 9, 12))), 8, kernel=kernel, groups=groups, pads=pads,
                   strides=numbers(2, 1, 2), dilations=numbers(2, 1, 2))
    if min(y.shape[2:]) >= 3:
        y = model.max_pool(y, 3, strides=numbers(2, 1, 3), pads=numbers(4, 0, 2), ceil_mode=numbers(1, 0, 1)[0])
    assert_exact(model.finish(y), samples=1)


def test_long_sums_stay_exact_at_the_extremes():
    """4608 products of -128 and ±127: each piece of the float32 sum is as large as it can be."""
    model = ModelBuilder("qoperator", zero_point=0)
    y = model.conv(model.input((1, 512, 5, 5), integer=True), 8, kernel=3)
    network = compile_network(model.finish(y))
    x = np.full((512, 5, 5), -128, np.int8)
    weights = np.where(np.arange(8 * 4608) % 4608 < 4000, -127, 127).astype(np.int8).reshape(8, 512, 3, 3)
    layer = replace(network.layers[0], weights=weights)
    assert accumulate(layer, x)[0, 0, 0] == 128 * 127 * (4000 - 608) + layer.bias[0]


def test_a_relu_that_saturation_already_does():
    model = ModelBuilder("qdq", zero_point=-128)
    network = assert_exact(model.finish(model.conv(model.input((1, 3, 8, 8)), 8, clip="Relu")))
    assert network.layers[0].onnx_nodes == ("Conv4",)
    assert network.layers[0].exact


def test_a_float_bias_is_quantised():
    model = ModelBuilder("qdq", seed=5)
    assert_exact(model.finish(model.conv(model.input((1, 3, 8, 8)), 8, bias="float32")))


@pytest.mark.parametrize("zero_point", [0, -30])
def test_relu_and_clip_between_quantisations(zero_point):
    model = ModelBuilder("qdq", seed=1, zero_point=zero_point)
    y = model.relu(model.conv(model.input((1, 3, 8, 8)), 8))
    z = model.clip(model.conv(y, 8), -0.7, 0.9)
    network = assert_exact(model.finish(z))
    assert network.layers[0].requantisation.low == zero_point
    assert -128 < network.layers[1].requantisation.low < network.layers[1].requantisation.high < 127
    assert len(network.layers) == 2


def test_relu_on_integers_knows_no_zero_point():
    model = ModelBuilder("qoperator", seed=1, zero_point=-20)
    network = assert_exact(model.finish(model.relu(model.conv(model.input((1, 3, 8, 8)), 8))))
    assert network.layers[0].requantisation.low == 0


@pytest.mark.parametrize(("dtype", "zero_point"), QUANTISATIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("conv_first", [True, False])
def test_residual_in_either_order(conv_first, form, dtype, zero_point):
    model = ModelBuilder(form, seed=3, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 4, 10, 10)), 16, pads=(1, 1, 1, 1))
    y = model.conv(x, 16, pads=(1, 1, 1, 1))
    z = model.add(y, x) if conv_first else model.add(x, y)
    if form == "qdq":
        z = model.relu(z)
    network = assert_exact(model.finish(z))
    assert network.layers[-1].residual is not None
    # The operands change places only where that changes nothing; where it does, the addition stands alone.
    assert len(network.layers) in ((2,) if conv_first else (2, 3))


@pytest.mark.parametrize("form", FORMS)
def test_residual_of_an_operand_computed_later(form):
    """The convolution that comes first takes the addition, and so moves behind the other."""
    model = ModelBuilder(form, seed=4, zero_point=None)
    x = model.input((1, 4, 8, 8))
    first = model.conv(x, 8, kernel=1)
    later = model.conv(x, 8, kernel=3, pads=(1, 1, 1, 1))
    last = model.conv(later, 4, kernel=1)
    network = assert_exact(model.finish(model.add(first, later), last))
    fused = next(layer for layer in network.layers if layer.residual is not None)
    assert fused.residual.tensor == later.name
    assert fused.kernel == (1, 1)


@pytest.mark.parametrize("form", FORMS)
def test_operators_on_their_own(form):
    """Inputs of the model go straight into an addition, a max pooling and a sum with itself."""
    model = ModelBuilder(form, seed=6, zero_point=5)
    a, b = model.input((1, 3, 8, 8)), model.input((1, 3, 8, 8))
    pooled = model.max_pool(model.add(a, b), 3, strides=(2, 2), pads=(1, 1, 1, 1))
    network = assert_exact(model.finish(pooled, model.add(a, a), model.max_pool(b, 2)))
    assert [layer.kind for layer in network.layers] == ["pass"] * 4
    assert network.macs == 0


@pytest.mark.parametrize(("dtype", "zero_point"), QUANTISATIONS)
@pytest.mark.parametrize("form", FORMS)
def test_global_average_and_dense(form, dtype, zero_point):
    model = ModelBuilder(form, seed=7, dtype=dtype, zero_point=zero_point)
    x = model.average(model.conv(model.input((1, 3, 9, 7)), 16))
    y = model.gemm(model.flatten(x), 10)
    network = assert_exact(model.finish(y))
    assert [layer.kind for layer in network.layers] == ["conv", "average", "conv"]


@pytest.mark.parametrize(("dtype", "zero_point"), QUANTISATIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [2, 4])
def test_average_with_exact_scales(kernel, form, dtype, zero_point):
    """Scales that are powers of two leave float32 nothing to round: every sum is taken, ties included."""
    model = ModelBuilder(form, seed=8, dtype=dtype, zero_point=zero_point)
    x = model.input((1, 5, 8, 8))
    x = type(x)(x.name, x.shape, np.float32(2.0**-5), x.zero_point)
    model.nodes[0].input[1] = model.constant(x.scale)
    y = model.average(x, kernel, scale=2.0**-5, strides=(2, 2))
    # ONNX Runtime rounds after the zero point, so that of an odd one halves go the other way.
    assert assert_exact(model.finish(y), samples=10).layers[-1].exact


def test_averages_are_exact_only_where_float_additions_cannot_show():
    """With any scales: those called exact are, the rest is one level off at most, and both happen."""
    exact = 0
    for seed in range(30):
        model = ModelBuilder("qdq", seed=seed, zero_point=None)
        x = model.conv(model.input((1, 3, 9, 9)), 6)
        y = model.average(x, 2 + seed % 2, scale=x.scale * model.rng.uniform(0.5, 0.7))
        content = model.finish(y)
        exact += all(layer.exact for layer in assert_layers(content, samples=2).layers)
    assert 10 < exact < 30


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("axis", "per_channel"), [("transposed", True), ("plain", True), ("plain", False)])
def test_gemm_on_a_flattened_image(axis, per_channel, form):
    model = ModelBuilder(form, seed=9, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 8)), 6)
    y = model.gemm(model.flatten(x), 12, per_channel=per_channel, transposed=axis == "transposed")
    z = model.gemm(y, 5, alpha=0.75, bias="none")
    network = assert_exact(model.finish(z))
    assert [layer.kernel for layer in network.layers] == [(3, 3), (6, 6), (1, 1)]


@pytest.mark.parametrize("form", FORMS)
def test_matmul_and_a_model_of_vectors(form):
    model = ModelBuilder(form, seed=10)
    assert_exact(model.finish(model.matmul(model.gemm(model.input((1, 40)), 30), 9)))


@pytest.mark.parametrize("form", FORMS)
def test_reshapes_at_the_border(form):
    model = ModelBuilder(form, seed=11)
    x = model.reshape(model.input((1, 48)), (1, 3, 4, 4))
    y = model.conv(x, 4, kernel=3)
    network = assert_exact(model.finish(model.reshape(y, (1, 16))))
    assert network.inputs[0].onnx_shape == (1, 48)
    assert network.inputs[0].shape == (3, 4, 4)
    assert network.outputs[0].onnx_shape == (1, 16)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integer_inputs_and_outputs(dtype):
    model = ModelBuilder("qoperator", seed=12, dtype=dtype, zero_point=None)
    y = model.conv(model.input((1, 3, 6, 6), integer=True), 4)
    model.output(y, integer=True)
    network = assert_exact(model.finish())
    assert network.inputs[0].onnx_dtype == network.outputs[0].onnx_dtype == np.dtype(dtype).name


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_models(name):
    assert_exact(builtin(name), samples=20)


INT8 = st.integers(-128, 127)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.tuples(INT8, INT8, INT8), st.booleans(), st.lists(st.floats(2.0**-7, 4, width=32), min_size=2, max_size=2),
       st.integers(0, 2**32 - 1))
def test_residual_table_is_the_datapaths_addition(zeros, unsigned, scales, seed):
    residual = Residual(tensor="r", scale_a=np.float32(scales[0]), scale_b=np.float32(scales[1]), zero_a=zeros[0],
                        zero_b=zeros[1], zero_out=zeros[2], low=-100, unsigned=unsigned)
    table = residual_table(residual)
    shift = 128 if unsigned else 0
    (mantissa_a, shift_a), (mantissa_b, shift_b) = map(numerics.pack_scale, scales)
    config = {"mantissa_a": mantissa_a, "shift_a": shift_a, "mantissa_b": mantissa_b, "shift_b": shift_b}
    offset = numerics.residual_offset(**config, **dict(zip(
        ("zero_a", "zero_b", "zero_out"), (zero + shift for zero in zeros), strict=True)))
    config |= dict(zip(("offset_negative", "offset_mantissa", "offset_shift"), offset, strict=True))
    expected = numerics.ResidualSettings(**config, unsigned=unsigned, low=-100, high=127)
    assert residual.settings == expected
    for a, b in np.random.default_rng(seed).integers(-128, 128, (100, 2)).tolist():
        assert table[a + 128, b + 128] == numerics.add_residual(a, b, expected)


def test_requantisation_is_the_datapaths():
    model = ModelBuilder("qoperator", seed=13, zero_point=-7)
    layer = compile_network(model.finish(model.conv(model.input((1, 3, 6, 6)), 4))).layers[0]
    acc = np.random.default_rng(0).integers(-2**31, 2**31, (4, 50, 50)).astype(np.int32) >> np.arange(50)[:, None] % 24
    result = requantise(layer.requantisation, acc)
    for channel, scale in enumerate(layer.requantisation.scale):
        mantissa, shift = numerics.pack_scale(float(scale))
        config = {"bias": 0, "mantissa": mantissa, "shift": shift, "zero_point": -7, "low": -128, "high": 127}
        expected = [numerics.requantise(value, **config) for value in acc[channel].ravel().tolist()]
        assert result[channel].ravel().tolist() == expected


def test_inputs_and_residuals_must_be_given():
    model = ModelBuilder("qdq")
    x = model.input((1, 2, 4, 4))
    network = compile_network(model.finish(model.add(model.conv(x, 2, pads=(1, 1, 1, 1)), x)))
    with pytest.raises(ValueError, match=rf"'{x.name}' .*not nothing$"):
        run_network(network, {})
    with pytest.raises(ValueError, match=rf"'{x.name}' .*not int16 \(2,\)$"):
        run_network(network, {x.name: np.zeros(2, np.int16)})
    with pytest.raises(ValueError, match=rf"'Conv.' .*'{x.name}'"):
        run_layer(network.layers[0], np.zeros((2, 4, 4), np.int8))
