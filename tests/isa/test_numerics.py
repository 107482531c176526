"""Is the integer arithmetic that of float32, and of ONNX Runtime?"""

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa import numerics
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

INT32_CORNERS = (-(2**31), -(2**31) + 1, -(2**24) - 1, -1, 0, 1, 2**24 - 1, 2**24 + 1, 2**25 + 2, 2**31 - 1)
SEEDED = settings(derandomize=True, deadline=None)
INT8 = st.integers(-128, 127)
INT32 = st.integers(-(2**31), 2**31 - 1)
MANTISSA = st.one_of(st.just(2**23), st.just(2**24 - 1), st.integers(2**23, 2**24 - 1))
SHIFT = st.one_of(st.integers(16, 56), st.integers(0, 127))


def scale_of(mantissa: int, shift: int) -> np.float32:
    return np.ldexp(np.float32(mantissa), -shift)


def saturate(value: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """Round float32 values half to even and clamp; far values are cut first, so that int64 holds them."""
    return np.clip(np.rint(np.clip(value, -1e6, 1e6)).astype(np.int64) + zero_point, low, high)


def requantize_float32(acc, bias, scale, zero_point, low, high):
    total = (np.asarray(acc, np.int64) + bias).astype(np.int32)
    return saturate(total.astype(np.float32) * scale, zero_point, low, high)


def check_requantise(accs, biases, scales, zero_point=0, low=-128, high=127):
    """Compare one output per element with NumPy's float32."""
    expected = requantize_float32(accs, biases, scales, zero_point, low, high)
    for acc, bias, scale, want in zip(
        np.asarray(accs).tolist(), np.asarray(biases).tolist(), scales, expected.tolist(), strict=True
    ):
        mantissa, shift = numerics.pack_scale(scale)
        got = numerics.requantise(
            acc, bias=bias, mantissa=mantissa, shift=shift, zero_point=zero_point, low=low, high=high
        )
        assert got == want, (acc, bias, scale, zero_point)


@pytest.mark.parametrize(
    ("scale", "packed"),
    [
        (1.0, (2**23, 23)),
        (2.0**-104, (2**23, 127)),
        (2.0**24 - 1, (2**24 - 1, 0)),
        (np.float32(0.1), (13421773, 27)),
    ],
)
def test_scale_is_packed_exactly(scale, packed):
    assert numerics.pack_scale(scale) == packed
    assert packed[0] * 2.0 ** -packed[1] == scale


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), float("-inf")])
def test_scale_must_be_positive_and_finite(scale):
    message = f"Scale must be positive and finite, not {scale!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numerics.pack_scale(scale)


@pytest.mark.parametrize("scale", [2.0**-105, 2.0**24, 2.0**-149])
def test_scale_must_be_in_range(scale):
    message = f"Scale must be in 2**-104 .. 2**24 - 1, not {scale!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numerics.pack_scale(scale)


def test_scale_must_be_a_float32():
    message = "Scale must be a float32 value, not 0.1; round it to float32 first"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numerics.pack_scale(0.1)


@pytest.mark.parametrize(("value", "bits", "wrapped"), [(128, 8, -128), (-129, 8, 127), (2**31, 32, -2**31)])
def test_wrap_is_twos_complement(value, bits, wrapped):
    assert numerics.wrap(value, bits) == wrapped


@SEEDED
@given(INT32, st.integers(0, 40))
def test_round_shift_is_half_to_even(value, shift):
    assert numerics.round_shift(value, shift) == round(value / 2**shift)


@SEEDED
@given(st.integers(-(2**60), 2**60))
def test_round_float32_is_numpys(value):
    assert numerics.round_float32(value) == int(np.array(value, np.int64).astype(np.float32))


@SEEDED
@given(INT32, INT32, MANTISSA, SHIFT, INT8, INT8, INT8)
def test_requantize_is_float32(acc, bias, mantissa, shift, zero_point, bound, other):
    low, high = sorted((bound, other))
    scales = np.array([scale_of(mantissa, shift)])
    check_requantise([acc], np.array([bias]), scales, zero_point, low, high)


@pytest.mark.parametrize("zero_point", [0, 13, -128, 127])
def test_requantise_on_corners(zero_point):
    """Every pair of 32-bit corners (the sum wraps), with powers of two and both ends of the mantissa."""
    shifts = (0, 23, 31, 40, 47, 54, 127)
    scales = [scale_of(mantissa, shift) for mantissa in (2**23, 2**24 - 1) for shift in shifts]
    cases = list(itertools.product(INT32_CORNERS, INT32_CORNERS, scales))
    accs, biases, scales = zip(*cases, strict=True)
    check_requantise(np.array(accs), np.array(biases), np.array(scales, np.float32), zero_point)


def test_requantise_rounds_exact_ties_to_even():
    rng = np.random.default_rng(1)
    k = rng.integers(1, 22, 2000)
    accs = (2 * rng.integers(-300, 300, 2000) + 1) << (k - 1)
    scales = np.exp2(-k).astype(np.float32)
    assert np.all(np.abs(np.modf(accs * np.exp2(-k))[0]) == 0.5)
    check_requantise(accs, np.zeros(2000, np.int64), scales)


def test_requantise_rounds_the_accumulator_first():
    """Above 2**24 the conversion to float32 is itself inexact."""
    rng = np.random.default_rng(2)
    accs = rng.integers(2**24, 2**31, 3000) | 1
    accs *= rng.choice([-1, 1], 3000)
    scales = (rng.uniform(0.5, 255, 3000) / np.abs(accs)).astype(np.float32)
    assert np.mean(accs.astype(np.float32).astype(np.int64) != accs) > 0.9
    check_requantise(accs, np.zeros(3000, np.int64), scales, zero_point=-5)


def fma(x, y, addend):
    """Fused multiply-add of float32 values, for cases in which float64 is exact."""
    return (np.float64(x) * np.float64(y) + np.float64(addend)).astype(np.float32)


def configure(scale_a, scale_b, zeros, unsigned=False, low=-128, high=127):
    """Return the settings of add_residual; ``zeros`` of a, b and the output are the model's."""
    scales = dict(zip(("mantissa_a", "shift_a"), numerics.pack_scale(scale_a), strict=True))
    scales |= zip(("mantissa_b", "shift_b"), numerics.pack_scale(scale_b), strict=True)
    zeros = dict(zip(("zero_a", "zero_b", "zero_out"), zeros, strict=True))
    offset = numerics.residual_offset(**scales, **zeros)
    names = ("offset_negative", "offset_mantissa", "offset_shift")
    bounds = {"unsigned": unsigned, "low": low, "high": high}
    return numerics.ResidualSettings(**scales, **dict(zip(names, offset, strict=True)), **bounds)


def add_all(a, b, config):
    pairs = zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True)
    return [numerics.add_residual(x, y, config) for x, y in pairs]


@SEEDED
@given(INT8, INT8, MANTISSA, SHIFT, MANTISSA, st.integers(-10, 10), MANTISSA, st.integers(-10, 10), st.booleans())
def test_multiply_adds_are_float32(a, b, mantissa_a, shift_a, mantissa_b, distance, mantissa, place, negative):
    """Exponents are drawn near each other, so that sums carry, cancel and lose bits, and float64 is exact."""
    shift_b = numerics.clamp(shift_a + distance, 0, 127)
    shift = numerics.clamp(shift_b + place, 0, 127)
    offset = scale_of(mantissa, shift) * (-1 if negative else 1)
    partial = fma(b, scale_of(mantissa_b, shift_b), offset)
    total = fma(a, scale_of(mantissa_a, shift_a), partial)
    config = numerics.ResidualSettings(
        mantissa_a=mantissa_a, shift_a=shift_a, mantissa_b=mantissa_b, shift_b=shift_b, offset_mantissa=mantissa,
        offset_shift=shift, offset_negative=negative, unsigned=False, low=-128, high=127)
    got = numerics.add_residual(a, b, config)
    assert got == saturate(total, 0, -128, 127)


@SEEDED
@given(MANTISSA, SHIFT, MANTISSA, st.integers(-10, 10), INT8, INT8, INT8)
def test_residual_offset_is_float32(mantissa_a, shift_a, mantissa_b, distance, zero_a, zero_b, zero_out):
    shift_a = max(shift_a, 10)
    shift_b = numerics.clamp(shift_a + distance, 10, 127)
    scale_a, scale_b = scale_of(mantissa_a, shift_a), scale_of(mantissa_b, shift_b)
    expected = np.float32(zero_out) - fma(zero_a, scale_a, np.float32(zero_b) * scale_b)
    assume(expected == 0 or 2.0**-104 <= abs(expected) < 2.0**24)
    negative, mantissa, shift = numerics.residual_offset(
        mantissa_a=mantissa_a, shift_a=shift_a, mantissa_b=mantissa_b, shift_b=shift_b,
        zero_a=zero_a, zero_b=zero_b, zero_out=zero_out,
    )  # fmt: skip
    assert scale_of(mantissa, shift) * (-1 if negative else 1) == expected


def test_residual_offset_must_be_in_range():
    message = "Offset of a residual add must be 0 or of magnitude 2**-104 .. 2**24 - 1, not -16777216 * 2**-0"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        configure(2.0**23, 2.0**23, (1, 1, 0))


def test_residual_add_keeps_its_bounds():
    config = configure(1.0, 1.0, (0, 0, 0), low=-5, high=9)
    assert add_all([-3, 4, -128, 127], [-3, 4, -128, 127], config) == [-5, 8, -5, 9]


def session(op_type, domain, inputs, initializers, order):
    """Return an ONNX Runtime session of one operator; ``inputs`` maps names to arrays."""
    dtype = TensorProto.UINT8 if next(iter(inputs.values())).dtype == np.uint8 else TensorProto.INT8
    node = helper.make_node(op_type, order, ["y"], domain=domain)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(name, dtype, value.shape) for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", dtype, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in initializers.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return onnx_session(model.SerializeToString())


@pytest.mark.parametrize(("x_zero", "y_zero"), [(0, 0), (-128, -128), (7, -3), (127, 100)])
def test_requantise_is_onnx_runtimes_qlinearconv(x_zero, y_zero):
    """A 1×1 convolution with a scale and a bias per output channel; half of the scales give exact ties."""
    rng = np.random.default_rng(abs(x_zero) + 1)
    channels, filters, size = 32, 24, 8
    x = rng.integers(-128, 128, (1, channels, size, size)).astype(np.int8)
    w = rng.integers(-127, 128, (filters, channels, 1, 1)).astype(np.int8)
    bias = rng.integers(-20000, 20000, filters).astype(np.int32)
    x_scale, y_scale = np.float32(0.5), np.float32(2)
    w_scale = np.where(np.arange(filters) % 2, np.exp2(-9), rng.uniform(1e-3, 5e-3, filters))
    w_scale = w_scale.astype(np.float32)
    values = {
        "xs": x_scale, "xz": np.int8(x_zero), "w": w, "ws": w_scale, "wz": np.zeros(filters, np.int8),
        "ys": y_scale, "yz": np.int8(y_zero), "bias": bias,
    }  # fmt: skip
    conv = session(
        "QLinearConv", "", {"x": x}, values,
        order=["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias"],
    )  # fmt: skip
    y = conv.run(None, {"x": x})[0][0]  # (filters, size, size)
    acc = np.einsum("chw,kc->khw", x[0].astype(np.int64) - x_zero, w[:, :, 0, 0].astype(np.int64))
    for k in range(filters):
        mantissa, shift = numerics.pack_scale(x_scale * w_scale[k] / y_scale)
        got = [
            numerics.requantise(
                value, bias=int(bias[k]), mantissa=mantissa, shift=shift,
                zero_point=y_zero, low=-128, high=127,
            )
            for value in acc[k].ravel().tolist()
        ]  # fmt: skip
        assert got == y[k].ravel().tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zeros", [(0, 0, 0), (-128, 127, 5), (3, -77, -128), (127, 127, 127)])
@pytest.mark.parametrize(
    "scales",
    [
        (1.0, 1.0, 2.0),  # every odd sum is a tie
        (0.25, 0.5, 1.0),
        (0.003, 0.007, 0.028),  # ties but for the rounding of the scales
        (0.019, 0.011, 0.022),
        (0.0313, 0.0271, 0.0489),
        (0.011, 0.043, 0.02),
    ],
)
def test_residual_add_is_onnx_runtimes_qlinearadd(scales, zeros, dtype):
    """All sums of two axes, every third value; the length leaves a remainder for vector units."""
    unsigned = dtype is np.uint8
    bias = 128 if unsigned else 0
    zeros = [zero + bias for zero in zeros]
    axis = np.arange(-128, 128, 3)
    a, b = (grid.ravel() for grid in np.meshgrid(axis, axis))
    scale_a, scale_b, scale_y = (np.float32(scale) for scale in scales)
    values = {
        "sa": scale_a, "za": dtype(zeros[0]), "sb": scale_b, "zb": dtype(zeros[1]),
        "sy": scale_y, "zy": dtype(zeros[2]),
    }  # fmt: skip
    inputs = {"a": (a + bias).astype(dtype), "b": (b + bias).astype(dtype)}
    add = session(
        "QLinearAdd", "com.microsoft", inputs, values,
        order=["a", "sa", "za", "b", "sb", "zb", "sy", "zy"],
    )  # fmt: skip
    expected = add.run(None, inputs)[0].astype(int) - bias
    config = configure(scale_a / scale_y, scale_b / scale_y, zeros, unsigned)
    assert add_all(a, b, config) == expected.tolist()


def correlate(patch: np.ndarray, kernel: np.ndarray) -> numerics.Matrix:
    windows = np.lib.stride_tricks.sliding_window_view(patch, (3, 3))
    return tuple(map(tuple, np.einsum("ijab,ab->ij", windows, kernel).tolist()))


def test_winograd_is_exact_on_a_basis():
    """Both sides are bilinear, so equality on all pairs of unit matrices proves it for all integers."""
    for i, j in itertools.product(range(16), range(9)):
        patch = np.eye(16, dtype=int)[i].reshape(4, 4)
        kernel = np.eye(9, dtype=int)[j].reshape(3, 3)
        assert numerics.conv23_tile(patch.tolist(), kernel.tolist()) == correlate(patch, kernel)


def test_winograd_widths_hold_at_the_extremes():
    rng = np.random.default_rng(3)
    for _ in range(200):
        patch, kernel = rng.choice([-128, 127], (4, 4)), rng.choice([-128, 127], (3, 3))
        data, weights = numerics.transform_input(patch.tolist()), numerics.transform_weight(kernel.tolist())
        assert all(numerics.wrap(value, 10) == value for row in data for value in row)
        assert all(numerics.wrap(value, 12) == value for row in weights for value in row)
        products = np.array(data) * np.array(weights)
        assert np.abs(products).max() < 1 << 20
        assert numerics.inverse_transform(products.tolist()) == correlate(patch, kernel)


def test_inverse_transform_refuses_what_is_no_product():
    product = [[1, 0, 0, 0], [0] * 4, [0] * 4, [0] * 4]
    message = "Inverse transform must be a multiple of 4 everywhere, not ((1, 0), (0, 0))"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        numerics.inverse_transform(product)
