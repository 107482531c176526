"""Convolutions of any window, forwards and transposed: each output adds its products tap by tap, then by channel."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Refused,
    at_most,
    attribute,
    operand,
    optional,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import START
from tilewright.compiler.kernels.operators.products import FLOAT, INTEGER, QUANTISED, Products
from tilewright.compiler.kernels.operators.sliding_windows import SlidingWindow, window_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "Convolution"]


class Convolution(CheckedKernel):
    """A convolution in one of the arithmetics; ``bias`` is the position of that input, if there is one."""

    def __init__(self, op: str, products: Products, bias: int | None, *, transposed: bool = False) -> None:
        self.op = op
        self.products = products
        self.bias = bias
        self.transposed = transposed
        self.exactness = "relative 1e-5 (sums in another order)" if products.floats else "exact"
        self.limits = f"{'float32' if products.floats else 'int8 uint8'}; images of 1 to 3 dims"

    def result(self, call: Call) -> tuple[str, Dims]:
        products = self.products
        dtype = products.output(call)
        at_most(call, 4 if products is INTEGER else (self.bias or 0) + 1)
        window = self._window(call)
        x, w = call.inputs[products.x], call.inputs[products.w]
        groups = int(attribute(call, "group", 1))
        # Weights are (O, C / groups, ..); transposed (C, O / groups, ..).
        outputs = w.dims[1] * groups if self.transposed else w.dims[0]
        channels = w.dims[0] if self.transposed else w.dims[1] * groups
        if groups < 1 or outputs % groups or channels != x.dims[1] or channels % groups:
            raise Refused(f"{self.op} must have weights for {x.dims[1]} channels in {groups} groups, not {w.dims!r}")
        products.per_channel(call, outputs)
        if self.bias is not None and (bias := optional(call, self.bias, (products.total,))) is not None:
            if bias.dims != (outputs,):
                raise Refused(f"{self.op} must have {outputs} numbers as bias, not {bias.dims!r}")
        return dtype, (x.dims[0], outputs, *window.outputs)

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        products, window = self.products, self._window(call)
        given = list(arrays)
        groups = int(attribute(call, "group", 1))
        outputs = call.output.dims[1]
        rank = len(window.axes)
        ones = (1,) * rank
        x = products.operand(given, products.x, products.x_zero)
        w = products.operand(given, products.w, products.w_zero, (-1, 1, *ones))
        count, channels = x.shape[:2]
        x = x.reshape(count, groups, channels // groups, 1, *x.shape[2:])
        if self.transposed:
            w = w.reshape(groups, channels // groups, outputs // groups, *window.kernel)
        else:
            w = w.reshape(groups, outputs // groups, channels // groups, *window.kernel).swapaxes(1, 2)
        total = np.zeros((count, groups, outputs // groups, *window.outputs), products.total)
        bias = given[self.bias] if self.bias is not None and self.bias < len(given) else None
        if bias is not None:
            total += bias.reshape(groups, outputs // groups, *ones)
        for taps, targets, sources in window.taps():
            target = (slice(None),) * 3 + targets
            here = x[(slice(None),) * 4 + sources]
            weights = w[(slice(None),) * 3 + taps]
            for channel in range(channels // groups):
                total[target] += here[:, :, channel] * weights[:, channel].reshape(groups, -1, *ones)
        total = total.reshape(call.output.dims)
        return products.finished(call, total, given, (-1, *ones))

    def c_body(self, call: Call, function: str) -> list[str]:
        products, window = self.products, self._window(call)
        x, w = call.inputs[products.x], call.inputs[products.w]
        groups = int(attribute(call, "group", 1))
        channels, outputs = x.dims[1] // groups, call.output.dims[1] // groups
        bias = operand(call, self.bias) if self.bias is not None else None
        after, result = products.after(call)

        def one_channel(indices: list[str]) -> list[str]:
            group, own = indices
            channel = offset_text(0, (outputs, 1), (group, own))
            base = f"in{self.bias}[{offset_text(0, bias.strides, (f'({channel})',))}]" if bias else None

            def one_output(places: list[str]) -> list[str]:
                def one_tap(sources: list[str], taps: list[str]) -> list[str]:
                    def one_product(inner: list[str]) -> list[str]:
                        image = offset_text(0, (x.strides[0], x.strides[1] * channels, *x.strides[1:]),
                                            (places[0], group, *inner, *sources))
                        first, second = w.strides[:2]
                        # Of the weights' group, output channel, input channel.
                        steps = (outputs * first, first, second)
                        if self.transposed:
                            steps = (channels * first, second, first)
                        weight = offset_text(0, (*steps, *w.strides[2:]), (group, own, *inner, *taps))
                        return [products.step(call, f"in{products.x}[{image}]", f"in{products.w}[{weight}]")]
                    return loops((channels,), one_product, prefix="c")

                target = offset_text(0, (outputs * call.output.strides[1], *call.output.strides[1:2],
                                         call.output.strides[0], *call.output.strides[2:]), (group, own, *places))
                return [products.start(base), *window.lines(places[1:], one_tap), *after, f"out[{target}] = {result};"]

            return [*products.before(call, f"({channel})" if channel != "0" else "0"),
                    *loops((call.output.dims[0], *window.outputs), one_output, prefix="i")]

        return loops((groups, outputs), one_channel, prefix="g")

    def helpers(self, call: Call) -> tuple[str, ...]:
        return self.products.helpers(call)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        window = self._window(call)
        groups = int(attribute(call, "group", 1))
        channels = call.inputs[self.products.x].dims[1] // groups
        steps = window.reads * channels * call.output.dims[0] * call.output.dims[1]
        return START + steps * self.products.step_cycles(memory) + \
            math.prod(call.output.dims) * self.products.after_cycles(call, memory)

    def _window(self, call: Call) -> SlidingWindow:
        dtypes = ("float32",) if self.products.floats else ("int8", "uint8")
        x, w = required(call, self.products.x, dtypes), required(call, self.products.w, dtypes)
        if len(x.dims) < 3 or len(w.dims) != len(x.dims):
            raise Refused(f"{self.op} must have image and weights of the same rank, from 3 to 5, not {x.dims!r} and "
                          f"{w.dims!r}")
        return window_of(call, x.dims[2:], w.dims[2:], transposed=self.transposed)


KERNELS = (
    Convolution("Conv", FLOAT, 2),
    Convolution("ConvTranspose", FLOAT, 2, transposed=True),
    Convolution("ConvInteger", INTEGER, None),
    Convolution("QLinearConv", QUANTISED, 8),
)
