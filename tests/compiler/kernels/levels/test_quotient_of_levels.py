"""Quotients of levels by whole numbers: every pair is what the division of floats gives, in NumPy and in C."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.core_kernels import call_of, compute, run_c
from tilewright.compiler.kernels.levels.pair_look_up import quotient_factors
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.tools.progress import Silence

NAMES = ("a", "b", "y")


def model(scales, zeros, shapes):
    """Return Q(Div(DQ(a), DQ(b)))."""
    constants = {f"{name}_scale": np.float32(scale) for name, scale in zip(NAMES, scales, strict=True)}
    constants |= {f"{name}_zero": zero for name, zero in zip(NAMES, zeros, strict=True)}
    nodes = [*(helper.make_node("DequantizeLinear", [name, f"{name}_scale", f"{name}_zero"], [f"{name}_real"])
               for name in "ab"), helper.make_node("Div", ["a_real", "b_real"], ["quotient"]),
             helper.make_node("QuantizeLinear", ["quotient", "y_scale", "y_zero"], ["y"])]
    a, b, y = (helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(zero.dtype), shape)
               for name, zero, shape in zip(NAMES, zeros, shapes, strict=True))
    graph = helper.make_graph(nodes, "quotient", [a, b], [y], [numpy_helper.from_array(np.asarray(each), name)
                                                               for name, each in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


KINDS = [((0.0371, 0.0213, 0.0174), (np.int8(3), np.int8(-128), np.int8(-9)), 0),
         ((0.0123, 0.0034, 0.071), (np.uint8(128), np.uint8(0), np.uint8(77)), 0),
         ((0.009, 0.055, 0.0021), (np.int8(-128), np.uint8(119), np.int8(127)), 1),
         ((1 / 32, 1 / 32, 1 / 8), (np.int8(5), np.int8(-20), np.int8(0)), 15)]
"""Scales, zero points, and the most divisors that are left to floats."""


def all_pairs(scales, zeros):
    """Return the call for every dividend and divisor, and these."""
    bounds = [np.iinfo(zero.dtype) for zero in zeros[:2]]
    a, b = (np.arange(each.min, each.max + 1).astype(each.dtype) for each in bounds)
    attrs = {"y_dtype": str(zeros[2].dtype)}
    for name, scale, zero in zip(NAMES, scales, zeros, strict=True):
        attrs |= {f"{name}_scale": float(np.float32(scale)), f"{name}_zero_point": int(zero)}
    attrs["factors"], attrs["offsets"] = quotient_factors(attrs, str(a.dtype), str(b.dtype))
    arrays = [a[None, :], b[:, None]]
    return call_of("QuotientOfLevels", arrays, (256, 256), attrs["y_dtype"], attrs), arrays


@pytest.mark.parametrize(("scales", "zeros", "left"), KINDS)
def test_every_pair_is_divided_as_floats_are(scales, zeros, left):
    call, (a, b) = all_pairs(scales, zeros)
    assert call.attrs["factors"].count(0) <= left
    found = compute(call, [a, b])
    wanted = session(model(scales, zeros, (a.shape, b.shape, (256, 256))).SerializeToString()).run(
        None, {"a": a, "b": b})[0]
    numbers = np.broadcast_to(~((a == zeros[0]) & (b == zeros[1])), found.shape)     # 0 / 0 is none
    np.testing.assert_array_equal(found[numbers], wanted[numbers])


def test_c_divides_as_numpy_does():
    calls, arrays = zip(*(all_pairs(scales, zeros) for scales, zeros, _ in KINDS), strict=True)
    for call, each, found in zip(calls, arrays, run_c(calls, arrays), strict=True):
        np.testing.assert_array_equal(found, compute(call, each))


def test_a_quotient_of_levels_takes_few_cycles_an_element(tmp_path):
    scales, zeros = (0.0371, 0.0213, 0.0174), (np.int8(3), np.int8(-128), np.int8(-9))
    onnx.save(model(scales, zeros, ((1, 64, 32), (1, 64, 1), (1, 64, 32))), tmp_path / "net.onnx")
    run = run_model(find_model(str(tmp_path / "net.onnx"), Silence()), PRESETS["base"], "fast", None)
    assert run.comparison.matches
    assert run.report.cycles < 40 * 64 * 32
