"""Products whose sums TensorFlow Lite's kernels requantise by multipliers of 31 bits, in ONNX's operators of int64.

The sums themselves are float32, of levels with a scale of 1, and exact below 2**24. The nodes behind them shift their
magnitudes once and give back the sign: ONNX Runtime computes them, and
`compiler.passes.recognise.sums.long_chain` reads them.
"""

from typing import Any

import numpy as np

from tilewright.compiler.tflite.graph_builder import FLOAT, INT64, GraphBuilder, LevelNumbers
from tilewright.compiler.tflite.numbers.kernel_numbers import long_numbers
from tilewright.compiler.tflite.tensors import TfliteTensor
from tilewright.isa.integers.long_requantise import LONG_BITS, NUDGE_BITS, long_levels
from tilewright.isa.integers.shift_requantise import BIAS_BITS

__all__ = ["LongProduct", "multipliers_of"]

_EXACT, _LARGEST_BIAS, _FAR = 1 << 24, 1 << BIAS_BITS - 1, 1 << 9
_ONE = np.float32(1)


def multipliers_of(x: TfliteTensor, weights: TfliteTensor, y: TfliteTensor, *, dense: bool) -> np.ndarray:
    """Return what sums are multiplied by, float64 by channel, or one for all.

    Source: ``PopulateConvolutionQuantizationParams`` and ``GetQuantizedConvolutionMultipler`` in TensorFlow Lite's
    ``kernels/kernel_util.cc``: a dense layer of one scale multiplies the scales of its inputs in float32.
    """
    if dense and weights.scales.size == 1:
        return np.asarray((x.scale * weights.scales).astype(np.float32).astype(np.float64) / np.float64(y.scale))
    return np.float64(x.scale) * weights.scales.astype(np.float64) / np.float64(y.scale)


class LongProduct:
    """A Conv or Gemm of levels and constant weights, output channels first, and what its sums are multiplied by.

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
        ends = np.iinfo(self.x.dtype)
        flat = np.abs(self.weights.reshape(self.weights.shape[0], -1).astype(np.int64))
        return np.asarray(flat.sum(axis=1) * max(ends.max - self.x.zero, self.x.zero - ends.min))

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
        reach = int(self._reach.max())
        if reach >= _EXACT:
            return f"its sums may reach {reach:,}, which float32 does not hold"
        if (np.abs(self.bias) + self._reach).max() >= _LARGEST_BIAS:
            return f"its biases have more than {BIAS_BITS} bits"
        return "" if self.shifts.min() > 1 else "its scales are too far apart"

    def put(self, builder: GraphBuilder, kind: str, name: str, y: TfliteTensor, attributes: dict[str, Any]) -> str:
        """Add the product of levels ``name``; return real numbers with a scale of 1, less the zero point."""
        levels = LevelNumbers(_ONE, self.x.zero, self.x.dtype)
        given = builder.constant(self.weights, f"{y.name}:weights")
        sums = builder.node(kind, [builder.dequantised(name, levels),
                                   builder.dequantised(given, LevelNumbers(_ONE, 0, str(self.weights.dtype)))],
                            like=y.name, **attributes)
        halves = np.left_shift(np.int64(1), self.shifts - 1)
        addends = halves + np.where(self.twice & (self.shifts > LONG_BITS), 1 << NUDGE_BITS, 0)

        def by_channel(values: np.ndarray, what: str) -> str:
            shape = (1, -1) if kind == "Gemm" else (1, -1, 1, 1)
            return builder.constant(values.astype(np.int64).reshape(shape), f"{y.name}:{what}")

        def then(op: str, *inputs: str, **more: int) -> str:
            return builder.node(op, inputs, like=y.name, output="", **more)

        total = then("Add", then("Cast", sums, to=INT64), by_channel(self.bias, "bias"))
        sign = then("Sign", total)
        product = then("Mul", then("Abs", total), by_channel(2 * self.factors, "factors"))
        numerator = then("Add", then("Add", product, by_channel(2 * addends - 1, "addends")), sign)
        quotient = then("Div", numerator, by_channel(4 * halves, "divisors"))
        return then("Cast", then("Mul", quotient, sign), to=FLOAT)
