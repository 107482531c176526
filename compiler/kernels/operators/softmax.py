"""Softmax, its logarithm, and Hardmax, along one axis or (before opset 13) along all from one on."""

from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language import float_functions as f
from tilewright.compiler.kernels.language.c_expression import c_lines
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Dims,
    at_most,
    attribute,
    axis_of,
    opset,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, evaluate, variable
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.operators.arithmetic import greatest
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "SUM", "Hardmax", "SoftmaxFamily", "rows_of"]

_SUM_BOUND = "relative 1e-5 (sums in another order)"

_X, _TOP, _TOTAL = (variable(name, "float32") for name in ("x", "top", "total"))
_LARGER = greatest(_TOP, _X)
_POWER = f.exp(_X - _TOP)
SUM = _TOTAL + variable("power", "float32")


class SoftmaxFamily(CheckedKernel):
    """A row's maximum, the sum of the exponentials of what its elements are below it, then each element's result.

    ``total`` becomes ``finish`` after the second pass; ``last`` gives the result from ``x``, which is the exponential
    if ``keeps``, ``top`` and ``total``.
    """

    limits = "float32"

    def __init__(self, op: str, finish: Expression, last: Expression, *, keeps: bool, exactness: str) -> None:
        self.op = op
        self.finish = finish
        self.last = last
        self.keeps = keeps
        self.exactness = exactness

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ("float32",))
        rows_of(call)
        return source.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        rows = rows_of(call)
        split = rows.split(array)
        top = np.full(rows.count, -np.inf, np.float32)
        for x in split:
            top = evaluate(_LARGER, {"top": top, "x": x})
        powers = evaluate(_POWER, {"x": split, "top": top})
        total = np.zeros(rows.count, np.float32)
        for power in powers:
            total = evaluate(SUM, {"total": total, "power": power})
        total = evaluate(self.finish, {"total": total})
        result = evaluate(self.last, {"x": powers if self.keeps else split, "top": top, "total": total})
        return np.ascontiguousarray(rows.joined(np.broadcast_to(result, split.shape)))

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, source = rows_of(call), call.inputs[0]

        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> str:
                return f"const float x = {rows.element('in0', source, indices, inner)};"

            def store(inner: list[str], text: str) -> str:
                return f"{rows.element('out', call.output, indices, inner)} = {text};"

            def second(inner: list[str]) -> list[str]:
                kept = [store(inner, "power")] if self.keeps else []
                return [load(inner), f"const float power = {c_lines(_POWER)[1]};", *kept, f"total = {c_lines(SUM)[1]};"]

            def third(inner: list[str]) -> list[str]:
                again = f"const float x = {rows.element('out', call.output, indices, inner)};"
                return [again if self.keeps else load(inner), store(inner, c_lines(self.last)[1])]

            return ["float top = -__builtin_inff();",
                    *rows.each_element(lambda inner: [load(inner), f"top = {_top()};"]),
                    "float total = 0.0f;", *rows.each_element(second), f"total = {c_lines(self.finish)[1]};",
                    *rows.each_element(third)]

        return rows.each_row(row)

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(_LARGER, _POWER, SUM, self.finish, self.last)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows = rows_of(call)
        accesses = 3 * access_cycles(memory) + (2 if self.keeps else 1) * access_cycles(memory, 0, 1)
        element = accesses + 3 * LOOP + sum(map(expression_cycles,
                                                                        (_LARGER, _POWER, SUM, self.last)))
        return START + int(rows.count * (rows.length * element + expression_cycles(self.finish)))


class Hardmax(CheckedKernel):
    """One for the first largest element of a row, zero for the others."""

    op = "Hardmax"
    limits = "float32"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ("float32",))
        rows_of(call)
        return source.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        rows = rows_of(call)
        split = rows.split(array)
        top = np.full(rows.count, -np.inf, np.float32)
        for x in split:
            top = evaluate(_LARGER, {"top": top, "x": x})
        wins = split == top
        first = wins & (np.cumsum(wins, axis=0) == 1)
        return np.ascontiguousarray(rows.joined(first.astype(np.float32)))

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, source = rows_of(call), call.inputs[0]

        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> str:
                return f"const float x = {rows.element('in0', source, indices, inner)};"

            def mark(inner: list[str]) -> list[str]:
                return [load(inner), "const uint8_t wins = !found && x == top;", "found |= wins;",
                        f"{rows.element('out', call.output, indices, inner)} = wins ? 1.0f : 0.0f;"]

            return ["float top = -__builtin_inff();",
                    *rows.each_element(lambda inner: [load(inner), f"top = {_top()};"]),
                    "uint8_t found = 0;", *rows.each_element(mark)]

        return rows.each_row(row)

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(_LARGER)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows = rows_of(call)
        each = 3 * access_cycles(memory) + 2 * LOOP + 2 * expression_cycles(_LARGER)
        return START + int(rows.count * rows.length * each)


def rows_of(call: Call) -> Rows:
    """Return the rows of a softmax: along ``axis``, before opset 13 along all axes from it on."""
    dims = call.inputs[0].dims
    old = opset(call) < 13
    axis = axis_of(attribute(call, "axis", 1 if old else -1), len(dims))
    return Rows(dims, tuple(range(axis, len(dims))) if old else (axis,))


def _top() -> str:
    return c_lines(_LARGER)[1]


KERNELS = (
    SoftmaxFamily("Softmax", 1 / _TOTAL, _X * _TOTAL, keeps=True, exactness=_SUM_BOUND),
    SoftmaxFamily("LogSoftmax", f.log(_TOTAL), (_X - _TOP) - _TOTAL, keeps=False, exactness="absolute 1e-6"),
    Hardmax(),
)
