"""Softmax of levels is that of the numbers they stand for, and its C is its NumPy."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.softmax.log_softmax_of_levels import LOG_SOFTMAX_OF_LEVELS
from tilewright.compiler.kernels.levels.softmax.softmax_of_levels import SOFTMAX_OF_LEVELS
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

SHAPES = (((1, 1000), 1), ((2, 5, 3, 4), 1), ((3, 7), -1), ((4, 1), 1), ((6, 450), 0), ((2, 3, 4), 1),
          ((300, 2), -1), ((2, 5, 40), 0), ((1, 2, 16, 15), 1))


def powers(x, scale, axis):
    below = (x.astype(np.float64) - x.max(axis=axis, keepdims=True).astype(np.float64)) * scale
    return np.exp(below), below


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_results_are_those_of_the_numbers(dtype):
    rng, cases = np.random.default_rng(5), []
    bounds = np.iinfo(dtype)
    for shape, axis in SHAPES:
        for scale in (float(np.float32(0.06)), 1.0, float(np.float32(0.003))):
            x = rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
            exact, below = powers(x, scale, axis)
            total = exact.sum(axis=axis, keepdims=True)
            attrs = {"scale_value": scale, "axis": axis}
            call = call_of("SoftmaxOfLevels", [x], shape, "float32", attrs)
            np.testing.assert_allclose(compute(call, [x]), exact / total, rtol=1e-5, atol=1e-37)
            logs = call_of("LogSoftmaxOfLevels", [x], shape, "float32", attrs)
            np.testing.assert_allclose(compute(logs, [x]), below - np.log(total), rtol=1e-7, atol=1e-6)
            cases += [(op, [x], shape, "float32", attrs) for op in ("SoftmaxOfLevels", "LogSoftmaxOfLevels")]
            outputs = ((1 / 256, bounds.min), (1 / 255, bounds.min), (0.0034, 0), (0.0001, 3))
            in_c = len(cases) // 3 % len(outputs)   # the next one with each scale; compiling takes most of the time
            for number, (y_scale, zero) in enumerate(outputs):
                more = {**attrs, "y_scale": y_scale, "y_zero_point": int(zero)}
                steps = np.floor(np.float32(1) / np.float32(y_scale))
                wanted = np.clip(np.rint(exact / total * steps) + zero, bounds.min, bounds.max)
                found = compute(call_of("SoftmaxOfLevels", [x], shape, dtype, more), [x])
                assert np.abs(found.astype(int) - wanted).max() <= 1
                assert np.mean(found != wanted) < 0.02
                if number == in_c:
                    cases.append(("SoftmaxOfLevels", [x], shape, dtype, more))
    assert len(cases) == 3 * 3 * len(SHAPES)
    check_c(cases)


@pytest.mark.parametrize("length", [32, 65, 197, 1024])
@pytest.mark.parametrize("y_scale", [1 / 255, 1 / 256, 0.0017])
def test_quantised_results_are_those_of_onnx_runtime_s_own_operator(length, y_scale):
    rng, scale, count = np.random.default_rng(length), np.float32(0.07), 400_000 // length
    x = np.clip(np.rint(rng.normal(0, 40, (count, length))), -128, 127).astype(np.int8)
    session = one_softmax(length, scale, np.float32(y_scale))
    (wanted,) = session.run(None, {"x": x})
    attrs = {"scale_value": float(scale), "y_scale": float(np.float32(y_scale)), "y_zero_point": -128, "axis": 1}
    found = compute(call_of("SoftmaxOfLevels", [x], x.shape, "int8", attrs), [x])
    assert np.abs(found.astype(int) - wanted).max() <= 1
    # It sums floats in the order of the elements; here are integers of 31 bits.
    assert np.count_nonzero(found != wanted) <= 2


def one_softmax(length, x_scale, y_scale):
    """Return ONNX Runtime's session of a QLinearSoftmax of rows of int8."""
    numbers = {"xs": x_scale, "ys": y_scale, "xz": np.int8(0), "yz": np.int8(-128)}
    node = helper.make_node("QLinearSoftmax", ["x", "xs", "xz", "ys", "yz"], ["y"], domain="com.microsoft", axis=-1,
                            opset=13)
    graph = helper.make_graph([node], "one", *([helper.make_tensor_value_info(name, TensorProto.INT8, ["n", length])]
                                               for name in "xy"),
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17),
                                                                  helper.make_opsetid("com.microsoft", 1)])
    return onnx_session(model.SerializeToString())


@pytest.mark.parametrize("log", ["", "Log"])
def test_rows_of_two_are_looked_up_by_every_difference(log):
    x = np.array([(max(d, 0) - 128, max(-d, 0) - 128) for d in range(-255, 256)], np.int8)
    attrs = {"scale_value": 0.013, "axis": 1}
    exact, _ = powers(x, 0.013, 1)
    found = compute(call_of(f"{log}SoftmaxOfLevels", [x], x.shape, "float32", attrs), [x])
    wanted = exact / exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(found) if log else found, wanted, rtol=1e-5)
    check_c([(f"{log}SoftmaxOfLevels", [x], x.shape, "float32", attrs)])
    # The difference with its sign turned exchanges the two.
    alone = compute(call_of(f"{log}SoftmaxOfLevels", [x[::-1]], x.shape, "float32", attrs), [x[::-1]])
    np.testing.assert_array_equal(alone[:, ::-1], found)


def test_an_old_softmax_runs_along_all_axes_from_one_on():
    x = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    attrs = {"scale_value": 0.5, "opset": 11}
    exact, _ = powers(x.reshape(2, 12), 0.5, 1)
    found = compute(call_of("SoftmaxOfLevels", [x], x.shape, "float32", attrs), [x])
    np.testing.assert_allclose(found, (exact / exact.sum(axis=1, keepdims=True)).reshape(x.shape), rtol=1e-5)


@pytest.mark.parametrize(("shape", "attrs", "dtype"), [
    ((2, 4), {"scale_value": 0.0}, "float32"), ((1, 9000), {"scale_value": 0.1}, "float32"), ((2, 4), {}, "float32"),
    ((2, 4), {"scale_value": 0.1, "y_scale": 1e-9, "y_zero_point": 0}, "int8"),
    ((2, 4), {"scale_value": 0.1, "y_scale": 0.1, "y_zero_point": 200}, "int8"),
    ((2, 4), {"scale_value": 0.1, "y_scale": 0.1, "y_zero_point": 0}, "int16")])
def test_what_it_cannot_is_refused(shape, attrs, dtype):
    call = call_of("SoftmaxOfLevels", [np.zeros(shape, np.int8)], shape, dtype, {"axis": 1, **attrs})
    assert SOFTMAX_OF_LEVELS.refusal(call) is not None
    assert LOG_SOFTMAX_OF_LEVELS.refusal(call) is not None
