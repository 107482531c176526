"""Convolution, pooling, matrix products and normalisation: NumPy as ONNX Runtime, C as NumPy bit for bit."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import ABSENT, call_of, compute, onnx_runtime
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.program import Call, Operand

RNG = np.random.default_rng(41)


def normal(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


def bytes_(*dims, dtype="int8"):
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max, dims, dtype, endpoint=True)


def check(op, arrays, attrs=None, *, opset=21):
    """Compare with ONNX Runtime and return the case for C."""
    wanted = onnx_runtime(op, arrays, attrs, opset=opset)
    result = compute(call_of(op, arrays, wanted.shape, str(wanted.dtype), attrs), arrays)
    if KERNELS[op].exactness == "exact":
        np.testing.assert_array_equal(result, wanted)
    else:
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
    return op, arrays, wanted.shape, str(wanted.dtype), attrs or {}


WINDOWS = [
    {}, {"pads": [1, 1, 1, 1]}, {"strides": [2, 2], "pads": [0, 1, 2, 0]}, {"dilations": [2, 1], "pads": [2, 0, 2, 0]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"auto_pad": "SAME_LOWER", "strides": [2, 3]}, {"auto_pad": "VALID"},
]


@pytest.mark.parametrize("kernel", [(3, 3), (1, 1), (2, 4)])
def test_convolutions_are_onnx_runtimes(kernel):
    cases = []
    for attrs in WINDOWS:
        if kernel != (1, 1) or "dilations" not in attrs:
            cases.append(check("Conv", [normal(1, 4, 9, 8), normal(6, 4, *kernel), normal(6)], attrs))
    cases += [check("Conv", [normal(2, 6, 7, 7), normal(6, 1, *kernel)], {"group": 6, "kernel_shape": kernel}),
              check("Conv", [normal(1, 6, 7, 7), normal(4, 3, *kernel), normal(4)], {"group": 2})]
    check_c(cases)


def test_convolutions_of_other_ranks_are_onnx_runtimes():
    check_c([check("Conv", [normal(1, 3, 20), normal(5, 3, 4), normal(5)], {"strides": [3], "pads": [2, 1]}),
             check("Conv", [normal(1, 2, 5, 6, 7), normal(3, 2, 2, 3, 3)], {"pads": [0, 1, 1, 1, 1, 0]}),
             check("Conv", [normal(1, 8, 5, 5), normal(10, 8, 5, 5), normal(10)])])


@pytest.mark.parametrize("kernel", [(3, 3), (2, 2), (4, 1)])
def test_transposed_convolutions_are_onnx_runtimes(kernel):
    cases = []
    for attrs in ({}, {"strides": [2, 2]}, {"strides": [2, 2], "pads": [1, 0, 0, 0]}, {"dilations": [2, 2]},
                  {"strides": [2, 3], "output_padding": [1, 2]}, {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
                  {"strides": [3, 3], "output_shape": [13, 10]}):
        cases.append(check("ConvTranspose", [normal(1, 4, 5, 4), normal(4, 3, *kernel), normal(3)], attrs))
    cases.append(check("ConvTranspose", [normal(2, 6, 4, 4), normal(6, 2, *kernel)], {"group": 3, "strides": [2, 2]}))
    check_c(cases)


def test_integer_convolutions_are_onnx_runtimes():
    cases = []
    for dtype in ("uint8", "int8"):
        x, w = bytes_(1, 4, 7, 6, dtype=dtype), bytes_(6, 2, 3, 3, dtype=dtype)
        zeros = [np.array(100, dtype), np.array(7, dtype)]
        if dtype == "uint8":
            cases.append(check("ConvInteger", [x, w, *zeros], {"group": 2, "pads": [1, 1, 1, 1]}))
        cases.append(("ConvInteger", [x, w, *zeros], (1, 6, 5, 4), "int32", {"group": 2}))
    check_c(cases)


@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
def test_quantised_convolutions_are_onnx_runtimes(dtypes):
    kind, weights = dtypes
    cases = []
    for scales in (np.array(0.01, np.float32), RNG.uniform(0.001, 0.02, 6).astype(np.float32)):
        x, w = bytes_(1, 4, 7, 6, dtype=kind), bytes_(6, 4, 3, 3, dtype=weights)
        zeros = np.full(scales.shape, 3 if scales.ndim == 0 and weights == "uint8" else 0, weights)
        arrays = [x, np.array(0.03, np.float32), np.array(9, kind), w, scales, zeros, np.array(0.7, np.float32),
                  np.array(5, kind), RNG.integers(-5000, 5000, 6).astype(np.int32)]
        cases += [check("QLinearConv", arrays, {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
                  check("QLinearConv", arrays[:8])]
    check_c(cases)


def test_quantised_weights_may_have_a_zero_point_per_channel():
    x, w = bytes_(1, 3, 4, 4, dtype="uint8"), bytes_(5, 3, 2, 2, dtype="uint8")
    zeros, scales = bytes_(5, dtype="uint8"), RNG.uniform(0.01, 0.02, 5).astype(np.float32)
    arrays = [x, np.array(0.1, np.float32), np.array(128, "uint8"), w, scales, zeros, np.array(1.5, np.float32),
              np.array(100, "uint8")]
    call = call_of("QLinearConv", arrays, (1, 5, 3, 3), "uint8")
    shifted = [(x.astype(np.float64) - 128), (w - zeros.astype(np.float64).reshape(5, 1, 1, 1))]
    sums = sum(np.einsum("ncyx,oc->noyx", shifted[0][:, :, dy:dy + 3, dx:dx + 3], shifted[1][:, :, dy, dx])
               for dy in range(2) for dx in range(2))
    factor = np.float32(0.1) * scales / np.float32(1.5)
    wanted = np.clip(np.rint(sums.astype(np.float32) * factor.reshape(5, 1, 1)) + 100, 0, 255)
    np.testing.assert_array_equal(compute(call, arrays), wanted)
    check_c([("QLinearConv", arrays, (1, 5, 3, 3), "uint8", {})])


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_pooling_is_onnx_runtimes(op):
    cases = []
    for attrs in ({}, {"strides": [2, 2]}, {"strides": [2, 2], "pads": [1, 1, 1, 0]},
                  {"strides": [3, 2], "ceil_mode": 1}, {"strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
                  {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"dilations": [2, 1]}):
        if op == "LpPool" and ("auto_pad" in attrs or "ceil_mode" in attrs):
            continue
        for kernel in ([3, 3], [2, 3]):
            ours = {"kernel_shape": kernel, **attrs}
            cases.append(check(op, [normal(1, 5, 9, 10)], ours, opset=20))
            if op == "AveragePool" and "auto_pad" not in attrs:
                cases.append(check(op, [normal(1, 5, 9, 10)], {**ours, "count_include_pad": 1}, opset=20))
    cases += [check(op, [normal(2, 3, 17)], {"kernel_shape": [4], "strides": [3]}, opset=20),
              check(op, [normal(1, 2, 5, 6, 5)], {"kernel_shape": [2, 2, 3]}, opset=20)]
    if op == "MaxPool":
        cases += [check(op, [bytes_(1, 3, 6, 6, dtype=dtype)], {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]})
                  for dtype in ("int8", "uint8")]
    if op == "LpPool":
        cases.append(check(op, [normal(1, 3, 6, 6)], {"kernel_shape": [2, 2], "p": 1}, opset=20))
    check_c(cases)


def test_matrix_products_are_onnx_runtimes():
    cases = []
    for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 5)), ((3, 4), (4,)),
                 ((4,), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3))):
        cases.append(check("MatMul", [normal(*a), normal(*b)]))
    for zeros in ([], [np.array(7, "uint8")], [np.array(7, "uint8"), np.array(-3, "int8")]):
        arrays = [bytes_(3, 4, dtype="uint8"), bytes_(4, 5), *zeros]
        cases.append(check("MatMulInteger", arrays))
    for dtypes in (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")):
        arrays = [bytes_(2, 3, 4, dtype=dtypes[0]), np.array(0.02, np.float32), np.array(11, dtypes[0]),
                  bytes_(4, 5, dtype=dtypes[1]), np.array(0.1, np.float32), np.array(1, dtypes[1]),
                  np.array(0.5, np.float32), np.array(20, dtypes[0])]
        cases.append(check("QLinearMatMul", arrays))
    check_c(cases)


def test_gemm_is_onnx_runtimes():
    cases = []
    for attrs in ({}, {"transB": 1}, {"transA": 1, "alpha": 0.5}, {"alpha": 2.0, "beta": 0.25}, {"beta": 0.0}):
        a = normal(4, 3) if attrs.get("transA") else normal(3, 4)
        b = normal(5, 4) if attrs.get("transB") else normal(4, 5)
        for c in ((), (5,), (3, 1), (3, 5), None):
            cases.append(check("Gemm", [a, b] if c is None else [a, b, normal(*c)], attrs))
    check_c(cases)


def test_normalisations_are_onnx_runtimes():
    cases = []
    for dims in ((2, 6, 5, 4), (1, 3, 7), (3, 5)):
        vectors = [normal(dims[1]), normal(dims[1]), normal(dims[1]), abs(normal(dims[1]))]
        cases += [check("BatchNormalization", [normal(*dims), *vectors]),
                  check("BatchNormalization", [normal(*dims), *vectors], {"epsilon": 0.01})]
        if len(dims) > 2:
            cases.append(check("InstanceNormalization", [normal(*dims), *vectors[:2]], {"epsilon": 1e-3}))
            arrays = [normal(*dims), normal(*dims[1:]), normal(*dims[1:])]
            cases.append(check("LayerNormalization", arrays, {"axis": 1}))
        cases.append(check("LayerNormalization", [normal(*dims), normal(dims[-1])]))
        cases.append(check("RMSNormalization", [normal(*dims), normal(dims[-1])], opset=23))
        cases.append(check("LpNormalization", [normal(*dims)], {"axis": 1, "p": 1}))
        cases.append(check("LpNormalization", [normal(*dims)]))
    cases.append(check("GroupNormalization", [normal(2, 6, 5, 4), normal(6), normal(6)], {"num_groups": 3}))
    for attrs in ({"size": 5}, {"size": 3, "alpha": 0.1, "beta": 0.5, "bias": 2.0}, {"size": 1, "alpha": 0.3}):
        cases.append(check("LRN", [normal(1, 7, 4, 3) * 4], attrs))
    check_c(cases)


def operand(*dims, dtype="float32"):
    return Operand(0, dtype, dims, ())


@pytest.mark.parametrize(("call", "reason"), [
    (Call("Conv", (operand(1, 4, 8, 8), operand(6, 3, 3, 3)), operand(1, 6, 6, 6)),
     "Conv must have weights for 4 channels in 1 groups, not (6, 3, 3, 3)"),
    (Call("Conv", (operand(1, 4, 2, 8), operand(6, 4, 3, 3)), operand(1, 6, 1, 6)),
     "Conv must have an image as large as its kernel, not (2, 8) for (3, 3)"),
    (Call("Conv", (operand(1, 4, 8, 8), operand(6, 4, 3, 3)), operand(1, 6, 6, 6), {"pads": [-1, 0, 0, 0]}),
     "Conv must have kernel, strides and dilations from 1 and pads from 0, not"),
    (Call("Conv", (operand(1, 4, 8, 8), operand(6, 4, 3, 3)), operand(1, 6, 6, 6), {"strides": [2]}),
     "Conv must have 2 numbers as strides, not [2]"),
    (Call("Conv", (operand(1, 4, 8, 8), operand(6, 4, 3, 3), operand(5)), operand(1, 6, 6, 6)),
     "Conv must have 6 numbers as bias, not (5,)"),
    (Call("QLinearConv", (operand(1, 4, 8, 8, dtype="int8"), operand(2), *[ABSENT] * 6), operand(1, 6, 6, 6)),
     "QLinearConv must have input 3"),
    (Call("MaxPool", (operand(1, 4, 8, 8),), operand(1, 4, 8, 8)), "MaxPool must have a kernel_shape"),
    (Call("MatMul", (operand(3, 4), operand(5, 4)), operand(3, 4)), "MatMul must have matrices that fit, not (3, 4)"),
    (Call("Gemm", (operand(3, 4), operand(4, 5), operand(4)), operand(3, 5)), "Gemm must have inputs that broadcast"),
    (Call("BatchNormalization", (operand(1, 3, 4, 4), *[operand(2)] * 4), operand(1, 3, 4, 4)),
     "BatchNormalization must have a vector of 3 as input 1, not (2,)"),
    (Call("MaxPool", (operand(1, 4, 8, 8),), operand(1, 4, 8, 8), {"kernel_shape": [2**11, 2**11]}),
     "MaxPool must have a kernel of at most 1048576 taps, not (2048, 2048)"),
    (Call("AveragePool", (operand(1, 4, 8, 8),), operand(1, 4, 8, 8),
          {"kernel_shape": [1, 2], "dilations": [1, 2**30], "pads": [0, 2**30, 0, 2**30]}),
     "AveragePool must have windows over at most 1048576 elements, not 1073741825"),
    (Call("LRN", (operand(1, 4, 8, 8),), operand(1, 4, 8, 8), {"size": 2**40}),
     "LRN must have an input of rank 3 or more and a size from 1 to 65536, not"),
    (Call("LpPool", (operand(1, 4, 8, 8),), operand(1, 4, 7, 7), {"kernel_shape": [2, 2], "p": 3}),
     "LpPool must have p 1 or 2, not 3"),
])
def test_windows_that_cannot_run_are_refused(call, reason):
    assert (KERNELS[call.kernel].refusal(call) or "").startswith(reason)
