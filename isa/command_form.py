"""Shifts and masks of a variant's operands and flags, computed once for each variant of the table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilewright.isa.encoding import EncodingError, Field, Variant

__all__ = ["CommandForm", "OperandField", "fields_of", "form_of", "pack_fields"]


@dataclass(frozen=True, slots=True)
class OperandField:
    """Position of a field in its operand, and the values that fit; ``sign`` is the weight of the sign bit, or 0."""

    name: str
    low: int
    mask: int
    sign: int
    least: int
    greatest: int


def fields_of(fields: Iterable[Field]) -> tuple[OperandField, ...]:
    """Return the fields of an operand, packed from bit 0 upwards."""
    found, low = [], 0
    for field in fields:
        found.append(OperandField(field.name, low, (1 << field.width) - 1,
                                  1 << (field.width - 1) if field.signed else 0, field.range.start,
                                  field.range.stop - 1))
        low += field.width
    return tuple(found)


def pack_fields(fields: Iterable[OperandField], values: Mapping[str, int]) -> int:
    """Return the 32-bit operand that holds ``values``; fields not named are zero.

    Raises
    ------
    EncodingError
        If a value does not fit its field.
    """
    word = 0
    for field in fields:
        value = values.get(field.name)
        if value:
            if not field.least <= value <= field.greatest:
                raise EncodingError(f"Operand {field.name} must be in {field.least}..{field.greatest}, not {value!r}")
            word |= (value & field.mask) << field.low
    return word


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A variant's fields by operand, and their names.

    ``flag_sets`` are the flags by the four low bits of funct7; ``funct7`` is that of flags as asked for so far.
    """

    rs1: tuple[OperandField, ...]
    rs2: tuple[OperandField, ...]
    names: frozenset[str]
    funct7: dict[tuple[str, ...], int]
    flag_sets: dict[int, tuple[str, ...]]

    def values(self, rs1: int, rs2: int) -> dict[str, int]:
        """Return the values of all fields in two operands."""
        values = {}
        for fields, word in ((self.rs1, rs1), (self.rs2, rs2)):
            for field in fields:
                value = word >> field.low & field.mask
                values[field.name] = value - 2 * field.sign if value & field.sign else value
        return values

    def flags(self, funct7: int) -> tuple[str, ...]:
        """Return the names of the semaphore flags that are set, lowest bit first."""
        return self.flag_sets[funct7 & 15]


_FORMS: dict[int, tuple[Variant, CommandForm]] = {}
"""By the identity of the variant, which lies beside its form, so that no other can have it."""


def form_of(variant: Variant) -> CommandForm:
    """Return a variant's form."""
    known = _FORMS.get(id(variant))
    if known is None:
        form = CommandForm(fields_of(variant.rs1), fields_of(variant.rs2),
                           frozenset(field.name for field in variant.fields), {}, {bits: tuple(
                               flag.name for place, flag in enumerate(variant.flags)
                               if flag is not None and bits >> place & 1) for bits in range(16)})
        known = _FORMS[id(variant)] = variant, form
    return known[1]
