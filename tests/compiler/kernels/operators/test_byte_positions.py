"""ArgMax and ArgMin of bytes side by side: the C gives ONNX Runtime's positions by words and by bytes."""

import numpy as np
import pytest

from tests.support.core_kernels import call_of, compute, onnx_runtime, run_c
from tilewright.compiler.kernels.operators.byte_positions import bytes_side_by_side
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.machine import MemoryTiming

RNG = np.random.default_rng(9)


def case(op, array, attrs, *, channels_last=True):
    """Return the call and the array of a position that NumPy computes as ONNX Runtime does."""
    wanted = onnx_runtime(op, [array], attrs)
    call = call_of(op, [array], wanted.shape, "int64", attrs, channels_last=channels_last)
    np.testing.assert_array_equal(compute(call, [array]), wanted)
    return call, [array]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_every_length_of_a_row_gives_onnx_runtimes_position(op, dtype):
    bounds = np.iinfo(dtype)
    cases = []
    for last in (0, 1):
        attrs = {"axis": 1, "select_last_index": last}
        for channels in (1, 3, 4, 8, 15, 16, 20, 37):
            for low, high in ((bounds.min, bounds.max), (bounds.max - 1, bounds.max), (bounds.min, bounds.min)):
                images = RNG.integers(low, high, (1, channels, 3, 5), dtype, endpoint=True)
                cases.append(case(op, images, attrs))
                cases.append(case(op, images[:, :, 0, 0], attrs))
    assert all(bytes_side_by_side(call, 1) for call, _ in cases)
    results = run_c([call for call, _ in cases], [arrays for _, arrays in cases])
    for (call, arrays), result in zip(cases, results, strict=True):
        np.testing.assert_array_equal(result, compute(call, arrays), err_msg=str(call))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_pair_of_bytes_is_compared(dtype):
    pairs = np.stack(np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2), -1).reshape(-1, 2)
    for place in ((0, 1), (2, 7)):
        rows = np.tile(pairs.min(axis=1, keepdims=True), (1, 8))
        rows[:, place] = pairs
        cases = [case(op, rows.view(dtype), {"axis": 1}) for op in ("ArgMax", "ArgMin")]
        for (call, arrays), result in zip(cases, run_c([call for call, _ in cases], [[rows.view(dtype)]] * 2),
                                          strict=True):
            np.testing.assert_array_equal(result, compute(call, arrays))


def test_what_does_not_lie_side_by_side_takes_the_other_loop():
    call, arrays = case("ArgMax", RNG.integers(-9, 9, (1, 6, 3, 4)).astype(np.int8), {"axis": 1}, channels_last=False)
    assert not bytes_side_by_side(call, 1)
    np.testing.assert_array_equal(run_c([call], [arrays])[0], compute(call, arrays))


def test_an_element_of_a_word_takes_less_than_six_cycles():
    call, _ = case("ArgMax", RNG.integers(-128, 127, (1, 1000)).astype(np.int8), {"axis": 1})
    assert KERNELS["ArgMax"].cycles(call, MemoryTiming(latency_cycles=20)) < 6 * 1000
