"""Max pooling of bytes side by side: its C gives NumPy's bits by words and by bytes, in cycles that its shape tells."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz.designs import try_network
from tests.support.core_kernels import call_of, compute, onnx_runtime, run_c
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.machine import preset

RNG = np.random.default_rng(5)
WINDOWS = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 2], "pads": [2, 0, 1, 1]},
    {"kernel_shape": [1, 4], "strides": [3, 1], "pads": [0, 3, 0, 2]},
    {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 2], "dilations": [2, 1]},
    {"kernel_shape": [7, 7]},
    {"kernel_shape": [1, 1], "strides": [2, 1]},
    {"kernel_shape": [1, 9], "strides": [1, 8], "pads": [0, 8, 0, 8]},
]


def case(array, attrs):
    """Return the call and the arrays of a pooling that NumPy computes as ONNX Runtime does."""
    wanted = onnx_runtime("MaxPool", [array], attrs)
    call = call_of("MaxPool", [array], wanted.shape, str(array.dtype), attrs, channels_last=True)
    np.testing.assert_array_equal(compute(call, [array]), wanted)
    return call, [array]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_window_and_number_of_channels_gives_numpys_bits(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    cases = [case(RNG.integers(low, high, (batch, channels, 7, 9), dtype, endpoint=True), attrs)
             for attrs in WINDOWS for batch, channels in ((1, 1), (2, 4), (1, 6), (1, 20))]
    calls = [call for call, _ in cases]
    assert {name for call in calls for name in KERNELS["MaxPool"].helpers(call)} == {
        "tw_greatest", f"tw_greatest_{dtype}x4"}
    for call in calls:
        body = "\n".join(KERNELS["MaxPool"].c_body(call, "pool"))
        assert [name for name in ("tw_greatest(", f"tw_greatest_{dtype}x4(") if name in body] == [
            f"{name}(" for name in KERNELS["MaxPool"].helpers(call)]
    for (call, arrays), result in zip(cases, run_c(calls, [arrays for _, arrays in cases]), strict=True):
        np.testing.assert_array_equal(result, compute(call, arrays), err_msg=str(call.attrs))


@pytest.mark.parametrize("channels", [1, 4])
def test_a_window_of_one_tap_compares_nothing(channels):
    call, arrays = case(RNG.integers(-128, 128, (1, channels, 4, 5)).astype(np.int8), {"kernel_shape": [1, 1]})
    assert KERNELS["MaxPool"].helpers(call) == ()
    np.testing.assert_array_equal(run_c([call], [arrays])[0], arrays[0])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [1, 4])
def test_the_greater_of_every_pair_of_bytes_is_found(dtype, channels):
    pairs = np.stack(np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2), -1).reshape(-1, 1, channels, 2)
    image = np.moveaxis(pairs, 2, 1).reshape(-1, channels, 1, 2).view(dtype)
    call, arrays = case(image, {"kernel_shape": [1, 2]})
    np.testing.assert_array_equal(run_c([call], [arrays])[0][:, :, 0, 0], image.max(axis=3)[:, :, 0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lenet5_accel", "pooling"])
def test_networks_without_the_unit_take_the_predicted_cycles(name):
    trial = try_network(name, replace(preset("nano"), max_pooling=False))
    predicted, measured = trial.on_core
    assert not trial.faults
    assert measured > 20_000
    assert abs(trial.error) <= 0.02, trial
    assert abs(predicted / measured - 1) <= 0.03, trial
