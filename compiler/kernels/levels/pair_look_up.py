"""Functions of two tensors of levels: any, by a table of its 65,536 values, and quotients, by a factor per divisor."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Refused, at_most, required
from tilewright.compiler.kernels.language.core_cycles import LOOK_UP, LOOP, START, access_cycles
from tilewright.compiler.kernels.language.expression import (
    Expression,
    constant,
    evaluate,
    high,
    look_up,
    nodes,
    not_equal,
    variable,
    where,
)
from tilewright.compiler.kernels.language.float_functions import DIVIDED_LEVELS
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.compiler.kernels.operators.quantisation import dequantised_levels
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["PAIR_LOOK_UP", "QUOTIENT_OF_LEVELS", "PairLookUp", "QuotientOfLevels", "quotient_factors"]

_VALUES = 256
_BYTES = ("int8", "uint8")
_FRACTION = 13
"""Bits of a quotient below its point, when its level is added."""

_RISE, _CUT = 22, 10
"""Bits that a dividend is shifted up by, so that the high word of its product with a factor is cut off by ``_CUT``."""

_TRIED = 3
"""Factors next to the nearest, on either side, that are tried for a divisor."""

_QUICK, _FLOAT = 18, 230
"""Cycles of an element by whole numbers, but for looking its factor up, and in floats."""

_WORK = 8
"""Cycles of an element besides its loop and accesses: the index of its entry."""


class PairLookUp(CheckedKernel):
    """Elements ``a`` and ``b`` become entry (128 + a, 128 + b) of the third input, int8 of shape (256, 256)."""

    op = "PairLookUp"
    limits = "two int8 tensors of the same shape, and a table of 256 by 256 int8"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 3)
        a, b, table = (required(call, position, ("int8",)) for position in range(3))
        if a.dims != b.dims:
            raise Refused(f"{self.op} must have two tensors of the same shape, not {a.dims!r} and {b.dims!r}")
        if table.dims != (_VALUES, _VALUES):
            raise Refused(f"{self.op} must have a table of {_VALUES} by {_VALUES}, not {table.dims!r}")
        return "int8", a.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        del call
        a, b, table = arrays
        assert a is not None
        assert b is not None
        assert table is not None
        return np.asarray(table[a.astype(np.int16) + 128, b.astype(np.int16) + 128])

    def c_body(self, call: Call, function: str) -> list[str]:
        del function
        a, b = call.inputs[:2]

        def one(places: list[str]) -> list[str]:
            own, other = (f"in{number}[{offset_text(0, each.strides, places)}]" for number, each in enumerate((a, b)))
            target = f"out[{offset_text(0, call.output.strides, places)}]"
            return [f"{target} = in2[({own} + 128) * {_VALUES} + {other} + 128];"]

        return loops(call.output.dims, one)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        # The entry's load waits for those of the operands.
        element = LOOP + _WORK + access_cycles(memory, 2) + access_cycles(memory, 1, 1)
        return START + call.output.elements * element


PAIR_LOOK_UP = PairLookUp()


class QuotientOfLevels(Elementwise):
    """Levels of the quotient of what two tensors of levels stand for, as Q(Div(DQ(a), DQ(b))) gives them.

    Attributes ``a_scale``, ``a_zero_point``, ``b_scale``, ``b_zero_point``, ``y_scale``, ``y_zero_point`` and
    ``y_dtype`` are those of the three, ``factors`` and ``offsets`` the lists of `quotient_factors`.
    """

    def __init__(self) -> None:
        super().__init__("QuotientOfLevels", self._level, [_BYTES, _BYTES], inputs=(2, 2), same=False,
                         limits="int8 uint8, of one positive scale each")

    def _level(self, call: Call, a: Expression | None, b: Expression | None) -> Expression:
        attrs = call.attrs
        if a is None or b is None or attrs.get("y_dtype") not in _BYTES:
            raise Refused(f"{self.op} must have two tensors of levels and give levels")
        place = (b.cast("int32") - int(np.iinfo(b.dtype).min)).named("place")
        factor, offset = (look_up(np.array(attrs[name], np.int32), place).named(name[:-1])
                          for name in ("factors", "offsets"))
        dividend = (a.cast("int32") - int(attrs["a_zero_point"])).named("dividend")
        level = ((high(dividend << _RISE, factor) + offset) >> _FRACTION).named("level")
        bounds = np.iinfo(attrs["y_dtype"])
        level = where(level < int(bounds.min), constant(int(bounds.min), "int32"), level).named("raised")
        level = where(level > int(bounds.max), constant(int(bounds.max), "int32"), level).cast(attrs["y_dtype"])
        return where(not_equal(factor, constant(0, "int32")), level, self._divided(attrs, a, b)) \
            if 0 in attrs["factors"] else level

    @staticmethod
    def _divided(attrs: Mapping[str, Any], a: Expression, b: Expression) -> Expression:
        """Return the level by a division of floats."""
        real = [(each.cast("int32") - int(attrs[f"{name}_zero_point"])).cast("float32")
                * constant(attrs[f"{name}_scale"], "float32") for name, each in (("a", a), ("b", b))]
        return DIVIDED_LEVELS[attrs["y_dtype"]](real[0] / real[1], constant(attrs["y_scale"], "float32"),
                                                constant(attrs["y_zero_point"], "float32"))

    def formula_cycles(self, call: Call, part: Expression) -> float:
        if not any(node.op == "high" for node in nodes(part)):
            return super().formula_cycles(call, part)
        divided = call.attrs["factors"].count(0) / _VALUES
        looked_up = LOOK_UP * any(node.op == "look_up" for node in nodes(part))
        return _QUICK * (1 - divided) + looked_up + _FLOAT * divided


QUOTIENT_OF_LEVELS = QuotientOfLevels()


def quotient_factors(attrs: Mapping[str, Any], a_dtype: str, b_dtype: str) -> tuple[list[int], list[int]]:
    """Return a factor and an offset for each level of a divisor, in ascending order, for `QuotientOfLevels`.

    Each is held to the division of floats for all 256 dividends. A factor of 0 says that none gives all of them, so
    that such a divisor is left to the floats.
    """
    real = {name: dequantised_levels(attrs[f"{name}_scale"], attrs[f"{name}_zero_point"], dtype)
            for name, dtype in (("a", a_dtype), ("b", b_dtype))}
    with np.errstate(all="ignore"):
        quotients = real["a"][None] / real["b"][:, None]
        slopes = attrs["a_scale"] / (real["b"].astype(np.float64) * attrs["y_scale"]) * 2.0**(_FRACTION + _CUT)
    divided = DIVIDED_LEVELS[attrs["y_dtype"]](variable("x", "float32"), constant(attrs["y_scale"], "float32"),
                                               constant(attrs["y_zero_point"], "float32"))
    wanted = np.asarray(evaluate(divided, {"x": quotients})).astype(np.int64)
    dividends = np.arange(_VALUES) + np.iinfo(a_dtype).min - attrs["a_zero_point"]
    most = 2**31 - 1 - _TRIED
    nearest = np.clip(np.nan_to_num(np.rint(slopes), nan=most, posinf=most, neginf=-most), -most, most).astype(np.int64)
    bounds, unit = np.iinfo(attrs["y_dtype"]), 1 << _FRACTION
    factors, offsets = np.zeros((2, _VALUES), np.int64)
    for step in sorted(range(-_TRIED, _TRIED + 1), key=abs, reverse=True):
        tried = nearest + step
        product = tried[:, None] * dividends[None] >> _CUT
        least = np.where(wanted > bounds.min, wanted * unit - product, -2**28).max(axis=1)
        most_offset = np.where(wanted < bounds.max, (wanted + 1) * unit - 1 - product, 2**28).min(axis=1)
        fits = (least <= most_offset) & (tried != 0)
        factors = np.where(fits, tried, factors)
        offsets = np.where(fits, (least + most_offset) // 2, offsets)
    return factors.tolist(), offsets.tolist()
