"""Pooling over any window: maximum, average and norms of the taps inside the image."""

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_constant, c_lines, ctype
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Refused, at_most, attribute, integers, required
from tilewright.compiler.kernels.language.core_cycles import START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, Number, evaluate, sqrt, variable
from tilewright.compiler.kernels.operators.arithmetic import FLOAT, greatest
from tilewright.compiler.kernels.operators.byte_pooling import (
    byte_pooling_cycles,
    byte_pooling_helpers,
    byte_pooling_lines,
    pools_bytes,
)
from tilewright.compiler.kernels.operators.reduction import lowest
from tilewright.compiler.kernels.operators.sliding_windows import SlidingWindow, window_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "Pooling"]

_ADDRESS, _BOUNDED_TAP, _OUTPUT = 1.2, 3, 3
"""Cycles of a tap's address where loops are unrolled, of a tap and its bounds where padding is left out, and of what
stands around the taps of an output: fitted to 27 windows in RTL, which the estimate meets within 30 %."""


class Pooling(CheckedKernel):
    """A pooling: ``total`` starts as ``start``, takes ``step`` of itself and ``x`` at each tap, and ends as ``finish``.

    ``finish`` takes the call, ``total`` and ``count``, how many taps an average divides by.
    """

    def __init__(self, op: str, dtypes: Collection[str], start: Callable[[str], Number],
                 step: Callable[[Call, Expression, Expression], Expression],
                 finish: Callable[[Call, Expression, Expression], Expression], *, exactness: str = "exact",
                 limits: str = "") -> None:
        self.op = op
        self.dtypes = dtypes
        self.start = start
        self.step = step
        self.finish = finish
        self.exactness = exactness
        self.limits = limits or f"{' '.join(dtypes)}; images of 1 to 3 dims"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, self.dtypes)
        if len(source.dims) < 3:
            raise Refused(f"{self.op} must have an image of rank 3 to 5, not {source.dims!r}")
        window = self._window(call)
        if any(max(axis.before, axis.after) > axis.reach for axis in window.axes):
            raise Refused(f"{self.op} must have pads no larger than its window, not {call.attrs.get('pads')!r}")
        if min(map(min, self._counts(call, window))) == 0:
            raise Refused(f"{self.op} must have at least one pixel of the image in every window")
        self._step(call)
        return source.dtype, (*source.dims[:2], *window.outputs)

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        window = self._window(call)
        total = np.full(call.output.dims, self.start(str(array.dtype)), array.dtype)
        for _, targets, sources in window.taps():
            target = (slice(None),) * 2 + targets
            x = array[(slice(None), slice(None), *sources)]
            total[target] = evaluate(self._step(call), {"total": total[target], "x": x})
        count = np.ones((), np.int32)
        for each in self._counts(call, window):
            count = count[..., None] * np.array(each, np.int32)
        return np.asarray(evaluate(self._finish(call), {"total": total, "count": count}))

    def c_body(self, call: Call, function: str) -> list[str]:
        window, source = self._window(call), call.inputs[0]
        if self.op == "MaxPool" and pools_bytes(call, window):
            return byte_pooling_lines(call, window)
        kind = ctype(source.dtype)
        counts = self._counts(call, window)
        varying = [axis for axis, each in enumerate(counts) if len(set(each)) > 1]
        divides = "count" in {node.value for node in _inputs(self._finish(call))}
        tables = [f"static const uint16_t count{axis}[{len(counts[axis])}] = {{{', '.join(map(str, counts[axis]))}}};"
                  for axis in varying if divides]
        constant = math.prod(each[0] for axis, each in enumerate(counts) if axis not in varying)

        def one_output(places: list[str]) -> list[str]:
            def one_tap(sources: list[str], taps: list[str]) -> list[str]:
                x = f"in0[{offset_text(0, source.strides, (*places[:2], *sources))}]"
                lines, text = c_lines(self._step(call))
                return [f"const {kind} x = {x};", *lines, f"total = {text};"]

            lines, result = c_lines(self._finish(call))
            factors = [str(constant), *(f"count{axis}[{places[2 + axis]}]" for axis in varying)]
            count = [f"const int32_t count = {' * '.join(factors)};"] if divides else []
            start = c_constant(np.dtype(source.dtype).type(self.start(source.dtype)))
            target = f"out[{offset_text(0, call.output.strides, places)}]"
            scoped = window.lines(places[2:], one_tap)
            if math.prod(window.kernel) == 1:
                scoped = ["{", *(f"    {line}" for line in scoped), "}"]
            return [f"{kind} total = {start};", *scoped, *count, *lines, f"{target} = {result};"]

        return tables + loops(call.output.dims, one_output)

    def helpers(self, call: Call) -> tuple[str, ...]:
        if self.op == "MaxPool" and pools_bytes(call, self._window(call)):
            return byte_pooling_helpers(call, self._window(call))
        return helper_names(self._step(call), self._finish(call))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        window = self._window(call)
        if self.op == "MaxPool" and pools_bytes(call, window):
            return byte_pooling_cycles(call, window, memory)
        # Where every tap is inside, the loops over them are unrolled, and two loads are under way together.
        inside = window.reads == math.prod(window.outputs) * math.prod(window.kernel)
        load = _ADDRESS + access_cycles(memory, 2) / 2 if inside else _BOUNDED_TAP + access_cycles(memory)
        tap = load + expression_cycles(self._step(call))
        output = _OUTPUT + access_cycles(memory, 0, 1) + expression_cycles(self._finish(call))
        return START + int(math.prod(call.output.dims[:2]) * window.reads * tap + math.prod(call.output.dims) * output)

    def _step(self, call: Call) -> Expression:
        dtype = call.inputs[0].dtype
        return self.step(call, variable("total", dtype), variable("x", dtype))

    def _finish(self, call: Call) -> Expression:
        return self.finish(call, variable("total", call.inputs[0].dtype), variable("count", "int32"))

    def _window(self, call: Call) -> SlidingWindow:
        kernel = integers(call, "kernel_shape")
        if not kernel:
            raise Refused(f"{self.op} must have a kernel_shape")
        return window_of(call, call.inputs[0].dims[2:], tuple(kernel))

    def _counts(self, call: Call, window: SlidingWindow) -> list[list[int]]:
        """Return for each axis and output how many taps an average counts."""
        padding = bool(attribute(call, "count_include_pad", 0))
        return [axis.counts(padding=padding) for axis in window.axes]


def _inputs(expression: Expression) -> list[Expression]:
    return [expression] if expression.op == "input" else [each for arg in expression.args for each in _inputs(arg)]


def _norm_step(call: Call, total: Expression, x: Expression) -> Expression:
    if attribute(call, "p", 2) not in (1, 2):
        raise Refused(f"LpPool must have p 1 or 2, not {call.attrs['p']!r}")
    return total + (abs(x) if attribute(call, "p", 2) == 1 else x * x)


KERNELS = (
    Pooling("MaxPool", ("float32", "int8", "uint8", "int32"), lowest, lambda call, total, x: greatest(total, x),
            lambda call, total, count: total, limits="float32 int8 uint8 int32; images of 1 to 3 dims; no indices"),
    Pooling("AveragePool", FLOAT, lambda dtype: 0, lambda call, total, x: total + x,
            lambda call, total, count: total / count.cast("float32"), exactness="relative 1e-5"),
    Pooling("LpPool", FLOAT, lambda dtype: 0, _norm_step,
            lambda call, total, count: total if attribute(call, "p", 2) == 1 else sqrt(total),
            exactness="relative 1e-5", limits="float32; images of 1 to 3 dims; p 1 or 2"),
)
