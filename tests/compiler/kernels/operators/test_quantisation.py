"""QuantizeLinear and DequantizeLinear are ONNX Runtime's bit for bit, and their C is their NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute, onnx_runtime


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
        np.testing.assert_array_equal(compute(call_of("QuantizeLinear", arrays, (5, 77), dtype), arrays),
                                      onnx_runtime("QuantizeLinear", arrays))
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
