"""Operators that move elements: NumPy as ONNX Runtime exactly, for any dtype, and C as NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c, values
from tests.support.core_kernels import call_of, compute, onnx_runtime, run_c
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.program import Call, Operand


def ints(*numbers):
    return np.array(numbers, np.int64)


def check(op, arrays, attrs=None, *, opset=21, extra=None, tolerance=0.0):
    """Compare with ONNX Runtime, then C with NumPy in both layouts."""
    wanted = onnx_runtime(op, arrays, attrs, opset=opset)
    ours = {**(attrs or {}), **(extra or {})}
    result = compute(call_of(op, arrays, wanted.shape, str(wanted.dtype), ours), arrays)
    if tolerance:
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(result, wanted)
    return op, arrays, wanted.shape, str(wanted.dtype), ours


RNG = np.random.default_rng(11)


def tensor(*dims, dtype="float32"):
    return values(RNG, dims, dtype)


CASES = [
    *[("Transpose", [tensor(*dims, dtype=dtype)], {"perm": perm} if perm else {}) for dims, perm, dtype in (
        ((2, 3, 4, 5), [0, 2, 3, 1], "float32"), ((2, 3, 4, 5), [0, 3, 1, 2], "int8"), ((2, 3, 4), None, "uint8"),
        ((3, 4, 2, 5, 2), [2, 0, 3, 1, 4], "int64"), ((37, 41), None, "int8"),
        ((1, 20, 3, 4), [1, 0, 2, 3], "int8"), ((7,), None, "bool"))],
    *[("Reshape", [tensor(*dims, dtype=dtype), ints(*shape)], {}) for dims, shape, dtype in (
        ((1, 6, 4, 5), (1, -1), "float32"), ((1, 6, 4, 5), (1, 2, 3, 20), "int8"), ((120,), (1, 4, 5, 6), "uint8"),
        ((1, 4, 2, 3), (1, 6, 2, 2), "int8"), ((1, 9, 2, 2), (1, 4, 3, 3), "float32"), ((2, 3), (3, 2), "int32"),
        ((1, 12, 1, 1), (12,), "int8"), ((1, 1, 1), (), "float32"), ((1, 32, 4, 4), (1, 2, 16, 4, 4), "int8"))],
    ("Flatten", [tensor(2, 3, 4, 5)], {"axis": 2}),
    ("Squeeze", [tensor(1, 3, 1, 5), ints(0, 2)], {}),
    ("Unsqueeze", [tensor(3, 5, dtype="int8"), ints(0, 3)], {}),
    ("Expand", [tensor(3, 1, 5), ints(2, 1, 4, 1)], {}),
    ("Tile", [tensor(1, 3, 2, 4, dtype="int32"), ints(1, 2, 3, 1)], {}),
    *[("Slice", [tensor(1, 8, 9, 7, dtype=dtype), *parameters], {}) for dtype, *parameters in (
        ("float32", ints(1), ints(5), ints(1)), ("float32", ints(-3, 0), ints(1000, -1), ints(3, 2)),
        ("int32", ints(-1, 8), ints(-1000, 0), ints(1, 2), ints(-1, -3)), ("float32", ints(0, 1), ints(1, 8)),
        ("float32", ints(-1), ints(-2**63), ints(3), ints(-1)),
        ("uint8", ints(2), ints(9), ints(-2), ints(2)))],
    *[("Concat", [tensor(*dims, dtype=dtype) for dims in shapes], {"axis": axis}) for shapes, axis, dtype in (
        (((1, 3, 4, 5), (1, 2, 4, 5), (1, 1, 4, 5)), 1, "float32"), (((1, 16, 4, 5), (1, 32, 4, 5)), 1, "int8"),
        (((1, 3, 4, 5), (1, 3, 2, 5)), -2, "uint8"), (((2,), (5,)), 0, "int64"))],
    *[("Pad", [tensor(1, 3, 6, 5, dtype=dtype), ints(*pads), *rest], {"mode": mode}) for mode, dtype, pads, *rest in (
        ("constant", "float32", (0, 0, 1, 2, 0, 1, 3, 0)),
        ("constant", "int8", (0, 0, 1, 1, 0, 0, 1, 1), np.array(-7, "int8")),
        ("constant", "float32", (0, 0, -1, 2, 0, 0, 1, -2), np.array(2.5, np.float32)),
        ("reflect", "float32", (0, 0, 2, 2, 0, 0, 5, 3)), ("edge", "uint8", (0, 1, 7, 2, 0, 0, 1, 9)),
        ("wrap", "float32", (0, 0, 2, 2, 0, 0, 4, 3)))],
    ("Pad", [tensor(1, 3, 6, 5), ints(1, 2, 3, 4), None, ints(-1, 2)], {}),
    ("Gather", [tensor(1, 6, 4, 5), ints(3, 0, -1, 3)], {"axis": 1}),
    ("Gather", [tensor(3, 6, 4), np.array([[3, 0, -1], [2, 2, 1]])], {"axis": 1}),
    ("Gather", [tensor(5, 4), np.array([[[3, 0], [1, 1]]])], {"axis": 0}),
    ("Gather", [tensor(1, 6, 4, 5, dtype="int8"), np.array(-2)], {"axis": 2}),
    *[("DepthToSpace", [tensor(1, 18, 4, 5)], {"blocksize": 3, "mode": mode}) for mode in ("DCR", "CRD")],
    ("SpaceToDepth", [tensor(2, 3, 4, 6)], {"blocksize": 2}),
]


@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{op}{k}" for k, (op, _, _) in enumerate(CASES)])
def test_movement_is_onnx_runtimes(index):
    op, arrays, attrs = CASES[index]
    check(op, arrays, attrs)


def test_c_moves_as_numpy_does():
    cases = []
    for op, arrays, attrs in CASES:
        wanted = onnx_runtime(op, arrays, attrs)
        cases.append((op, arrays, wanted.shape, str(wanted.dtype), attrs))
    check_c(cases)


LOOKED_UP = [(tensor(7, 32, dtype="int8"), np.array([[3, -1, 0], [6, -7, 3]], np.int64), 0),
             (tensor(7, 5), np.array([6, -2], np.int32), 0), (tensor(2, 6, 4, dtype="uint8"), np.array([[5], [-6]]), 1),
             (tensor(9, dtype="int64"), np.array(4, np.int32), 0), (tensor(3, 4, dtype="int8"), ints(1, 0, -1), 1)]


def test_rows_are_looked_up_by_computed_numbers_that_stay_within_the_axis():
    calls, inputs, expected = [], [], []
    for table, places, axis in LOOKED_UP:
        wanted = onnx_runtime("Gather", [table, places], {"axis": axis})
        call = call_of("Gather", [table, places], wanted.shape, str(table.dtype), {"axis": axis}, computed=True)
        np.testing.assert_array_equal(compute(call, [table, places]), wanted)
        far = np.where(places < 0, -2**31, 2**31 - 1).astype(places.dtype)
        last = np.where(places < 0, 0, table.shape[axis] - 1)
        calls += [call, call]
        inputs += [[table, places], [table, far]]
        expected += [wanted, np.take(table, last, axis)]
        np.testing.assert_array_equal(compute(call, [table, far]), expected[-1])
    for result, wanted in zip(run_c(calls, inputs), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_blocks_to_channels_by_column_are_what_depth_to_space_undoes():
    x, attrs = tensor(2, 3, 4, 6), {"blocksize": 2, "mode": "CRD"}
    result = compute(call_of("SpaceToDepth", [x], (2, 12, 2, 3), "float32", attrs), [x])
    np.testing.assert_array_equal(onnx_runtime("DepthToSpace", [result], attrs), x)
    check_c([("SpaceToDepth", [x], (2, 12, 2, 3), "float32", attrs)])


MODES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]


@pytest.mark.parametrize("coordinates", MODES)
def test_nearest_neighbours_are_onnx_runtimes(coordinates):
    cases = []
    for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        attrs = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
        for scales in ((1, 1, 2, 2), (1, 1, 1.5, 0.6), (1, 1, 0.5, 3), (1, 2, 1, 1.3)):
            cases.append(check("Resize", [tensor(1, 4, 7, 6), None, np.array(scales, np.float32)], attrs))
        cases.append(check("Resize", [tensor(1, 4, 7, 6), None, None, ints(1, 4, 15, 1)], attrs))
    cases.append(check("Resize", [tensor(1, 4, 7, 6, dtype="int8"), None, np.array((1, 1, 2, 2), np.float32)]))
    cases.append(check("Resize", [tensor(1, 4, 7, 6), None, None, ints(13, 9)], {"axes": [3, 2]}))
    check_c(cases)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation_is_onnx_runtimes(mode):
    cases = []
    for coordinates in MODES:
        attrs = {"coordinate_transformation_mode": coordinates, "mode": mode}
        for sizes in ((1, 4, 14, 12), (1, 4, 9, 5), (1, 4, 1, 17)):
            x = RNG.standard_normal((1, 4, 7, 6)).astype(np.float32)
            cases.append(check("Resize", [x, None, None, ints(*sizes)], attrs, tolerance=1e-5))
    x = RNG.standard_normal((1, 4, 7, 6)).astype(np.float32)
    cases.append(check("Resize", [x, None, np.array((1, 1, 2, 0.7), np.float32)], {"mode": mode}, tolerance=1e-5))
    check_c(cases)


def test_old_operator_sets_resize_as_they_did():
    x = tensor(1, 3, 5, 6)
    for scales in ((1, 1, 2, 2), (1, 1, 1.5, 2.4), (1, 1, 0.5, 0.7)):
        given = np.array(scales, np.float32)
        wanted = onnx_runtime("Resize", [x, given], opset=10)
        call = call_of("Resize", [x, given], wanted.shape, "float32", {"opset": 10})
        np.testing.assert_array_equal(compute(call, [x, given]), wanted)
        if min(scales) >= 1:
            wanted = onnx_runtime("Upsample", [x, given], opset=9)
            call = call_of("Upsample", [x, given], wanted.shape, "float32", {"opset": 9})
            np.testing.assert_array_equal(compute(call, [x, given]), wanted)
    call = call_of("Slice", [x], (1, 3, 2, 6), "float32", {"starts": [1], "ends": [3], "axes": [2], "opset": 9})
    np.testing.assert_array_equal(compute(call, [x]), x[:, :, 1:3])
    call = call_of("Pad", [x], (1, 3, 6, 6), "float32", {"pads": [0, 0, 1, 0, 0, 0, 0, 0], "value": 2.0, "opset": 9})
    assert (compute(call, [x])[:, :, 0] == 2).all()


def operand(*dims, dtype="float32"):
    return Operand(0, dtype, dims, ())


@pytest.mark.parametrize(("call", "reason"), [
    (Call("Transpose", (operand(2, 3),), operand(3, 2), {"perm": [0, 0]}), "Transpose must have every axis once"),
    (Call("Reshape", (operand(2, 3),), operand(7)), "Reshape must have as many elements in its result as in (2"),
    (Call("Slice", (operand(4),), operand(2)), "Slice must have constant starts and ends"),
    (Call("Slice", (operand(4),), operand(3), {"starts": [0], "ends": [2]}), "Slice gives float32 (2,) here, not"),
    (Call("Concat", (operand(2, 3), operand(2, 4)), operand(4, 3), {"axis": 0}), "Concat must have inputs equal in"),
    (Call("Pad", (operand(4),), operand(12), {"pads": [4, 4], "mode": "reflect"}), "Pad must have pads below 4 in"),
    (Call("Gather", (operand(4),), operand(1), {"indices": [4]}), "Gather must have indices from -4 to 3, not 4"),
    (Call("Gather", (operand(4),), operand(), {"indices": -5}), "Gather must have indices from -4 to 3, not -5"),
    (Call("SpaceToDepth", (operand(1, 1, 2, 2),), operand(1, 4, 1, 1), {"blocksize": 2, "mode": "RDC"}),
     "SpaceToDepth must have mode DCR or CRD, not 'RDC'"),
    (Call("Gather", (operand(4),), operand(1, 1), {"indices": [[1.5]]}), "Gather must have a constant list of"),
    (Call("Resize", (operand(1, 1, 4, 4, dtype="int8"),), operand(1, 1, 8, 8, dtype="int8"), {"mode": "linear"}),
     "Resize takes float32 as input 0, not int8"),
    (Call("Resize", (operand(1, 1, 4, 4),), operand(1, 1, 8, 8), {"sizes": [1, 1, 8, 8], "antialias": 1}),
     "Resize must have antialias 0, not 1"),
])
def test_calls_that_cannot_move_are_refused(call, reason):
    assert (KERNELS[call.kernel].refusal(call) or "").startswith(reason)
