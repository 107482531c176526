"""One call of every kernel of the host core, all in one network: small, of four dimensions where that makes sense."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.core_networks import CoreStack
from tilewright.compiler.kernels.levels.pair_look_up import quotient_factors
from tilewright.compiler.network.layers import Network

X = (1, 4, 4, 6)


@dataclass(frozen=True)
class Case:
    """Inputs by the names of ``sources``, dims and type of the result, attributes."""

    op: str
    inputs: tuple[str, ...] = ("x",)
    dims: tuple[int, ...] = X
    dtype: str = "float32"
    attrs: Mapping[str, Any] = field(default_factory=dict)


def same(ops: str, inputs: tuple[str, ...] = ("x",), dtype: str = "float32", **attrs: object) -> list[Case]:
    """Return a case for each of ``ops``, whose result has the dims of x."""
    return [Case(op, inputs, X, dtype, attrs) for op in ops.split()]


QUOTIENT: dict[str, Any] = {"a_scale": 0.0371, "a_zero_point": 3, "b_scale": 0.0213, "b_zero_point": 100,
                            "y_scale": 0.0174, "y_zero_point": 90, "y_dtype": "uint8"}
QUOTIENT |= dict(zip(("factors", "offsets"), quotient_factors(QUOTIENT, "int8", "uint8"), strict=True))

CASES: Sequence[Case] = (
    *same("Abs Ceil Celu Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity LeakyRelu Mish Neg QuickGelu Reciprocal "
          "Relu Round Selu Sigmoid Sign Softplus Softsign Swish Tanh ThresholdedRelu Dropout"),
    *same("Log Sqrt", ("positive",)),
    *same("Hardmax LogSoftmax Softmax", axis=1), *same("LpNormalization", axis=1, p=2), *same("LRN", size=3),
    *same("IsNaN", dtype="bool"), *same("Add Div Max Mean Min Mul Sub Sum", ("x", "y")),
    *same("PRelu", ("x", "slope")), *same("Pow", ("positive", "y")),
    *same("Equal Greater GreaterOrEqual Less LessOrEqual", ("x", "y"), "bool"),
    *same("And Or Xor", ("b", "b2"), "bool"), *same("Not", ("b",), "bool"), *same("Where", ("b", "x", "y")),
    *same("Cast", dtype="int32", to=6),
    *same("Clip", ("x", "low", "high")), *same("CumSum", ("x", "axis")),
    *same("BatchNormalization", ("x", "ones4", "ramp4", "ramp4", "ones4")),
    *same("InstanceNormalization", ("x", "ones4", "ramp4")),
    *same("GroupNormalization", ("x", "ones4", "ramp4"), num_groups=2),
    *same("LayerNormalization", ("x", "ones6", "ramp6")),
    *same("RMSNormalization", ("x", "ones6"), opset=23),
    *same("QuantizeLinear", ("x", "scale", "zero"), "int8"), *same("DequantizeLinear", ("q", "scale", "zero")),
    *same("LookUp", ("q", "table")), *same("PairLookUp", ("q", "q", "pairs"), "int8"),
    *same("WordLookUp", ("q", "words"), "int8"), *same("QuotientOfLevels", ("q", "levels"), "uint8", **QUOTIENT),
    *same("SoftmaxOfLevels LogSoftmaxOfLevels", ("q",), scale_value=0.06, axis=1),
    *same("SoftmaxOfWords", ("int16",), "int16", scale_value=0.0003, axis=1, y_scale=1 / 65535, y_zero_point=-32768),
    *same("SoftmaxInIntegers", ("q",), "int8", axis=1,
          terms=[int(value) for value in np.floor((2**31 - 1) * np.exp(-0.05 * np.arange(256)))]),
    *same("ResponseOfLevels", ("q",), "int8", scale_value=0.5, zero_point_value=3, y_scale=0.4, y_zero_point=3, size=3),
    *same("NormalisationOfLevels", ("q",), "int8", scale_value=0.05, y_scale=0.03, y_zero_point=-3, low=-3,
          kind="InstanceNormalization", gains=[1.0, 0.5, 1.5, -1.0], shifts=[0.0, 0.25, -0.5, 0.1]),
    *(Case(op, ("x",), (1, 1, 4, 6), "int64", {"axis": 1}) for op in ("ArgMax", "ArgMin")),
    *(Case(f"Reduce{op}", ("positive", "axes"), (1, 4, 1, 1)) for op in
      ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")),
    Case("GlobalAveragePool", ("x",), (1, 4, 1, 1)), Case("GlobalMaxPool", ("x",), (1, 4, 1, 1)),
    *(Case(op, ("x",), (1, 4, 3, 5), attrs={"kernel_shape": [2, 2]}) for op in ("AveragePool", "MaxPool", "LpPool")),
    Case("Conv", ("x", "w", "ramp2"), (1, 2, 4, 6), attrs={"pads": [1, 1, 1, 1]}),
    Case("ConvTranspose", ("x", "wt"), (1, 3, 5, 7)),
    Case("ConvInteger", ("q", "wq"), (1, 2, 2, 4), "int32"),
    Case("LevelsOfSums", ("sums", "scale", "bias4", "big", "zero8"), X, "uint8", {"bits": 13, "low": 0.0}),
    Case("LeastOfSums", ("sums", "scale", "bias4"), (1, 1, 1, 1)),
    Case("ParametersOfSums", ("channel_sums",), (4, 2), "int32",
         {"rows": 2, "length": 48, "extra": 900, "weight": 1016, "gains": [30.0, -20.0, 25.0, 40.0],
          "shifts": [3.0, -2.5, 0.0, 9.0]}),
    Case("HalvesOfLevels", ("levels", "zero8"), (1, 8, 4, 6), "int8", {"group": 2}),
    Case("Chain", ("x", "y"), attrs={"steps": [["Add", [0, 1], []], ["Relu", [-1], []], ["Cast", [-1], ["to", 1]]]}),
    Case("QLinearConv", ("q", "scale", "zero", "wq", "scale", "zero", "big", "zero"), (1, 2, 2, 4), "int8"),
    Case("MatMul", ("x", "m"), (1, 4, 4, 5)), Case("MatMulInteger", ("q", "mq"), (1, 4, 4, 5), "int32"),
    Case("QLinearMatMul", ("q", "scale", "zero", "mq", "scale", "zero", "big", "zero"), (1, 4, 4, 5), "int8"),
    Case("QLinearMul", ("q", "scale", "zero", "q", "scale", "zero", "scale", "zero"), X, "int8"),
    Case("Gemm", ("flat", "g", "ramp2"), (3, 2), attrs={"transB": 1, "alpha": 0.5}),
    Case("Concat", ("x", "y"), (1, 4, 8, 6), attrs={"axis": 2}), Case("Expand", ("x", "two_x"), (2, 4, 4, 6)),
    Case("DepthToSpace", ("x",), (1, 1, 8, 12), attrs={"blocksize": 2}),
    Case("SpaceToDepth", ("x",), (1, 16, 2, 3), attrs={"blocksize": 2}),
    Case("Flatten", ("x",), (1, 96)), Case("Gather", ("x", "picks"), (1, 3, 4, 6), attrs={"axis": 1}),
    Case("Pad", ("x", "around"), (1, 4, 6, 9), attrs={"mode": "reflect"}), Case("Reshape", ("x", "flat_x"), (8, 12)),
    Case("Resize", ("x", "", "factors"), (1, 4, 6, 12), attrs={"mode": "linear"}),
    Case("Upsample", ("x", "factors"), (1, 4, 6, 12), attrs={"mode": "nearest", "opset": 9}),
    Case("Slice", ("x", "first", "last", "all_axes", "steps"), (1, 2, 4, 3)),
    Case("Squeeze", ("x", "axis0"), (4, 4, 6)), Case("Unsqueeze", ("x", "axis0"), (1, 1, 4, 4, 6)),
    Case("Tile", ("x", "repeats"), (1, 8, 4, 12)),
    Case("Transpose", ("x",), (1, 4, 6, 4), attrs={"perm": [0, 2, 3, 1]}),
)


def constants() -> dict[str, np.ndarray]:
    """Return what the cases read that is not an input."""
    rng = np.random.default_rng(9)

    def ints(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    def floats(*dims: int) -> np.ndarray:
        return rng.normal(size=dims).astype(np.float32)

    return {
        "positive": np.abs(floats(*X)) + np.float32(0.1), "slope": floats(4, 1, 1), "low": np.array(-0.5, np.float32),
        "high": np.array(0.75, np.float32), "axis": np.array(2, np.int64), "axes": ints(2, 3), "axis0": ints(0),
        "ones4": np.abs(floats(4)), "ones6": floats(6), "ramp2": floats(2), "ramp4": floats(4), "ramp6": floats(6),
        "table": floats(256),
        "pairs": np.random.default_rng(10).integers(-128, 128, (256, 256)).astype(np.int8),
        "words": np.random.default_rng(13).integers(-(1 << 15), 1 << 15, 1 << 16).astype(np.int16),
        "scale": np.array(0.037, np.float32), "big": np.array(0.9, np.float32), "zero": np.array(3, np.int8),
        "int16": np.random.default_rng(14).integers(-(1 << 15), 1 << 15, X).astype(np.int16),
        "levels": np.random.default_rng(11).integers(0, 256, X).astype(np.uint8), "zero8": np.array(77, np.uint8),
        "channel_sums": np.array([[200, -300, 450, 90], [-700, -500, 300, -200], [900, 1100, 1000, 800]], np.int32),
        "sums": np.random.default_rng(12).integers(-3000, 3000, X).astype(np.int32),
        "bias4": np.linspace(-9, 9, 4).astype(np.float32).reshape(1, 4, 1, 1),
        "w": floats(2, 4, 3, 3), "wt": floats(4, 3, 2, 2), "wq": rng.integers(-9, 9, (2, 4, 3, 3), np.int8),
        "m": floats(6, 5), "mq": rng.integers(-9, 9, (6, 5), np.int8), "flat": floats(3, 7), "g": floats(2, 7),
        "two_x": ints(2, 1, 1, 1), "picks": ints(2, 0, 3), "around": ints(0, 0, 1, 2, 0, 0, 1, 1),
        "flat_x": ints(8, 12), "factors": np.array([1, 1, 1.5, 2], np.float32), "first": ints(1, 5),
        "last": ints(3, -7), "all_axes": ints(1, 3), "steps": ints(1, -2), "repeats": ints(1, 2, 1, 2)}


def library_network(wanted: Callable[[Case], bool] = lambda case: True) -> Network:
    """Return the cases side by side, all tensors handed out."""
    stack = CoreStack((1, 1, 1), seed=4)
    del stack.tensors["input"]
    stack.handed_in = ["x", "y", "q", "b", "b2"]
    for name, dtype in zip(stack.handed_in, ("float32", "float32", "int8", "bool", "bool"), strict=True):
        stack.tensor(name, X, dtype)
    stack.constants |= constants()
    for case in filter(wanted, CASES):
        stack.handed_out.append(stack.core(case.op, case.inputs, case.dims, case.dtype, case.attrs))
    return stack.network("library of the host core")
