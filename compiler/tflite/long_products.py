"""Sums that TensorFlow Lite's kernels requantise by multipliers of 31 bits, in ONNX's operators of int64.

The sums themselves are float32, of levels with a scale of 1, and exact below 2**24; larger ones are added up of several
products. The nodes behind them shift their magnitudes once and give back the sign: ONNX Runtime computes them, and
`compiler.passes.images.long_chain` reads them.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.compiler.tflite.graph_builder import FLOAT, INT64, GraphBuilder, LevelNumbers
from tilewright.compiler.tflite.numbers.kernel_numbers import long_numbers
from tilewright.compiler.tflite.stored.tensors import TfliteTensor
from tilewright.isa.integers.long_requantise import LONG_BITS, NUDGE_BITS, long_levels
from tilewright.isa.integers.shift_requantise import BIAS_BITS, SHIFT_BITS

__all__ = ["EXACT", "LongProduct", "multipliers_of", "put_long", "too_far"]

EXACT = 1 << 24
"""All smaller whole numbers are float32."""
_LARGEST_BIAS, _FAR = 1 << BIAS_BITS - 1, 1 << 9
_MOST_PARTS = 16
_FARTHEST = (1 << SHIFT_BITS) - 1
_ONE = np.float32(1)


def multipliers_of(x: TfliteTensor, weights: TfliteTensor, y: TfliteTensor) -> np.ndarray:
    """Return what sums are multiplied by, float64 by channel, or one for all.

    Source: ``PopulateConvolutionQuantizationParams`` in TensorFlow Lite's ``kernels/kernel_util.cc``. Dense layers of
    one scale are multiplied in float64, too, as levels of both engines next to a half show.
    """
    return np.float64(x.scale) * weights.scales.astype(np.float64) / np.float64(y.scale)


class LongProduct:
    """A Conv, ConvTranspose or Gemm of levels and constant weights, and what its sums are multiplied by.

    Output channels are the first axis of the weights, which are less their zero point.

    Sums are rounded ``twice`` or once. A channel whose bias brings all of its sums to one level, as in channels
    that training has left without use, gets that level as its bias, and weights of 0.
    """

    def __init__(self, x: TfliteTensor, weights: np.ndarray, bias: np.ndarray | None, real: np.ndarray, *,
                 twice: bool) -> None:
        channels = weights.shape[0]
        self.x, self.twice = x, twice
        self.weights = weights.copy()
        self.bias = np.zeros(channels, np.int64) if bias is None else bias.astype(np.int64)
        self.factors, self.shifts = (np.array(each, np.int64) for each in long_numbers(
            np.broadcast_to(real.reshape(-1), channels)))
        for channel in np.flatnonzero((np.abs(self.bias) + self._reach >= _LARGEST_BIAS) | (self.factors == 0)):
            self._settle(int(channel))

    @property
    def _reach(self) -> np.ndarray:
        """The largest sum of each channel, without its bias."""
        return self._reach_of(self.weights)

    def _reach_of(self, weights: np.ndarray) -> np.ndarray:
        ends = np.iinfo(self.x.dtype)
        flat = np.abs(weights.reshape(weights.shape[0], -1).astype(np.int64))
        return np.asarray(flat.sum(axis=1) * max(ends.max - self.x.zero, self.x.zero - ends.min))

    @property
    def _parts(self) -> list[np.ndarray] | None:
        """The weights as a sum of such that float32 holds their sums; None if there are none."""
        count, least = self.weights.shape[1], -(-int(self._reach.max()) // (EXACT - 1))
        for number in range(max(least, 1), min(count, _MOST_PARTS) + 1):
            bounds = np.arange(number + 1) * count // number
            parts = []
            for low, high in pairwise(bounds.tolist()):
                part = np.zeros_like(self.weights)
                part[:, low:high] = self.weights[:, low:high]
                parts.append(part)
            if all(self._reach_of(part).max() < EXACT for part in parts):
                return parts
        return None

    def _settle(self, channel: int) -> None:
        """Replace ``channel`` by its level, if all of its sums have one; beyond `_FAR` all levels saturate to one."""
        ends = self.bias[channel] + np.array([-1, 1]) * self._reach[channel]
        if np.abs(ends).max() >= 1 << 31:
            return
        levels = np.clip(long_levels(ends.astype(np.int32), self.factors[channel], self.shifts[channel],
                                     twice=self.twice), -_FAR, _FAR)
        if levels[0] == levels[1]:
            self.weights[channel], self.bias[channel] = 0, levels[0]
            self.factors[channel], self.shifts[channel] = 1 << LONG_BITS - 1, LONG_BITS - 1

    @property
    def hindrance(self) -> str:
        """Why integers of these widths do not do, as an end of a sentence; empty if they do."""
        if self._parts is None:
            return f"its sums may reach {int(self._reach.max()):,}, which float32 does not hold"
        if (np.abs(self.bias) + self._reach).max() >= _LARGEST_BIAS:
            return f"its biases have more than {BIAS_BITS} bits"
        return too_far(self.shifts)

    def put(self, builder: GraphBuilder, kind: str, name: str, y: TfliteTensor, attributes: dict[str, Any]) -> str:
        """Add the product of levels ``name``; return real numbers with a scale of 1, less the zero point."""
        real = builder.dequantised(name, LevelNumbers(_ONE, self.x.zero, self.x.dtype))
        sums, parts = [], self._parts
        assert parts is not None
        for part in parts:
            laid = part.swapaxes(0, 1) if kind == "ConvTranspose" else part
            least, most = int(self.weights.min()), int(self.weights.max())
            # Zero points of ONNX are of the weights' type: uint8, if they are not int8 without any.
            zero, dtype = (0, "int8") if -128 <= least and most <= 127 else (max(-least, 0), "uint8")
            given = builder.constant((laid + zero).astype(dtype), f"{y.name}:weights")
            weights = builder.dequantised(given, LevelNumbers(_ONE, zero, dtype))
            sums.append(builder.node(kind, [real, weights], like=y.name, **attributes))
        shape = (1, -1) if kind == "Gemm" else (1, -1, 1, 1)
        return put_long(builder, tuple(sums), y.name, tuple(
            each.reshape(shape) for each in (self.factors, self.shifts, self.bias)), twice=self.twice)


def too_far(shifts: np.ndarray) -> str:
    """Return why shifts are none of the datapath's, as an end of a sentence; empty if they are."""
    return "" if 1 < shifts.min() and shifts.max() <= _FARTHEST else "its scales are too far apart"


def put_long(builder: GraphBuilder, sums: tuple[str, ...], like: str, numbers: tuple[np.ndarray, ...], *,
             twice: bool) -> str:
    """Add what brings whole sums, less their bias, to levels; return real numbers with a scale of 1, less the zero.

    Parameters
    ----------
    sums : tuple of str
        Whole numbers of any type, to be added.
    numbers : tuple of ndarray
        int64 multipliers, or 0, shifts from 1 to 63, and biases, which broadcast to the sums.
    twice : bool
        Whether there are gemmlowp's two roundings, or one, halves up.
    """
    factors, shifts, bias = numbers
    halves = np.left_shift(np.int64(1), shifts - 1)
    addends = halves + np.where(twice & (shifts > LONG_BITS), 1 << NUDGE_BITS, 0)

    def constant(values: np.ndarray, what: str) -> str:
        return builder.constant(values.astype(np.int64), f"{like}:{what}")

    def then(op: str, *inputs: str, **more: int) -> str:
        return builder.node(op, inputs, like=like, output="", **more)

    total, *more = (then("Cast", each, to=INT64) for each in sums)
    for each in more:
        total = then("Add", total, each)
    total = then("Add", total, constant(bias, "bias"))
    sign = then("Sign", total)
    product = then("Mul", then("Abs", total), constant(2 * factors, "factors"))
    numerator = then("Add", then("Add", product, constant(2 * addends - 1, "addends")), sign)
    quotient = then("Div", numerator, constant(4 * halves, "divisors"))
    return then("Cast", then("Mul", quotient, sign), to=FLOAT)
