"""Reductions over axes: sums, means, extremes, norms, their positions, and running sums; strictly in order.

A reduction is one or two passes along each row; a pass starts from a constant and takes one step per element.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language import float_functions as f
from tilewright.compiler.kernels.language.c_expression import c_constant, c_lines, ctype
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Dims,
    Refused,
    at_most,
    attribute,
    axis_of,
    integers,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import (
    BRANCH,
    LOOP,
    ROW,
    SINGLE,
    START,
    access_cycles,
    expression_cycles,
)
from tilewright.compiler.kernels.language.expression import Expression, Number, evaluate, sqrt, variable, where
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.operators.arithmetic import FLOAT, NUMBERS, greatest, least
from tilewright.compiler.kernels.operators.byte_positions import (
    bytes_side_by_side,
    position_cycles,
    position_lines,
)
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "SUM", "Position", "Reduction", "RowPass", "RunningSum", "lowest"]


@dataclass(frozen=True, slots=True, eq=False)
class RowPass:
    """One pass along a row: ``name`` starts as ``start`` and becomes ``step``, of itself, ``x`` and earlier passes."""

    name: str
    start: Number
    step: Expression


_Scheme = Callable[[str, int], tuple[list[RowPass], Expression]]
"""(dtype, elements of a row) → passes, and the result from the passes' names."""


class Reduction(CheckedKernel):
    """A reduction given by its passes; ``spatial`` if it is over all axes from the third on."""

    def __init__(self, op: str, scheme: _Scheme, dtypes: Collection[str] = FLOAT, *, spatial: bool = False,
                 exactness: str = "exact") -> None:
        self.op = op
        self.scheme = scheme
        self.dtypes = dtypes
        self.spatial = spatial
        self.exactness = exactness
        self.limits = " ".join(dtypes)
        self.parameters = {} if spatial else {1: "axes"}

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, self.dtypes)
        return source.dtype, self._rows(call).result_dims(keep=self._keeps(call))

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        rows = self._rows(call)
        array = arrays[0]
        assert array is not None
        split = rows.split(array)
        passes, result = self.scheme(call.output.dtype, rows.length)
        known: dict[str, np.ndarray] = {}
        for each in passes:
            known[each.name] = np.full(rows.count, each.start, array.dtype)
            for x in split:
                known[each.name] = evaluate(each.step, {**known, "x": x})
        return np.array(evaluate(result, known)).reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        rows = self._rows(call)
        passes, result = self.scheme(call.output.dtype, rows.length)
        kind = ctype(call.output.dtype)

        def row(indices: list[str]) -> list[str]:
            lines = []
            for each in passes:
                start = c_constant(np.dtype(call.output.dtype).type(each.start))
                declarations, step = c_lines(each.step)

                def element(inner: list[str], each: RowPass = each, text: str = step,
                            before: list[str] = declarations) -> list[str]:
                    x = rows.element("in0", call.inputs[0], indices, inner)
                    return [f"const {kind} x = {x};", *before, f"{each.name} = {text};"]

                lines += [f"{kind} {each.name} = {start};", *rows.each_element(element)]
            declarations, text = c_lines(result)
            return [*lines, *declarations, f"{rows.number('out', call.output, indices)} = {text};"]

        return rows.each_row(row)

    def helpers(self, call: Call) -> tuple[str, ...]:
        passes, result = self.scheme(call.output.dtype, self._rows(call).length)
        return helper_names(*(each.step for each in passes), result)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows = self._rows(call)
        passes, result = self.scheme(call.output.dtype, rows.length)
        element = sum(LOOP + access_cycles(memory) + expression_cycles(each.step) for each in passes)
        return START + int(rows.count * (rows.length * element + access_cycles(memory, 0, 1) + ROW
                                         + expression_cycles(result)))

    def _keeps(self, call: Call) -> bool:
        return self.spatial or bool(attribute(call, "keepdims", 1))

    def _rows(self, call: Call) -> Rows:
        dims = call.inputs[0].dims
        if self.spatial:
            if len(dims) < 3:
                raise Refused(f"{self.op} must have an input of rank 3 or more, not {dims!r}")
            return Rows(dims, tuple(range(2, len(dims))))
        axes = integers(call, "axes")
        if not axes:
            axes = [] if attribute(call, "noop_with_empty_axes", 0) else list(range(len(dims)))
        return Rows(dims, tuple(sorted({axis_of(axis, len(dims)) for axis in axes})))


def _simple(start: Callable[[str], Number], step: Callable[[Expression, Expression], Expression],
            finish: Callable[[Expression, int], Expression] = lambda total, count: total) -> _Scheme:
    def scheme(dtype: str, count: int) -> tuple[list[RowPass], Expression]:
        total, x = variable("total", dtype), variable("x", dtype)
        return [RowPass("total", start(dtype), step(total, x))], finish(total, count)
    return scheme


def _log_sum_exp(dtype: str, count: int) -> tuple[list[RowPass], Expression]:
    top, total, x = variable("top", dtype), variable("total", dtype), variable("x", dtype)
    finite = where(abs(top) < f.INFINITY, top, 0.0)
    return [RowPass("top", -f.INFINITY, greatest(top, x)), RowPass("total", 0, total + f.exp(x - finite))], \
        f.log(total) + finite


def lowest(dtype: str) -> Number:
    """Return the smallest value of ``dtype``."""
    return -f.INFINITY if dtype == "float32" else int(np.iinfo(dtype).min)


def _highest(dtype: str) -> Number:
    """Return the largest value of ``dtype``."""
    return f.INFINITY if dtype == "float32" else int(np.iinfo(dtype).max)


class Position(CheckedKernel):
    """ArgMax and ArgMin: where along an axis the extreme is, the first of several (or the last)."""

    limits = " ".join(NUMBERS)

    def __init__(self, op: str, better: str) -> None:
        self.op = op
        self.better = better

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        required(call, 0, NUMBERS)
        return "int64", self._rows(call).result_dims(keep=bool(attribute(call, "keepdims", 1)))

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        split = self._rows(call).split(array)
        best = split[0]
        index = np.zeros(best.shape, np.int64)
        compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[self._operator(call)]
        for k, x in enumerate(split[1:], 1):
            wins = compare(x, best)
            best, index = np.where(wins, x, best), np.where(wins, k, index)
        return index.reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, source = self._rows(call), call.inputs[0]
        if bytes_side_by_side(call, *rows.along):
            return position_lines(call, rows, self.better)
        kind = ctype(source.dtype)

        def row(indices: list[str]) -> list[str]:
            def element(inner: list[str]) -> list[str]:
                return [f"const {kind} x = {rows.element('in0', source, indices, inner)};",
                        f"if (x {self._operator(call)} best) {{", "    best = x;", f"    index = {inner[0]};", "}"]
            return [f"{kind} best = {rows.element('in0', source, indices, ['0'])};", "int32_t index = 0;",
                    *rows.each_element(element), f"{rows.number('out', call.output, indices)} = index;"]

        return rows.each_row(row)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows = self._rows(call)
        if bytes_side_by_side(call, *rows.along):
            return position_cycles(call, rows, memory)
        compare = 2 * BRANCH + (SINGLE["compare"] if call.inputs[0].dtype == "float32" else 0)
        return START + rows.count * (rows.length * (LOOP + access_cycles(memory) + compare) + ROW
                                     + access_cycles(memory, 0, 1))

    def _operator(self, call: Call) -> str:
        return self.better + ("=" if attribute(call, "select_last_index", 0) else "")

    def _rows(self, call: Call) -> Rows:
        dims = call.inputs[0].dims
        return Rows(dims, (axis_of(attribute(call, "axis", 0), len(dims)),))


class RunningSum(CheckedKernel):
    """CumSum: sums of all elements up to each one along an axis."""

    op = "CumSum"
    limits = "float32 int32 int64"
    parameters = {1: "axis"}  # noqa: RUF012

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ("float32", "int32", "int64"))
        self._rows(call)
        return source.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        split = self._rows(call).split(array)
        result = np.zeros_like(split)
        total = np.zeros_like(split[0])
        for k in reversed(range(len(split))) if attribute(call, "reverse", 0) else range(len(split)):
            before = total
            total = total + split[k]
            result[k] = before if attribute(call, "exclusive", 0) else total
        return np.ascontiguousarray(self._rows(call).joined(result))

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, source = self._rows(call), call.inputs[0]
        kind = ctype(source.dtype)
        last = rows.length - 1
        total = variable("total", source.dtype)
        add = f"total = {c_lines(total + variable('x', source.dtype))[1]};"

        def row(indices: list[str]) -> list[str]:
            def element(inner: list[str]) -> list[str]:
                place = [f"({last} - {inner[0]})"] if attribute(call, "reverse", 0) else inner
                store = f"{rows.element('out', call.output, indices, place)} = total;"
                load = f"const {kind} x = {rows.element('in0', source, indices, place)};"
                return [load, *([store, add] if attribute(call, "exclusive", 0) else [add, store])]
            return [f"{kind} total = 0;", *rows.each_element(element)]

        return rows.each_row(row)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        total = variable("total", call.output.dtype)
        rows = self._rows(call)
        each = access_cycles(memory, 1, 1) + LOOP + expression_cycles(total + total)
        return START + int(rows.count * rows.length * each)

    def _rows(self, call: Call) -> Rows:
        dims = call.inputs[0].dims
        axis = integers(call, "axis")
        if axis is None or len(axis) != 1:
            raise Refused(f"CumSum must have one constant axis, not {axis!r}")
        return Rows(dims, (axis_of(axis[0], len(dims)),))


def _zero(dtype: str) -> Number:
    return 0


SUM = "float32 relative 1e-5 (sums in another order), integers exact"
_FLOAT_SUM = "relative 1e-5 (sums in another order)"
_MEAN = _simple(_zero, lambda total, x: total + x, lambda total, count: total / float(count))
_MAXIMUM = _simple(lowest, greatest)
KERNELS = (
    Reduction("ReduceSum", _simple(_zero, lambda total, x: total + x), ("float32", "int32", "int64"), exactness=SUM),
    Reduction("ReduceMean", _MEAN, exactness=_FLOAT_SUM),
    Reduction("ReduceMax", _MAXIMUM, NUMBERS),
    Reduction("ReduceMin", _simple(_highest, least), NUMBERS),
    Reduction("ReduceProd", _simple(lambda dtype: 1, lambda total, x: total * x), ("float32", "int32", "int64"),
              exactness=SUM),
    Reduction("ReduceSumSquare", _simple(_zero, lambda total, x: total + x * x), exactness=_FLOAT_SUM),
    Reduction("ReduceL1", _simple(_zero, lambda total, x: total + abs(x)), exactness=_FLOAT_SUM),
    Reduction("ReduceL2", _simple(_zero, lambda total, x: total + x * x, lambda total, _: sqrt(total)),
              exactness=_FLOAT_SUM),
    Reduction("ReduceLogSum", _simple(_zero, lambda total, x: total + x, lambda total, _: f.log(total)),
              exactness=_FLOAT_SUM),
    Reduction("ReduceLogSumExp", _log_sum_exp, exactness=_FLOAT_SUM),
    Reduction("GlobalAveragePool", _MEAN, spatial=True, exactness=_FLOAT_SUM),
    Reduction("GlobalMaxPool", _MAXIMUM, spatial=True),
    Position("ArgMax", ">"),
    Position("ArgMin", "<"),
    RunningSum(),
)
