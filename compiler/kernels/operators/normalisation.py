"""Normalisations: by given statistics, by a row's own mean and variance, by its neighbours in other channels."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language import float_functions as f
from tilewright.compiler.kernels.language.c_expression import c_lines
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Refused,
    at_most,
    attribute,
    axis_of,
    optional,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import LOOP, ROW, SINGLE, START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, constant, equal, evaluate, sqrt, variable, where
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.operators.arithmetic import FLOAT
from tilewright.compiler.kernels.operators.elementwise import ElementwisePerChannel
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "SQUARES", "BatchNormalisation", "LocalResponse", "LpNormalization", "RowNormalisation"]


def _batch_normalisation(call: Call, x: Expression, scale: Expression, bias: Expression, mean: Expression,
                         variance: Expression) -> Expression:
    if attribute(call, "training_mode", 0) or not attribute(call, "spatial", 1):
        raise Refused("BatchNormalization must be in inference mode, with one mean per channel")
    factor = (scale / sqrt(variance + float(attribute(call, "epsilon", 1e-5)))).named("factor")
    return x * factor + (bias - mean * factor)


_X, _MEAN, _TOTAL, SQUARES, _DEVIATION, _SCALE, _BIAS = (variable(name, "float32") for name in (
    "x", "mean", "total", "squares", "deviation", "scale", "bias"))
_SUM = _TOTAL + _X
_DISTANCE = (_X - _MEAN).named("distance")
_SUM_OF_SQUARES = SQUARES + _DISTANCE * _DISTANCE


class RowNormalisation(CheckedKernel):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and variance of each row.

    ``InstanceNormalization``: a row is a channel's image. ``LayerNormalization``: it runs along the last axes.
    ``GroupNormalization`` (opset 21): it is the images of a group of channels. ``RMSNormalization`` is that of layers
    with 0 in place of the mean, and without a bias.
    """

    limits = "float32; between quantisations in integers within one level, also where an exporter took it apart"
    exactness = "relative 1e-5 (sums in another order)"

    def __init__(self, op: str) -> None:
        self.op = op
        self.centred = op != "RMSNormalization"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 3 if self.centred else 2)
        source = required(call, 0, FLOAT)
        dims = source.dims
        rows, axes = self.rows_of(call)
        expected = tuple(rows.dims[axis] for axis in axes)
        for position in (1, 2) if self.centred else (1,):
            vector = required(call, position, FLOAT) if position == 1 or self.op != "LayerNormalization" else \
                optional(call, position, FLOAT)
            if vector is not None and math.prod(vector.dims) != math.prod(expected):
                raise Refused(f"{self.op} must have {math.prod(expected)} numbers as input {position}, "
                              f"not {vector.dims!r}")
        return source.dtype, dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        rows, axes = self.rows_of(call)
        split = rows.split(array.reshape(rows.dims))
        count = np.float32(rows.length)
        total = np.zeros(rows.count, np.float32)
        for x in split if self.centred else ():
            total = evaluate(_SUM, {"total": total, "x": x})
        mean = total / count
        squares = np.zeros(rows.count, np.float32)
        for x in split:
            squares = evaluate(_SUM_OF_SQUARES, {"squares": squares, "x": x, "mean": mean})
        shape = tuple(dim if axis in axes else 1 for axis, dim in enumerate(rows.dims))
        given: list[np.ndarray] = [np.zeros((), np.float32) if position >= len(arrays) or arrays[position] is None
                                   else np.asarray(arrays[position]).reshape(shape) for position in (1, 2)]
        vectors = [rows.split(np.broadcast_to(each, rows.dims)) for each in given]
        deviation = evaluate(self._deviation(call, rows), {"squares": squares})
        values = {"x": split, "mean": mean, "deviation": deviation, "scale": vectors[0], "bias": vectors[1]}
        result = np.asarray(evaluate(self._last(call), values))
        return np.ascontiguousarray(rows.joined(result)).reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, axes = self.rows_of(call)
        source, out = (self.strides_of(each.strides, rows) for each in (call.inputs[0], call.output))
        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> str:
                return f"const float x = in0[{rows.offset(source, [*indices, *inner])}];"

            def adds(inner: list[str]) -> list[str]:
                return [load(inner), f"total = {c_lines(_SUM)[1]};"]

            def squares(inner: list[str]) -> list[str]:
                lines, text = c_lines(_SUM_OF_SQUARES)
                return [load(inner), *lines, f"squares = {text};"]

            def last(inner: list[str]) -> list[str]:
                steps = [0] * len(rows.dims)
                step = 1
                for axis in reversed(axes):
                    steps[axis] = step
                    step *= rows.dims[axis]
                vectors = [f"const float {name} = in{position}[{rows.offset(tuple(steps), [*indices, *inner])}];"
                           for name, position in (("scale", 1), ("bias", 2)) if self._given(call, position)]
                lines, text = c_lines(self._last(call))
                return [load(inner), *vectors, *lines, f"out[{rows.offset(out, [*indices, *inner])}] = {text};"]

            deviation = c_lines(self._deviation(call, rows))[1]
            means = ["float total = 0.0f;", *rows.each_element(adds), f"const float mean = total / {rows.length}.0f;"]
            return [*(means if self.centred else ["const float mean = 0.0f;"]),
                    "float squares = 0.0f;", *rows.each_element(squares),
                    f"const float deviation = {deviation};",
                    *rows.each_element(last)]

        return rows.each_row(row)

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(self._deviation(call, self.rows_of(call)[0]), self._last(call))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows, _ = self.rows_of(call)
        work = sum(map(expression_cycles, (_SUM, _SUM_OF_SQUARES, self._last(call))))
        accesses = 2 * access_cycles(memory) + access_cycles(memory, 2, 1)
        row = ROW + expression_cycles(self._deviation(call, rows)) + SINGLE["divide"]
        return START + int(rows.count * (rows.length * (accesses + 3 * LOOP + work) + row))

    def _deviation(self, call: Call, rows: Rows) -> Expression:
        return sqrt(SQUARES / float(rows.length) + float(attribute(call, "epsilon", 1e-5)))

    def _last(self, call: Call) -> Expression:
        normal = (_X - _MEAN) / _DEVIATION
        return normal * _SCALE + _BIAS if self._given(call, 2) else normal * _SCALE

    @staticmethod
    def _given(call: Call, position: int) -> bool:
        return position < len(call.inputs) and bool(call.inputs[position].dtype)

    def rows_of(self, call: Call) -> tuple[Rows, tuple[int, ...]]:
        """Return the rows, and the axes along which scale and bias lie; of groups the channels are two axes."""
        dims = call.inputs[0].dims
        match self.op:
            case "LayerNormalization" | "RMSNormalization":
                along = tuple(range(axis_of(attribute(call, "axis", -1), len(dims)), len(dims)))
                return Rows(dims, along), along
            case "GroupNormalization":
                groups = int(call.attrs["num_groups"])
                if len(dims) < 3 or groups < 1 or dims[1] % groups:
                    raise Refused(f"GroupNormalization must have channels in {groups} groups, not {dims!r}")
                split = (dims[0], groups, dims[1] // groups, *dims[2:])
                return Rows(split, tuple(range(2, len(split)))), (1, 2)
        if len(dims) < 3:
            raise Refused(f"{self.op} must have an input of rank 3 or more, not {dims!r}")
        return Rows(dims, tuple(range(2, len(dims)))), (1,)

    @staticmethod
    def strides_of(strides: Dims, rows: Rows) -> Dims:
        """Return the strides of a tensor over the dims of its rows."""
        if len(rows.dims) == len(strides):
            return strides
        return (strides[0], strides[1] * rows.dims[2], *strides[1:])


_MAX_NEIGHBOURS = 1 << 16


class LocalResponse(CheckedKernel):
    """LRN: x / (bias + alpha / size * Σ x²) ** beta, the sum over neighbouring channels."""

    op = "LRN"
    limits = "float32"
    exactness = "relative 1e-5"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, FLOAT)
        if len(source.dims) < 3 or not 1 <= self._size(call) <= _MAX_NEIGHBOURS:
            raise Refused(f"LRN must have an input of rank 3 or more and a size from 1 to {_MAX_NEIGHBOURS}, "
                          f"not {source.dims!r} and {call.attrs.get('size')!r}")
        self._last(call)
        return source.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        x = arrays[0]
        assert x is not None
        before = (self._size(call) - 1) // 2
        channels = x.shape[1]
        total = np.zeros_like(x)
        for shift in range(-before, self._size(call) - before):
            low, high = max(0, -shift), min(channels, channels - shift)
            if low < high:
                near = x[:, low + shift:high + shift]
                total[:, low:high] = evaluate(_TOTAL + _X * _X, {"total": total[:, low:high], "x": near})
        return np.asarray(evaluate(self._last(call), {"x": x, "total": total}))

    def c_body(self, call: Call, function: str) -> list[str]:
        source = call.inputs[0]
        before = (self._size(call) - 1) // 2
        after = self._size(call) - 1 - before
        channels = source.dims[1]
        lines, text = c_lines(self._last(call))

        def element(indices: list[str]) -> list[str]:
            near = offset_text(0, source.strides, [indices[0], "c", *indices[2:]])
            low, high = f"{indices[1]} - {before}", f"{indices[1]} + {after}"
            return ["float total = 0.0f;",
                    f"const int32_t low = {low} < 0 ? 0 : {low};",
                    f"const int32_t high = {high} >= {channels} ? {channels - 1} : {high};",
                    "for (int32_t c = low; c <= high; c++) {", f"    const float near = in0[{near}];",
                    "    total = total + near * near;", "}",
                    f"const float x = in0[{offset_text(0, source.strides, indices)}];", *lines,
                    f"out[{offset_text(0, call.output.strides, indices)}] = {text};"]

        return loops(call.output.dims, element)

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(self._last(call))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        near = self._size(call) * (access_cycles(memory) + LOOP + expression_cycles(_TOTAL + _X * _X))
        each = near + access_cycles(memory, 1, 1) + ROW + expression_cycles(self._last(call))
        return START + int(math.prod(call.output.dims) * each)

    def _size(self, call: Call) -> int:
        return int(call.attrs["size"])

    def _last(self, call: Call) -> Expression:
        alpha, beta, bias = (float(attribute(call, name, default)) for name, default in
                             (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
        base = _TOTAL * (alpha / self._size(call)) + bias
        if beta == 0.75:  # as it nearly always is: two square roots instead of a power
            root = sqrt(base).named("root")
            return _X / (root * sqrt(root))
        return _X / f.power(base, _TOTAL * 0 + beta)


class LpNormalization(CheckedKernel):
    """x divided by the norm along an axis: of order 1 or 2; 0 where that is 0."""

    op = "LpNormalization"
    limits = "float32; p 1 or 2"
    exactness = "relative 1e-5 (sums in another order)"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, FLOAT)
        if attribute(call, "p", 2) not in (1, 2):
            raise Refused(f"LpNormalization must have p 1 or 2, not {call.attrs['p']!r}")
        self.rows_of(call)
        return source.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        rows = self.rows_of(call)
        split = rows.split(array)
        total = np.zeros(rows.count, np.float32)
        for x in split:
            total = evaluate(self._step(call), {"total": total, "x": x})
        result = np.asarray(evaluate(self._last(call), {"x": split, "total": total}))
        return np.ascontiguousarray(rows.joined(result))

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, source = self.rows_of(call), call.inputs[0]

        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> str:
                return f"const float x = {rows.element('in0', source, indices, inner)};"

            def last(inner: list[str]) -> list[str]:
                lines, text = c_lines(self._last(call))
                return [load(inner), *lines, f"{rows.element('out', call.output, indices, inner)} = {text};"]

            step = c_lines(self._step(call))[1]
            return ["float total = 0.0f;", *rows.each_element(lambda inner: [load(inner), f"total = {step};"]),
                    *rows.each_element(last)]

        return rows.each_row(row)

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(self._step(call), self._last(call))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        work = expression_cycles(self._step(call)) + expression_cycles(self._last(call))
        return START + int(math.prod(call.output.dims) * (3 * access_cycles(memory) + 2 * LOOP + work))

    def _step(self, call: Call) -> Expression:
        return _TOTAL + (abs(_X) if attribute(call, "p", 2) == 1 else _X * _X)

    def _last(self, call: Call) -> Expression:
        norm = _TOTAL if attribute(call, "p", 2) == 1 else sqrt(_TOTAL)
        return where(equal(_TOTAL, 0), constant(0, "float32"), _X / norm)

    def rows_of(self, call: Call) -> Rows:
        dims = call.inputs[0].dims
        return Rows(dims, (axis_of(attribute(call, "axis", -1), len(dims)),))


class BatchNormalisation(ElementwisePerChannel):
    """Every channel less its mean, over its deviation."""

    def axis(self, call: Call, position: int) -> int:
        return 1


KERNELS = (
    BatchNormalisation("BatchNormalization", _batch_normalisation, [FLOAT], inputs=(5, 5), exactness="relative 1e-5",
                       limits="float32, inference only"),
    RowNormalisation("InstanceNormalization"), RowNormalisation("LayerNormalization"),
    RowNormalisation("GroupNormalization"), RowNormalisation("RMSNormalization"), LocalResponse(), LpNormalization(),
)
