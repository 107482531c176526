"""Reductions and softmax: NumPy as ONNX Runtime within the bound they state, and C as NumPy bit for bit."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute, onnx_runtime
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.program import Call, Operand

RNG = np.random.default_rng(31)
FLOAT_REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1",
                    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"]
AXES = (((2, 3, 4, 5), (2, 3)), ((2, 3, 4, 5), (1,)), ((2, 3, 4, 5), (-1, 0)), ((1, 6, 1, 1), (2, 3)), ((7, 5), ()),
        ((9,), (0,)), ((1, 3, 5, 4), (1, 2, 3)))


def normal(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


def check(op, arrays, attrs=None, *, opset=21, exactness=None):
    """Compare with ONNX Runtime and return the case for C."""
    wanted = onnx_runtime(op, arrays, attrs, opset=opset)
    ours = {**(attrs or {}), "opset": opset}
    result = compute(call_of(op, arrays, wanted.shape, str(wanted.dtype), ours), arrays)
    if (exactness or KERNELS[op].exactness) == "exact":
        np.testing.assert_array_equal(result, wanted)
    else:
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    return op, arrays, wanted.shape, str(wanted.dtype), ours


@pytest.mark.parametrize("op", FLOAT_REDUCTIONS)
def test_reductions_are_onnx_runtimes(op):
    cases = []
    for dims, axes in AXES:
        x = abs(normal(*dims)) if op == "ReduceLogSum" else normal(*dims)
        for keepdims in (0, 1):
            cases.append(check(op, [x, np.array(axes, np.int64)], {"keepdims": keepdims}))
    cases.append(check(op, [abs(normal(2, 3)), np.array([], np.int64)], {"noop_with_empty_axes": 1})
                 if op in ("ReduceSum", "ReduceMax") else check(op, [abs(normal(2, 3)), None]))
    check_c(cases)


@pytest.mark.parametrize(("op", "dtype"), [("ReduceSum", "int32"), ("ReduceSum", "int64"), ("ReduceProd", "int32"),
                                           ("ReduceMax", "int8"), ("ReduceMax", "uint8"), ("ReduceMin", "int32")])
def test_integer_reductions_are_onnx_runtimes(op, dtype):
    # Sums and products that fit: beyond, we wrap around and ONNX Runtime does not.
    low, high = {"ReduceSum": (-2**20, 2**20), "ReduceProd": (-2, 2)}.get(op, (0, 120))
    check_c([check(op, [RNG.integers(low, high, dims).astype(dtype), np.array(axes, np.int64)], exactness="exact")
             for dims, axes in AXES])


def test_axes_were_an_attribute_once():
    x = normal(2, 3, 4)
    wanted = onnx_runtime("ReduceMean", [x], {"axes": [1], "keepdims": 0}, opset=13)
    call = call_of("ReduceMean", [x], (2, 4), "float32", {"axes": [1], "keepdims": 0})
    np.testing.assert_allclose(compute(call, [x]), wanted, rtol=1e-5)


def test_global_pooling_is_onnx_runtimes():
    cases = []
    for dims in ((1, 16, 7, 7), (2, 3, 5), (1, 4, 1, 1), (1, 2, 3, 4, 5)):
        cases += [check("GlobalAveragePool", [normal(*dims)]), check("GlobalMaxPool", [normal(*dims)])]
    check_c(cases)


def test_extremes_pass_nan_on_as_numpy_does():
    x = normal(3, 8)
    x[1, 2], x[2, 7] = np.nan, np.inf
    for op, wanted in (("ReduceMax", np.max), ("ReduceMin", np.min)):
        arrays = [x, np.array([1])]
        call = call_of(op, arrays, (3, 1), "float32")
        np.testing.assert_array_equal(compute(call, arrays), wanted(x, 1, keepdims=True))
        check_c([(op, arrays, (3, 1), "float32", {})])


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_positions_are_onnx_runtimes(op):
    cases = []
    floats = normal(2, 5, 3, 4)
    for x in (floats, RNG.integers(-3, 3, floats.shape).astype(np.int8), np.zeros((1, 6, 2, 2), np.float32)):
        for attrs in ({}, {"axis": 1, "keepdims": 0}, {"axis": -1, "select_last_index": 1}):
            cases.append(check(op, [x], attrs))
    check_c(cases)


def test_running_sums_are_onnx_runtimes():
    cases = []
    for x in (normal(2, 5, 3, 4), RNG.integers(-3, 3, (6,)).astype(np.int32)):
        for attrs in ({}, {"exclusive": 1}, {"reverse": 1}, {"reverse": 1, "exclusive": 1}):
            cases.append(check("CumSum", [x, np.array(1 - x.ndim, np.int64)], attrs))
    check_c(cases)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_is_onnx_runtimes(op):
    cases = []
    for dims in ((1, 10), (2, 3, 4, 5), (7,), (1, 5, 6, 6), (3, 1)):
        x = normal(*dims) * 10
        for axis in {-1, len(dims) // 2}:
            cases += [check(op, [x], {"axis": axis}), check(op, [x], {"axis": axis}, opset=11)]
        cases.append(check(op, [x]))
        if len(dims) > 1:
            cases.append(check(op, [x], opset=11))
    x = normal(2, 6) * 100
    x[0, 3] = -np.inf
    cases += [check(op, [x]), check(op, [np.zeros((2, 5), np.float32)])]
    check_c(cases)


def operand(*dims, dtype="float32"):
    return Operand(0, dtype, dims, ())


@pytest.mark.parametrize(("call", "reason"), [
    (Call("ReduceMean", (operand(2, 3),), operand(2, 1), {"axes": [2]}), "axis must be from -2 to 1, not 2"),
    (Call("ReduceMean", (operand(2, 3, dtype="int8"),), operand(2, 1, dtype="int8"), {"axes": [1]}),
     "ReduceMean takes float32 as input 0, not int8"),
    (Call("GlobalAveragePool", (operand(2, 3),), operand(2, 3)),
     "GlobalAveragePool must have an input of rank 3 or more, not (2, 3)"),
    (Call("CumSum", (operand(2, 3),), operand(2, 3)), "CumSum must have one constant axis, not None"),
    (Call("Softmax", (operand(2, 3),), operand(2, 3), {"axis": 2}), "axis must be from -2 to 1, not 2"),
])
def test_reductions_that_cannot_run_are_refused(call, reason):
    assert KERNELS[call.kernel].refusal(call) == reason
