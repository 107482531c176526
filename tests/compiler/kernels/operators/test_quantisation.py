"""QuantizeLinear and DequantizeLinear are ONNX Runtime's bit for bit, and their C is their NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute, onnx_runtime, run_c, same_bits
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.kernels.staging import call_cycles
from tilewright.isa.machine import MemoryTiming


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_quantisation_is_onnx_runtimes(dtype):
    rng = np.random.default_rng(21)
    cases = []
    for zero in (0, 3, np.iinfo(dtype).max):
        # Quotients at and near halves, beyond the bounds, infinite.
        scale = np.array(rng.choice([0.5, 0.037, 1.0]), np.float32)
        ties = (np.arange(-40, 40) + 0.5) * scale
        x = np.concatenate([ties, rng.standard_normal(300) * 50 * scale, [1e30, -1e30, np.inf, -np.inf, -0.0]])
        arrays = [x.astype(np.float32).reshape(5, 77), scale, np.array(zero, dtype)]
        for known in (True, False):
            call = call_of("QuantizeLinear", arrays, (5, 77), dtype, known=known)
            np.testing.assert_array_equal(compute(call, arrays), onnx_runtime("QuantizeLinear", arrays))
        q = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (1, 5, 7, 11), dtype, endpoint=True)
        back = [q, *arrays[1:]]
        np.testing.assert_array_equal(compute(call_of("DequantizeLinear", back, q.shape, "float32"), back),
                                      onnx_runtime("DequantizeLinear", back))
        cases.append(("DequantizeLinear", back, q.shape, "float32", {}))
        cases.append(("QuantizeLinear", arrays, (5, 77), dtype, {}))
    for axis in (1, -2, 3):
        x = rng.standard_normal((1, 6, 5, 7)).astype(np.float32) * 10
        scales = rng.uniform(0.01, 0.2, x.shape[axis]).astype(np.float32)
        zeros = rng.integers(0, 9, x.shape[axis]).astype(dtype)
        attrs = {"axis": axis}
        q = onnx_runtime("QuantizeLinear", [x, scales, zeros], attrs)
        call = call_of("QuantizeLinear", [x, scales, zeros], q.shape, dtype, attrs)
        np.testing.assert_array_equal(compute(call, [x, scales, zeros]), q)
        arrays = [q, scales, zeros]
        wanted = onnx_runtime("DequantizeLinear", arrays, attrs)
        call = call_of("DequantizeLinear", arrays, q.shape, "float32", attrs)
        np.testing.assert_array_equal(compute(call, arrays), wanted)
        cases += [("QuantizeLinear", [x, scales, zeros], q.shape, dtype, attrs),
                  ("DequantizeLinear", arrays, q.shape, "float32", attrs)]
    check_c(cases)


def test_dequantisation_of_int32_and_without_a_zero_point():
    rng = np.random.default_rng(22)
    x = rng.integers(-2**31, 2**31, (4, 50)).astype(np.int32)
    arrays = [x, np.array(0.013, np.float32)]
    np.testing.assert_array_equal(compute(call_of("DequantizeLinear", arrays, x.shape, "float32"), arrays),
                                  onnx_runtime("DequantizeLinear", arrays))
    floats = [x.astype(np.float32), np.array([3e6], np.float32)]
    np.testing.assert_array_equal(compute(call_of("QuantizeLinear", floats, x.shape, "uint8"), floats),
                                  onnx_runtime("QuantizeLinear", floats))
    signed = call_of("QuantizeLinear", floats, x.shape, "int8", {"output_dtype": 3})
    np.testing.assert_array_equal(compute(signed, floats), onnx_runtime("QuantizeLinear", floats, {"output_dtype": 3}))
    check_c([("DequantizeLinear", arrays, x.shape, "float32", {}), ("QuantizeLinear", floats, x.shape, "uint8", {})])


def test_a_float_is_quantised_in_integers_where_its_scale_is_known():
    x = np.zeros((2, 3), np.float32)
    for scale, quick in ((0.1, True), (2.0**-100, True), (1e38, False), (-0.5, False), (0.0, False), (np.nan, False)):
        arrays = [x, np.array(scale, np.float32), np.array(1, np.int8)]
        call = call_of("QuantizeLinear", arrays, x.shape, "int8")
        assert (KERNELS["QuantizeLinear"].cycles(call, MemoryTiming(latency_cycles=1)) < 6 * 60) == quick


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scale", [0.037, 1.5, 2.0**-110, 0.0, np.nan])
def test_c_quantises_by_a_scale_of_run_time(dtype, scale):
    rng = np.random.default_rng(5)
    ties = (np.arange(-300, 300) + 0.5) * np.float32(scale)
    x = np.concatenate([ties, np.nextafter(ties, 1), rng.standard_normal(194) * 90 * np.float32(scale),
                        [np.inf, -np.inf, np.nan, 0, -0.0, 1e-42]])
    arrays = [x.astype(np.float32).reshape(14, 100), np.array(scale, np.float32), np.array(7, dtype)]
    call = call_of("QuantizeLinear", arrays, (14, 100), dtype, known=False)
    with np.errstate(all="ignore"):
        expected = compute(call, arrays)
    (found,) = run_c([call], [arrays])
    assert same_bits(found, expected)


def test_a_scale_of_run_time_costs_one_division_and_no_more():
    cycles = {}
    for count in (100, 200):
        arrays = [np.zeros((1, count), np.float32), np.array(0.1, np.float32), np.array(1, np.uint8)]
        call = call_of("QuantizeLinear", arrays, (1, count), "uint8", known=False)
        cycles[count] = KERNELS["QuantizeLinear"].cycles(call, MemoryTiming(latency_cycles=1))
    assert cycles[200] - cycles[100] < 100 * 60
    assert 200 < 2 * cycles[100] - cycles[200] < 600


def test_dequantising_a_tensor_as_it_lies_takes_a_few_cycles_an_element():
    arrays = [np.zeros((1, 8, 6, 5), np.int8), np.array(0.1, np.float32), np.array(1, np.int8)]
    call = call_of("DequantizeLinear", arrays, arrays[0].shape, "float32", channels_last=True)
    assert call_cycles(call, MemoryTiming(latency_cycles=20)) <= 19 * 240
