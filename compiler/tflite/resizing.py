"""Linear resizing of TensorFlow Lite."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.compiler.tflite.bounds import put_result
from tilewright.compiler.tflite.graph_builder import FLOAT, INT32, GraphBuilder, LevelNumbers
from tilewright.compiler.tflite.pools import AWAY
from tilewright.compiler.tflite.stored.tensors import TfliteOperator

__all__ = ["resize_bilinear"]

_BITS = 10
_ONE = 1 << _BITS
_MOST_BITS = 6
"""Fractional bits of a weight of rows and columns: so many the datapath's int8 hold."""


def resize_bilinear(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a RESIZE_BILINEAR.

    Where all weights have few bits, engines differ only in how they round halves: those of the kernels go away from
    zero, of levels as they are, and XNNPACK's up, as if there were no levels below 0.
    """
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if len(x.shape) != 4 or len(y.shape) != 4 or x.shape[3] != y.shape[3] or 0 in (*x.shape, *y.shape):
        raise operator.refusal(f"its input and output have the shapes {list(x.shape)} and {list(y.shape)}",
                               "convert the model again")
    corners, half = bool(operator.options["AlignCorners"]), bool(operator.options["HalfPixelCenters"])
    mode = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    axes = [_Taps.of(x.shape[axis], y.shape[axis], corners=corners, half=half) for axis in (1, 2)]
    levels: tuple[LevelNumbers, LevelNumbers] | None = None
    if y.is_levels and x.dtype == y.dtype == "int8" and (x.scale, x.zero) == (y.scale, y.zero):
        zero = -128 if builder.engine == "litert" else 0
        levels = LevelNumbers(np.float32(1), zero), LevelNumbers(AWAY, zero)
        if sum(each.bits for each in axes) > _MOST_BITS:
            levels = None
            if builder.engine != "litert":
                _put_weighted(builder, operator, axes)
                return
    if y.is_levels and levels is None:
        builder.near(operator, "its weights have 11 bits")
    sizes = builder.constant(np.array([1, y.shape[3], y.shape[1], y.shape[2]], np.int64), f"{y.name}:sizes")
    real = builder.real(operator.inputs[0], levels and levels[0])
    put_result(builder, operator, builder.node("Resize", [real, "", "", sizes], like=y.name, mode="linear",
                                               coordinate_transformation_mode=mode), levels and levels[1])


@dataclass(frozen=True, slots=True)
class _Taps:
    """The two elements that each of an axis is made of, the second's weight in 1,024ths, and the bits that it needs.

    The bits are those of the real number; they are more than 10 where that is none of the kernels'.
    """

    first: np.ndarray
    second: np.ndarray
    weight: np.ndarray
    bits: int

    @classmethod
    def of(cls, size: int, count: int, *, corners: bool, half: bool) -> "_Taps":
        """Return the axis of ``count`` elements made of ``size``.

        Source: ``ResizeBilinearInteger`` in TensorFlow Lite's ``kernels/internal/reference/resize_bilinear.h``.
        """
        above, below = (size - 1, count - 1) if corners and count > 1 else (size, count)
        step = (_ONE * above + below // 2) // below
        places = np.arange(count, dtype=np.int64) * step + (step // 2 - _ONE // 2 if half else 0)
        first = np.maximum(np.trunc(places / _ONE).astype(np.int64), 0)
        second = np.minimum(np.trunc((places + _ONE - 1) / _ONE).astype(np.int64), size - 1)
        exact = Fraction(above, below)
        real = [place * exact + (exact / 2 - Fraction(1, 2) if half else 0) for place in range(count)]
        denominator = max(each.denominator for each in real)
        same = all(each * _ONE == place for each, place in zip(real, places.tolist(), strict=True))
        return cls(first, second, places - _ONE * first,
                   denominator.bit_length() - 1 if same and denominator & denominator - 1 == 0 else _ONE)


def _put_weighted(builder: GraphBuilder, operator: TfliteOperator, axes: list[_Taps]) -> None:
    """Write the result in whole numbers: rows, then columns, then 20 bits cut off, halves away from zero."""
    y = builder.tensor(operator.outputs[0])

    def then(op: str, *inputs: str, **more: int) -> str:
        return builder.node(op, inputs, like=y.name, output="", **more)

    def number(value: int) -> str:
        return builder.constant(np.array(value, np.int32), f"{y.name}:number")

    name = then("Cast", builder.stored(operator.inputs[0]), to=INT32)
    for place, axis in enumerate(axes, 2):
        shape = [1, 1, 1, 1]
        shape[place] = -1
        parts = []
        for indices, weights in ((axis.first, _ONE - axis.weight), (axis.second, axis.weight)):
            taken = then("Gather", name, builder.constant(indices, f"{y.name}:indices"), axis=place)
            factors = builder.constant(weights.astype(np.int32).reshape(shape), f"{y.name}:weights")
            parts.append(then("Mul", taken, factors))
        name = then("Add", *parts)
    magnitude = then("Div", then("Add", then("Abs", name), number(1 << 2 * _BITS - 1)), number(1 << 2 * _BITS))
    put_result(builder, operator, then("Cast", then("Mul", magnitude, then("Sign", name)), to=FLOAT),
               LevelNumbers(np.float32(1), 0))
