"""QLinearMul is ONNX Runtime's bit for bit, and its C is its NumPy."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.operators.products import QLINEAR_MUL, SCALES_AND_ZEROS
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

TYPES = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}


def onnx_runtime(a, b, values):
    """Return ONNX Runtime's product."""
    dtype = TYPES[a.dtype.type]
    names = ["a", "a_scale", "a_zero_point", "b", "b_scale", "b_zero_point", "y_scale", "y_zero_point"]
    graph = helper.make_graph(
        [helper.make_node("QLinearMul", names, ["y"], domain="com.microsoft")], "g",
        [helper.make_tensor_value_info("a", dtype, a.shape), helper.make_tensor_value_info("b", dtype, b.shape)],
        [helper.make_tensor_value_info("y", dtype, None)],
        [numpy_helper.from_array(np.asarray(value, np.float32 if "scale" in name else a.dtype), name)
         for name, value in values.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    session = onnx_session(model.SerializeToString())
    return session.run(None, {"a": a, "b": b})[0]


def drawn(rng, dtype):
    """Return scales and zero points with which results fill the range."""
    bounds = np.iinfo(dtype)
    scales = rng.uniform(0.001, 0.1, 2)
    values = {"a_scale": scales[0], "b_scale": scales[1], "y_scale": np.prod(scales) * rng.uniform(20, 120)}
    zeros = dict(zip("aby", rng.integers(bounds.min, bounds.max + 1, 3).tolist(), strict=True))
    return {name: float(np.float32(value)) for name, value in values.items()} | {
        f"{name}_zero_point": zero for name, zero in zeros.items()}


def call(a, b, out, dtype, attrs):
    absent = None
    return call_of("QLinearMul", [a, absent, absent, b, absent, absent, absent, absent], out, dtype, attrs)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_pairs_are_onnx_runtimes(dtype):
    rng = np.random.default_rng(31)
    bounds = np.iinfo(dtype)
    every = np.arange(bounds.min, bounds.max + 1).astype(dtype)
    a, b = every[:, None], every[None, :]
    for _ in range(12):
        values = drawn(rng, dtype)
        made = call(a, b, (256, 256), np.dtype(dtype).name, values)
        np.testing.assert_array_equal(compute(made, [a, None, None, b, *[None] * 4]), onnx_runtime(a, b, values))
        if dtype is np.uint8:
            shifted = {name: value - 128 if "zero" in name else value for name, value in values.items()}
            signed = [(each.astype(int) - 128).astype(np.int8) for each in (a, b)]
            made = call(*signed, (256, 256), "int8", shifted | {"unsigned": 1})
            found = compute(made, [signed[0], None, None, signed[1], *[None] * 4])
            np.testing.assert_array_equal(found.astype(int) + 128, onnx_runtime(a, b, values))


def test_c_is_numpy():
    rng = np.random.default_rng(32)
    cases = []
    for unsigned in (0, 1):
        a = rng.integers(-128, 128, (1, 5, 4, 6)).astype(np.int8)
        b = rng.integers(-128, 128, (1, 5, 1, 1)).astype(np.int8)
        attrs = drawn(rng, np.int8) | {"unsigned": unsigned}
        cases.append(("QLinearMul", [a, None, None, b, *[None] * 4], a.shape, "int8", attrs))
    check_c(cases)


def test_what_is_no_product_is_refused():
    a = np.zeros((2, 3), np.int8)
    values = drawn(np.random.default_rng(33), np.int8)
    assert QLINEAR_MUL.refusal(call(a, a, (2, 3), "int8", values)) is None
    two = call(a, a, (2, 3), "int8", values | {"a_scale": [1, 2]})
    assert "one constant number as a_scale" in QLINEAR_MUL.refusal(two)
    assert "the same dtype" in QLINEAR_MUL.refusal(call(a, a.astype(np.uint8), (2, 3), "int8", values))
    assert set(SCALES_AND_ZEROS) == {1, 2, 4, 5, 6, 7}
