"""Elementwise operators: NumPy as ONNX Runtime within the bound they state, and C as NumPy bit for bit."""

import numpy as np
import pytest

from tests.support.core_kernels import ABSENT, call_of, compute, onnx_runtime, run_c, same_bits
from tilewright.compiler.kernels.operators import arithmetic
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.program import Call, Operand

SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3e38, -3e38, 1e-40, np.inf, -np.inf, np.nan],
                   np.float32)
SHAPES = (((2, 3, 4, 5), (2, 3, 4, 5)), ((2, 3, 4, 5), (3, 1, 1)), ((1, 3, 4, 5), (1,)), ((4,), (3, 1)), ((), ()),
          ((2, 3), ()), ((2, 1, 4, 1, 3), (1, 5, 4, 2, 1)), ((1, 6, 5, 5), (1, 6, 1, 1)))
FLOAT_UNARY = [kernel.op for kernel in (*arithmetic.UNARY, *arithmetic.TRANSCENDENTAL)
               if kernel.op not in ("Cast", "Clip", "Identity", "Dropout", "QuickGelu", "Swish")]
NEWER = {"Swish": 24}


def values(rng, dims, dtype):
    """Return normal, large and (of float32) special values."""
    if dtype == "bool":
        return rng.random(dims) < 0.5
    if dtype != "float32":
        bounds = np.iinfo(dtype)
        return rng.integers(max(bounds.min, -2**31), min(bounds.max, 2**31), dims, dtype, endpoint=True)
    array = np.array(rng.standard_normal(dims) * 10.0 ** rng.integers(-2, 2, dims), np.float32)
    flat = array.reshape(-1)
    if flat.size > len(SPECIAL):
        flat[rng.choice(flat.size, len(SPECIAL), replace=False)] = SPECIAL
    return flat.reshape(dims)


def check_c(cases):
    """Compare C with NumPy for (op, arrays, dims, dtype, attrs) in both layouts."""
    calls, inputs, expected = [], [], []
    for op, arrays, dims, dtype, attrs in cases:
        for channels_last in (False, True):
            calls.append(call_of(op, arrays, dims, dtype, attrs, channels_last=channels_last))
            inputs.append(arrays)
            expected.append(compute(calls[-1], arrays))
    for call, result, wanted in zip(calls, run_c(calls, inputs), expected, strict=True):
        assert same_bits(result, wanted), (call, result, wanted)


def close(result, wanted, exactness):
    if exactness == "exact":
        assert np.array_equal(result, wanted, equal_nan=wanted.dtype.kind == "f"), (result, wanted)
        return
    assert np.array_equal(np.isnan(result), np.isnan(wanted))
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=3e-7)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu", "Sum", "Mean", "Equal", "Greater",
                                "GreaterOrEqual", "Less", "LessOrEqual"])
def test_binary_operators_of_float_are_onnx_runtimes(op):
    rng = np.random.default_rng(1)
    cases = []
    for a, b in SHAPES:
        arrays = [values(rng, a, "float32"), values(rng, b, "float32")]
        if op == "PRelu" and np.broadcast_shapes(a, b) != a:
            continue
        wanted = onnx_runtime(op, arrays)
        call = call_of(op, arrays, wanted.shape, str(wanted.dtype))
        close(compute(call, arrays), wanted, KERNELS[op].exactness)
        cases.append((op, arrays, wanted.shape, str(wanted.dtype), {}))
    check_c(cases)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Greater", "Equal"])
def test_binary_operators_of_integers_are_onnx_runtimes(op, dtype):
    rng = np.random.default_rng(2)
    cases = []
    for a, b in SHAPES:
        arrays = [values(rng, a, dtype), values(rng, b, dtype)]
        if op == "Div":
            arrays[1] = np.asarray(np.where(arrays[1] == 0, 7, arrays[1]) % 1000 - 2000, dtype)
        wanted = onnx_runtime(op, arrays)
        close(compute(call_of(op, arrays, wanted.shape, str(wanted.dtype)), arrays), wanted, "exact")
        cases.append((op, arrays, wanted.shape, str(wanted.dtype), {}))
    check_c(cases)


def test_integer_division_is_defined_everywhere():
    a, b = np.array([7, -7, -128, 5], np.int8), np.array([0, 2, -1, -2], np.int8)
    assert compute(call_of("Div", [a, b], (4,), "int8"), [a, b]).tolist() == [0, -3, -128, -2]
    wide = [np.array([-2**31, -2**31, 9], np.int32), np.array([-1, 0, -4], np.int32)]
    check_c([("Div", [a, b], (4,), "int8", {}), ("Div", wide, (3,), "int32", {})])


@pytest.mark.parametrize("op", FLOAT_UNARY)
def test_unary_operators_are_onnx_runtimes(op):
    rng = np.random.default_rng(3)
    cases = []
    for dims in ((2, 3, 4, 5), (), (1, 40, 3, 3), (300,)):
        x = values(rng, dims, "float32")
        if KERNELS[op].exactness != "exact":  # ONNX Runtime's own approximations differ at the edges
            x = np.asarray(np.where(np.isfinite(x) & (abs(x) < 80) & (abs(x) > 1e-30), x, 1), np.float32)
        wanted = onnx_runtime(op, [x], opset=22)
        close(compute(call_of(op, [x], dims, str(wanted.dtype)), [x]), wanted, KERNELS[op].exactness)
        cases.append((op, [values(rng, dims, "float32")], dims, str(wanted.dtype), {}))
    check_c(cases)


@pytest.mark.parametrize(("op", "attrs"), [
    ("Elu", {"alpha": 0.3}), ("Celu", {"alpha": 2.0}), ("LeakyRelu", {"alpha": 0.2}), ("Selu", {"alpha": 1.1}),
    ("HardSigmoid", {"alpha": 0.16, "beta": 0.4}), ("Gelu", {"approximate": "tanh"}),
    ("ThresholdedRelu", {"alpha": 0.5}),
])
def test_attributes_of_activations_count(op, attrs):
    x = np.linspace(-9, 9, 101, dtype=np.float32)
    wanted = onnx_runtime(op, [x], attrs, opset=22)
    close(compute(call_of(op, [x], x.shape, "float32", attrs), [x]), wanted, KERNELS[op].exactness)
    check_c([(op, [x], x.shape, "float32", attrs)])


def test_activations_that_onnx_runtime_lacks_are_their_definitions():
    x = np.linspace(-9, 9, 101, dtype=np.float32)
    for op, alpha in (("Swish", 1.0), ("QuickGelu", 1.702)):
        wanted = x / (1 + np.exp(-alpha * x.astype(np.float64)))
        np.testing.assert_allclose(compute(call_of(op, [x], x.shape, "float32"), [x]), wanted, rtol=2e-6)
        check_c([(op, [x], x.shape, "float32", {})])


def test_power_is_onnx_runtimes():
    rng = np.random.default_rng(4)
    x = np.abs(values(rng, (50, 6), "float32"))
    cases = []
    for y in (np.array([0.5, 2, 3, -1, 0, 1.7], np.float32), np.float32(2), np.float32(0.5), np.int64(3), np.int32(-2)):
        arrays = [x, np.asarray(y)]
        wanted = onnx_runtime("Pow", arrays)
        np.testing.assert_allclose(compute(call_of("Pow", arrays, x.shape, "float32"), arrays), wanted, rtol=3e-7)
        cases.append(("Pow", arrays, x.shape, "float32", {}))
    signed = [np.array([-2, -2, -2, 0, -0.0, -1], np.float32), np.array([3, 2, 0.5, -1, 3, np.inf], np.float32)]
    np.testing.assert_array_equal(compute(call_of("Pow", signed, (6,), "float32"), signed), onnx_runtime("Pow", signed))
    check_c([*cases, ("Pow", signed, (6,), "float32", {})])


def test_clip_takes_its_bounds_from_inputs_or_attributes():
    rng = np.random.default_rng(5)
    cases = []
    for dtype in ("float32", "int8", "uint8", "int32"):
        x = values(rng, (3, 40), dtype)
        x = np.asarray(np.where(np.isfinite(x), x, 0), dtype)
        low, high = np.array(3, dtype), np.array(90, dtype)
        for bounds in ([], [low], [low, high], [None, high]):
            arrays = [x, *bounds]
            close(compute(call_of("Clip", arrays, x.shape, dtype), arrays), onnx_runtime("Clip", arrays), "exact")
            cases.append(("Clip", arrays, x.shape, dtype, {}))
    attrs = {"min": -1.0, "max": 6.0, "opset": 9}
    x = np.linspace(-9, 9, 50, dtype=np.float32)
    close(compute(call_of("Clip", [x], x.shape, "float32", attrs), [x]), np.clip(x, -1, 6), "exact")
    check_c([*cases, ("Clip", [x], x.shape, "float32", attrs)])


@pytest.mark.parametrize("source", ["float32", "int8", "uint8", "int32", "int64", "bool"])
def test_cast_goes_between_all_dtypes(source):
    rng = np.random.default_rng(6)
    x = values(rng, (5, 60), source)
    sane = np.asarray(np.where(np.isfinite(x) & (abs(x) < 100), x, 7), source) if source == "float32" else x
    cases = []
    for code, target in arithmetic.ONNX_DTYPES.items():
        wide = np.abs(sane) if target == "uint8" and source == "float32" else sane
        close(compute(call_of("Cast", [wide], x.shape, target, {"to": code}), [wide]),
              onnx_runtime("Cast", [wide], {"to": code}), "exact")
        cases.append(("Cast", [x], x.shape, target, {"to": code}))
    check_c(cases)


def test_floats_out_of_range_become_the_bounds():
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483520, -2147483648, 1e19], np.float32)
    call = call_of("Cast", [x], x.shape, "int32", {"to": 6})
    high, low = 2**31 - 1, -2**31
    assert compute(call, [x]).tolist() == [0, high, low, high, low, 2147483520, low, high]
    check_c([("Cast", [x], x.shape, "int32", {"to": 6}), ("Cast", [x], x.shape, "int64", {"to": 7})])


def test_logic_and_where_are_onnx_runtimes():
    rng = np.random.default_rng(7)
    cases = []
    for a, b in SHAPES:
        p, q = values(rng, a, "bool"), values(rng, b, "bool")
        for op, arrays in (("And", [p, q]), ("Or", [p, q]), ("Xor", [p, q]), ("Not", [p]), ("Equal", [p, q]),
                           ("Where", [p, values(rng, b, "float32"), values(rng, a, "float32")]),
                           ("Where", [p, values(rng, b, "int8"), values(rng, b, "int8")])):
            dims = np.broadcast_shapes(*(each.shape for each in arrays))
            dtype = str(arrays[-1].dtype)
            if dtype != "int8":  # ONNX Runtime lacks that
                wanted = onnx_runtime(op, arrays)
                close(compute(call_of(op, arrays, dims, dtype), arrays), wanted, "exact")
            cases.append((op, arrays, dims, dtype, {}))
    check_c(cases)


def operand(dims, dtype="float32"):
    return Operand(0, dtype, dims, ())


@pytest.mark.parametrize(("call", "reason"), [
    (Call("Add", (operand((2, 3)), operand((2,))), operand((2, 3))),
     "Add must have inputs that broadcast, not (2, 3) and (2,)"),
    (Call("Add", (operand((2,)), operand((2,), "int32")), operand((2,))),
     "Add must have inputs of the same dtype, not float32 and int32"),
    (Call("Add", (operand((2,)),), operand((2,))), "Add must have input 1"),
    (Call("Add", (operand((2,)), operand((2,))), operand((3,))), "Add gives float32 (2,) here, not float32 (3,)"),
    (Call("Exp", (operand((2,), "int32"),), operand((2,), "int32")), "Exp takes float32 as input 0, not int32"),
    (Call("Exp", (operand((2,)), operand((2,))), operand((2,))), "Exp takes at most 1 inputs, not 2"),
    (Call("Exp", (ABSENT,), operand((2,))), "Exp must have input 0"),
    (Call("Exp", (operand((0,)),), operand((0,))), "Exp takes tensors with elements and of rank up to 8, not (0,)"),
    (Call("Gelu", (operand((2,)),), operand((2,)), {"approximate": "x"}),
     "Gelu must be approximated by none or tanh, not 'x'"),
    (Call("Cast", (operand((2,)),), operand((2,))),
     "Cast must have the inputs and attributes of its ONNX definition: 'to'"),
    (Call("Where", (operand((2,), "bool"), operand((2,)), operand((2,), "int8")), operand((2,))),
     ("Where must have the inputs and attributes of its ONNX definition: Operands of an expression must both be "
     "float32, not int8: cast one")),
])
def test_calls_that_cannot_run_are_refused(call, reason):
    assert KERNELS[call.kernel].refusal(call) == reason
