"""Normalisation of quantised values by a row's own mean and variance in integers, between the two quantisations.

A row's sum and its sum of squares are integers, and so is n² times its variance. One square root and one quotient in
float32 a row; an element takes two integer products: by the row's factor, which makes a number of mean 0 and variance 1
with 16 fractional bits, and by its gain in levels of the result, with 14.

Where the model quantises the variance itself, a row's factor is looked up by the variance's level. A factor of infinity
gives the highest level to what is above the mean and the lowest to all else, as QuantizeLinear does with infinities and
NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array, c_lines
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, attribute, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, ROW, START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, constant, evaluate, sqrt, variable
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.operators.normalisation import RowNormalisation
from tilewright.compiler.kernels.operators.quantisation import saturate
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["NORMALISATION_OF_LEVELS", "NormalisationOfLevels"]

_BYTES = ("int8", "uint8")
_KINDS = {kind: RowNormalisation(kind) for kind in (
    "InstanceNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization")}

_LONGEST = 1 << 16
"""Elements of a row, so that its sum of squares has 32 bits."""

_NORMAL_BITS, _LEVEL_BITS = 16, 14
"""Fractional bits of a normalised number, and of a level before it is rounded."""

_MANTISSA, _EXPONENT = 23, 150
"""Bits of a float32's fraction; its value is its 24 bits times two to the power of its exponent less this."""

_ENDLESS, _MOST_SHIFT = 255, 62
"""The exponent of infinity; what shifts any product of 64 bits to its sign."""

_SMALLEST, _MOST = 2.0**-6, 2.0**30
"""Of a row's deviation times its length, so that shifts go to the right; of levels with their fractional bits."""

_SPREAD = variable("spread", "float32")

_SUMS, _LEVEL, _SPREADING = 4, 34, 90
"""Cycles besides accesses and loops: of an element in the sums, in its level; of a row's spread as a float."""


@dataclass(frozen=True, slots=True)
class _NormalNumbers:
    """Rows, the axes that count gains, the factor of a row by its spread, gains and offsets in integers.

    With ``factors``, float32 by the variance's level from the lowest, ``factor`` is the index of one of them. ``zero``
    is taken from each element, whose mean counts if it is ``centred``.
    """

    rows: Rows
    axes: tuple[int, ...]
    factor: Expression
    factors: np.ndarray | None
    gains: np.ndarray
    offsets: np.ndarray
    centred: bool
    zero: int


class NormalisationOfLevels(CheckedKernel):
    """The normalisation ``kind`` of ``scale_value`` · x, quantised by ``y_scale`` and ``y_zero_point``.

    RMSNormalization is of ``scale_value`` · (x - ``zero_point_value``), which takes the place of the mean.

    ``gains`` and ``shifts`` are its scale and bias, ``low`` is the least level of the result.

    Instead of epsilon there may be ``factors``: by what the difference from the mean is multiplied, for each of the 256
    levels of the variance, which ``variance_scale``, ``variance_zero_point`` and ``variance_dtype`` quantise.
    """

    op = "NormalisationOfLevels"
    limits = ("int8 uint8, constant scale and bias, rows of up to 65536 elements; also where an exporter took it "
              "apart, and where the variance is quantised on the way")
    exactness = "within one level"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, _BYTES)
        if call.output.dtype not in _BYTES:
            raise Refused(f"{self.op} gives {' '.join(_BYTES)}, not {call.output.dtype}")
        self._numbers(call)
        return call.output.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array, numbers = arrays[0], self._numbers(call)
        assert array is not None
        rows = numbers.rows
        x = rows.split(array.reshape(rows.dims)).astype(np.int64) - numbers.zero
        sums, squares = x.sum(axis=0) * numbers.centred, (x * x).sum(axis=0)
        spread = (squares * rows.length - sums * sums).astype(np.uint64).astype(np.float32)
        factor = np.asarray(evaluate(numbers.factor, {"spread": spread}))
        if numbers.factors is not None:
            factor = numbers.factors[factor.astype(np.int64)]
        bits = np.asarray(factor, np.float32).view(np.uint32).astype(np.int64)
        endless = bits >> _MANTISSA == _ENDLESS
        bits = np.where(endless, 0, bits)
        mantissa = bits & (1 << _MANTISSA) - 1 | 1 << _MANTISSA
        shift = np.minimum(_EXPONENT - _NORMAL_BITS - (bits >> _MANTISSA), _MOST_SHIFT)
        normal = (x * rows.length - sums) * mantissa >> shift
        shape = tuple(extent if axis in numbers.axes else 1 for axis, extent in enumerate(rows.dims))
        gains, offsets = (rows.split(np.broadcast_to(each.astype(np.int64).reshape(shape), rows.dims))
                          for each in (numbers.gains, numbers.offsets))
        level = (normal * gains >> _NORMAL_BITS) + offsets >> _LEVEL_BITS
        low, high = self._bounds(call)
        level = np.where(endless, np.where(x * rows.length > sums, high, low), np.clip(level, low, high))
        result = rows.joined(level).astype(call.output.dtype)
        return np.ascontiguousarray(result).reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        numbers = self._numbers(call)
        rows, n, (low, high) = numbers.rows, numbers.rows.length, self._bounds(call)
        kernel = _KINDS[call.attrs["kind"]]
        source, out = (kernel.strides_of(each.strides, rows) for each in (call.inputs[0], call.output))
        steps, step = [0] * len(rows.dims), 1
        for axis in reversed(numbers.axes):
            steps[axis] = step
            step *= rows.dims[axis]

        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> str:
                less = f" - ({numbers.zero})" if numbers.zero else ""
                return f"const int32_t x = in0[{rows.offset(source, [*indices, *inner])}]{less};"

            def last(inner: list[str]) -> list[str]:
                k = rows.offset(tuple(steps), [*indices, *inner])
                return [load(inner), f"const int32_t normal = (int32_t)((int64_t)(x * {n} - sum) * mantissa >> shift);",
                        f"const int32_t scaled = (int32_t)((int64_t)normal * gains[{k}] >> {_NORMAL_BITS});",
                        f"const int32_t level = (scaled + offsets[{k}]) >> {_LEVEL_BITS};",
                        f"const int32_t capped = level < {high} ? level : {high};",
                        f"out[{rows.offset(out, [*indices, *inner])}] = capped > {low} ? capped : {low};"]

            def extreme(inner: list[str]) -> list[str]:
                return [load(inner), f"out[{rows.offset(out, [*indices, *inner])}] = x * {n} > sum ? {high} : {low};"]

            lines, text = c_lines(numbers.factor)
            endless = [f"if (factor.bits >> {_MANTISSA} == {_ENDLESS}) {{",
                       *(INDENT + line for line in rows.each_element(extreme)), INDENT + "continue;", "}"]
            if numbers.factors is not None:
                lines, text = [*lines, f"const int32_t place = {text};"], "0"
            added = ["sum += x;"] if numbers.centred else []
            union = "const union { float value; uint32_t bits; } factor = "
            return ["int32_t sum = 0;", "uint32_t squares = 0;",
                    *rows.each_element(lambda inner: [load(inner), *added, "squares += (uint32_t)(x * x);"]),
                    f"const float spread = (float)(uint64_t)((int64_t)squares * {n} - (int64_t)sum * sum);",
                    *lines, *([f"{union}{{ {text} }};"] if numbers.factors is None else
                              [f"{union}{{ .bits = factors[place] }};", *endless]),
                    f"const int32_t mantissa = (int32_t)(factor.bits & {(1 << _MANTISSA) - 1}) | {1 << _MANTISSA};",
                    f"int32_t shift = {_EXPONENT - _NORMAL_BITS} - (int32_t)(factor.bits >> {_MANTISSA});",
                    f"shift = shift < {_MOST_SHIFT} ? shift : {_MOST_SHIFT};",
                    *rows.each_element(last)]

        tables = [*c_array("gains", numbers.gains), *c_array("offsets", numbers.offsets)]
        if numbers.factors is not None:
            tables += c_array("factors", numbers.factors.view(np.uint32))
            return [*tables, *rows.each_row(row)] if rows.count > 1 else \
                [*tables, "do {", *(INDENT + line for line in rows.each_row(row)), "} while (0);"]
        return [*tables, *rows.each_row(row)]

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(self._numbers(call).factor)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        numbers = self._numbers(call)
        element = 2 * (access_cycles(memory) + LOOP) + access_cycles(memory, 0, 1) + _SUMS + _LEVEL
        row = ROW + _SPREADING + expression_cycles(numbers.factor)
        return START + int(numbers.rows.count * (numbers.rows.length * element + row))

    @staticmethod
    def _bounds(call: Call) -> tuple[int, int]:
        bounds = np.iinfo(call.output.dtype)
        return max(int(bounds.min), int(attribute(call, "low", bounds.min))), int(bounds.max)

    def _numbers(self, call: Call) -> _NormalNumbers:
        kind = call.attrs.get("kind")
        if kind not in _KINDS:
            raise Refused(f"{self.op} must be of {' '.join(_KINDS)}, not {kind!r}")
        rows, axes = _KINDS[kind].rows_of(call)
        scale, y_scale, zero = (float(call.attrs[name]) for name in ("scale_value", "y_scale", "y_zero_point"))
        gains, shifts = (np.array(call.attrs[name], np.float64) for name in ("gains", "shifts"))
        count = math.prod(rows.dims[axis] for axis in axes)
        if gains.shape != (count,) or shifts.shape != (count,) or not 0 < rows.length <= _LONGEST:
            raise Refused(f"{self.op} must have {count} gains and shifts and rows of up to {_LONGEST} elements, not "
                          f"{gains.size}, {shifts.size} and {rows.length}")
        if not (scale > 0 and y_scale > 0):
            raise Refused(f"{self.op} must have positive scales, not {scale} and {y_scale}")
        factor, factors, largest = _looked_up(call, rows, scale) if "factors" in call.attrs else \
            _computed(call, rows, scale)
        gain, offset = gains / y_scale * 2.0**_LEVEL_BITS, (shifts / y_scale + zero + 0.5) * 2.0**_LEVEL_BITS
        if not (np.isfinite(gain).all() and np.isfinite(offset).all() and largest < 2.0**(31 - _NORMAL_BITS)
                and (np.abs(gain) * largest + np.abs(offset)).max() < _MOST):
            raise Refused(f"{self.op} must have scales, gains and shifts of some 16 bits")
        centred = _KINDS[kind].centred
        return _NormalNumbers(rows, axes, factor, factors, np.rint(gain).astype(np.int32),
                              np.rint(offset).astype(np.int32), centred,
                              0 if centred else int(call.attrs["zero_point_value"]))


def _computed(call: Call, rows: Rows, scale: float) -> tuple[Expression, None, float]:
    """Return a row's factor by its spread, and a bound of normalised numbers: the root of the row's length."""
    epsilon = float(attribute(call, "epsilon", 1e-5))
    # Less than the least would show only where all elements are equal, and there any will do.
    extra = max(epsilon / scale**2 * rows.length**2, _SMALLEST**2) if epsilon > 0 else 0.0
    if not _SMALLEST**2 <= extra < _MOST**2:
        raise Refused(f"{call.kernel} must have an epsilon that counts beside its scale, not {epsilon}")
    return 1.0 / sqrt(_SPREAD + float(np.float32(extra))), None, math.sqrt(rows.length)


def _looked_up(call: Call, rows: Rows, scale: float) -> tuple[Expression, np.ndarray, float]:
    """Return the place of a row's factor by its spread, the factors, and a bound of normalised numbers."""
    step, zero = float(call.attrs["variance_scale"]), int(call.attrs["variance_zero_point"])
    bounds, given = np.iinfo(call.attrs["variance_dtype"]), np.array(call.attrs["factors"], np.float64)
    if given.shape != (256,) or not step > 0 or np.isnan(given).any() or (given < 0).any():
        raise Refused(f"{call.kernel} must have 256 factors that are not negative, and a positive scale of variances")
    # A level stands for all variances that are rounded to it, the last one for all above; none exceeds that of bytes.
    levels = np.arange(bounds.min, bounds.max + 1)
    variances = np.maximum((levels + 0.5 - zero) * step, 0.0)
    variances[-1] = math.inf
    most = np.minimum(np.sqrt(np.minimum(variances, (127.5 * scale)**2) * rows.length), 255 * scale)
    finite = np.isfinite(given)
    largest = float((most[finite] * given[finite]).max(initial=0.0))
    quotient = _SPREAD * float(np.float32(scale**2 / rows.length**2 / step))
    place = saturate(quotient, constant(zero, "int32"), str(call.attrs["variance_dtype"])).cast("int32")
    factors = (given * scale / rows.length).astype(np.float32)
    if not (factors[finite] < _MOST).all() or not ((factors[finite] > 2.0**-100) | (factors[finite] == 0)).all():
        raise Refused(f"{call.kernel} must have factors of some 16 bits")
    return place - int(bounds.min), factors, largest


NORMALISATION_OF_LEVELS = NormalisationOfLevels()
