"""Convolutions of any window, forwards and transposed: each output adds its products tap by tap, then by channel."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_loops import INDENT, Dims, loops, offset_text, row_major
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Refused,
    at_most,
    attribute,
    operand,
    optional,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import START, access_cycles
from tilewright.compiler.kernels.language.fixed_sums import (
    FIXED_NUMBER_CYCLES,
    FIXED_PRODUCT_CYCLES,
    FIXED_RESULT_CYCLES,
    UNKNOWN_SUMS,
    FixedSum,
    fixed_numbers,
    largest_exponent,
    scratch_name,
)
from tilewright.compiler.kernels.operators.products import FLOAT, INTEGER, QUANTISED, Products
from tilewright.compiler.kernels.operators.sliding_windows import SlidingWindow, window_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "Convolution"]

_LEAST_USES = 2
"""Products of each number on average, so that it is worth being made whole."""


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
        zeros = np.zeros((count, groups, outputs // groups, *window.outputs), products.total)
        bias = given[self.bias] if self.bias is not None and self.bias < len(given) else None
        start = 0 if bias is None else bias.reshape(groups, outputs // groups, *ones)
        total = _summed(window, x, w, zeros + start)
        fixed = self._fixed(call)
        if fixed is not None:
            left, right = largest_exponent(x), largest_exponent(w, (1, *range(3, w.ndim)))
            sums = _summed(window, fixed_numbers(x, left), fixed_numbers(w, right), zeros.astype(np.int64), fixed.shift)
            right = right.reshape(groups, -1, *ones)
            total = np.where(fixed.known(sums, left, right), fixed.floats(sums, left + right) + start, total)
        total = np.asarray(total, products.total).reshape(call.output.dims)
        return products.finished(call, total, given, (-1, *ones))

    def c_body(self, call: Call, function: str) -> list[str]:
        return _ConvolutionText(self, call, self._window(call), self._fixed(call)).lines()

    def helpers(self, call: Call) -> tuple[str, ...]:
        fixed = ("tw_larger_exponent", "tw_fixed", "tw_float", self._scratch(call) or "")
        return (*self.products.helpers(call), *(fixed if self._fixed(call) is not None else ()))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        steps, step = self._steps(call), self.products.step_cycles(memory)
        after = self.products.after_cycles(call, memory)
        if self._fixed(call) is not None:
            numbers = sum(math.prod(call.inputs[each].dims) for each in (self.products.x, self.products.w))
            start = numbers * (FIXED_NUMBER_CYCLES + access_cycles(memory))
            step = int(FIXED_PRODUCT_CYCLES + UNKNOWN_SUMS * step)
            return START + start + steps * step + math.prod(call.output.dims) * (after + FIXED_RESULT_CYCLES)
        return START + steps * step + math.prod(call.output.dims) * after

    def _steps(self, call: Call) -> int:
        """Return the number of products."""
        channels = call.inputs[self.products.x].dims[1] // int(attribute(call, "group", 1))
        return self._window(call).reads * channels * call.output.dims[0] * call.output.dims[1]

    def _fixed(self, call: Call) -> FixedSum | None:
        """Return how sums of floats are those of whole numbers; None if they are not."""
        x, w = call.inputs[self.products.x], call.inputs[self.products.w]
        if not self.products.floats or self._scratch(call) is None or x.span_bytes > 4 * x.elements \
                or self._steps(call) < _LEAST_USES * (x.elements + w.elements):
            return None
        axes = self._window(call).axes
        taps = math.prod(-(-axis.kernel // axis.stride) if axis.transposed and axis.dilation == 1 else axis.kernel
                         for axis in axes)
        return FixedSum(taps * (x.dims[1] // int(attribute(call, "group", 1))))

    def _scratch(self, call: Call) -> str | None:
        """Return the name of memory for the whole numbers of the image and of an output channel's weights."""
        x, kernel = call.inputs[self.products.x], self._window(call).kernel
        return scratch_name(x.elements + math.prod(kernel) * x.dims[1] // int(attribute(call, "group", 1)))

    def _window(self, call: Call) -> SlidingWindow:
        dtypes = ("float32",) if self.products.floats else ("int8", "uint8")
        x, w = required(call, self.products.x, dtypes), required(call, self.products.w, dtypes)
        if len(x.dims) < 3 or len(w.dims) != len(x.dims):
            raise Refused(f"{self.op} must have image and weights of the same rank, from 3 to 5, not {x.dims!r} and "
                          f"{w.dims!r}")
        return window_of(call, x.dims[2:], w.dims[2:], transposed=self.transposed)


def _summed(window: SlidingWindow, x: np.ndarray, w: np.ndarray, total: np.ndarray, shift: int = 0) -> np.ndarray:
    """Return ``total`` with the products of images (n, groups, channels, 1, ..) and weights added, each shifted."""
    ones = (1,) * len(window.axes)
    with np.errstate(all="ignore"):     # infinities are results
        for taps, targets, sources in window.taps():
            target = (slice(None),) * 3 + targets
            here = x[(slice(None),) * 4 + sources]
            weights = w[(slice(None),) * 3 + taps]
            for channel in range(x.shape[2]):
                product = here[:, :, channel] * weights[:, channel].reshape(len(w), -1, *ones)
                total[target] += product >> shift if shift else product
    return total


class _ConvolutionText:
    """The C of one convolution."""

    def __init__(self, kernel: "Convolution", call: Call, window: SlidingWindow, fixed: FixedSum | None) -> None:
        self.kernel, self.call, self.window, self.fixed = kernel, call, window, fixed
        self.products = kernel.products
        self.x, self.w = call.inputs[self.products.x], call.inputs[self.products.w]
        self.groups = int(attribute(call, "group", 1))
        self.channels, self.outputs = self.x.dims[1] // self.groups, call.output.dims[1] // self.groups
        self.memory = kernel._scratch(call)

    def lines(self) -> list[str]:
        """Return the statements."""
        return [*self._image(), *loops((self.groups, self.outputs), self._one_channel, prefix="g")]

    def _image(self) -> list[str]:
        """Return the statements that make whole numbers of the image."""
        if self.fixed is None:
            return []
        pointer, count = f"in{self.products.x}", self.x.elements
        head = f"for (int32_t i = 0; i < {count}; i++)"
        return [f"int32_t *const image = {self.memory}, *const row = {self.memory} + {count};", "int32_t left = 0;",
                head, f"    left = tw_larger_exponent(left, {pointer}[i]);",
                head, f"    image[i] = tw_fixed({pointer}[i], left);"]

    def _one_channel(self, indices: list[str]) -> list[str]:
        channel = offset_text(0, (self.outputs, 1), indices)
        text = f"({channel})" if channel != "0" else "0"
        position = self.kernel.bias
        bias = operand(self.call, position) if position is not None else None
        base = f"in{position}[{offset_text(0, bias.strides, (text,))}]" if bias else None
        return [*self.products.before(self.call, text), *self._row(indices),
                *loops((self.call.output.dims[0], *self.window.outputs),
                       lambda places: self._one_output(indices, places, base), prefix="i")]

    def _row(self, indices: list[str]) -> list[str]:
        """Return the statements that make whole numbers of the weights of an output channel."""
        if self.fixed is None:
            return []
        dims = (*self.window.kernel, self.channels)

        def weight(inner: list[str]) -> str:
            return f"in{self.products.w}[{self._weight(indices, inner[:-1], inner[-1:])}]"

        return ["int32_t right = 0;",
                *loops(dims, lambda inner: [f"right = tw_larger_exponent(right, {weight(inner)});"], prefix="k"),
                *loops(dims, lambda inner: [f"row[{self._in_row(inner)}] = tw_fixed({weight(inner)}, right);"],
                       prefix="k")]

    def _in_row(self, inner: Sequence[str]) -> str:
        return offset_text(0, row_major((*self.window.kernel, self.channels)), inner)

    def _weight(self, indices: list[str], taps: Sequence[str], inner: Sequence[str]) -> str:
        """Return the place of a weight: of a group, an output channel, a tap and an input channel."""
        first, second = self.w.strides[:2]
        steps = (self.channels * first, second, first) if self.kernel.transposed else \
            (self.outputs * first, first, second)
        return offset_text(0, (*steps, *self.w.strides[2:]), (*indices, *inner, *taps))

    def _one_output(self, indices: list[str], places: list[str], base: str | None) -> list[str]:
        group, own = indices
        output = self.call.output
        after, result = self.products.after(self.call)
        target = offset_text(0, (self.outputs * output.strides[1], *output.strides[1:2], output.strides[0],
                                 *output.strides[2:]), (group, own, *places))

        def source(sources: list[str], inner: list[str]) -> str:
            return offset_text(0, (self.x.strides[0], self.x.strides[1] * self.channels, *self.x.strides[1:]),
                               (places[0], group, *inner, *sources))

        def one_tap(sources: list[str], taps: list[str]) -> list[str]:
            return loops((self.channels,), lambda inner: [self.products.step(
                self.call, f"in{self.products.x}[{source(sources, inner)}]",
                f"in{self.products.w}[{self._weight(indices, taps, inner)}]")], prefix="c")

        summed = self.window.lines(places[1:], one_tap)
        if self.fixed is None:
            return [self.products.start(base), *summed, *after, f"out[{target}] = {result};"]
        shift = f" >> {self.fixed.shift}" if self.fixed.shift else ""

        def one_fixed_tap(sources: list[str], taps: list[str]) -> list[str]:
            return loops((self.channels,), lambda inner: [
                f"wide += (int64_t)image[{source(sources, inner)}] * row[{self._in_row([*taps, *inner])}]{shift};"],
                prefix="c")

        known, real = self.fixed.c_result("left", "right")
        return ["int64_t wide = 0;", *self.window.lines(places[1:], one_fixed_tap), f"if ({known}) {{",
                f"    out[{target}] = {real}{f' + {base}' if base else ''};", "} else {",
                *(INDENT + line for line in (self.products.start(base), *summed, f"out[{target}] = total;")), "}"]


KERNELS = (
    Convolution("Conv", FLOAT, 2),
    Convolution("ConvTranspose", FLOAT, 2, transposed=True),
    Convolution("ConvInteger", INTEGER, None),
    Convolution("QLinearConv", QUANTISED, 8),
)
