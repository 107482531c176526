"""Entries of a table of positive floats times a positive float, in integers: a third of a soft product's cycles.

The mantissas of the table are known, and the factor's is taken apart once a row. The product of two mantissas, each
with its highest bit set, has 62 or 63 bits; of its upper half 24 bits are kept, rounded to nearest, halves upwards.
So a result is the float product, but for halves, which that rounds to even. Where it would be subnormal it is computed
as a float product.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array, c_lines
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.core_cycles import expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, evaluate, high, variable

__all__ = ["ScaledTable"]

_MANTISSA, _HIDDEN, _BIAS = 23, 1 << 23, 127
_NEVER = -(1 << 30)
"""Place of an entry that is zero or subnormal."""

_SMALLEST_FACTOR = -14
"""Exponent of the smallest factor: one over the longest row."""

_ENTRY = 4
"""Cycles of the two words of an entry."""


def _product() -> Expression:
    mantissa, factor = variable("mantissa", "uint32"), variable("factor_bits", "uint32")
    place = variable("place", "int32")
    upper = high(mantissa, factor).named("upper")
    over = (upper >> 31).named("over")
    kept = ((upper >> (over + 6)) + 1) >> 1
    return (place + (kept + (over << _MANTISSA)).cast("int32")).view("float32")


_PRODUCT = _product()


@dataclass(frozen=True, slots=True)
class ScaledTable:
    """A table of float32 from 0 to 1 that is multiplied by a factor from 2^-14 to 1."""

    values: np.ndarray

    @property
    def mantissas(self) -> np.ndarray:
        """The 24 bits of each entry's mantissa as the highest of a uint32."""
        return ((self.values.view(np.uint32) & (_HIDDEN - 1)) | _HIDDEN) << np.uint32(8)

    @property
    def places(self) -> np.ndarray:
        """The exponents, int32, so that a mantissa of 24 bits can be added."""
        exponents = (self.values.view(np.int32) >> _MANTISSA) - 1
        return np.where(exponents < 0, _NEVER, exponents << _MANTISSA).astype(np.int32)

    @property
    def all_normal(self) -> bool:
        """Whether no product is subnormal."""
        return bool((self.places >= -_SMALLEST_FACTOR << _MANTISSA).all())

    def times(self, index: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """Return float32 ``values[index]`` times ``factor``, which is float32 too; both are broadcast."""
        bits = factor.view(np.int32)
        place = self.places[index] + ((bits >> _MANTISSA) - _BIAS << _MANTISSA)
        mantissa = (bits.view(np.uint32) & np.uint32(_HIDDEN - 1) | np.uint32(_HIDDEN)) << np.uint32(8)
        product = evaluate(_PRODUCT, {"mantissa": self.mantissas[index], "place": place, "factor_bits": mantissa})
        return np.where(place < 0, self.values[index] * factor, product)

    def c_tables(self) -> list[str]:
        """Return the tables in C."""
        names = {"mantissas": self.mantissas, "places": self.places}
        if not self.all_normal:
            names["values"] = self.values
        return [line for name, values in names.items() for line in c_array(name, values)]

    @staticmethod
    def c_factor() -> list[str]:
        """Return the lines that take apart the float ``factor``."""
        return ["const int32_t bits = tw_bits(factor);",
                f"const int32_t base = ((bits >> {_MANTISSA}) - {_BIAS}) * {_HIDDEN};",
                f"const uint32_t factor_bits = (((uint32_t)bits & {_HIDDEN - 1}) | {_HIDDEN}) << 8;"]

    def c_times(self, index: str, target: str) -> list[str]:
        """Return the lines that store entry ``index`` times the factor at ``target``."""
        lines, text = c_lines(_PRODUCT)
        product = f"{text}" if self.all_normal else f"place < 0 ? values[{index}] * factor : {text}"
        return [f"const uint32_t mantissa = mantissas[{index}];", f"const int32_t place = places[{index}] + base;",
                *lines, f"{target} = {product};"]

    @staticmethod
    def helpers() -> tuple[str, ...]:
        """Return the names of the shared C functions that the lines use."""
        return (*helper_names(_PRODUCT), "tw_bits")

    @staticmethod
    def cycles() -> float:
        """Return the cycles of an entry times the factor."""
        return _ENTRY + expression_cycles(_PRODUCT)
