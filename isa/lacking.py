"""Instructions that a machine lacks: the unit that each variant or operand needs, and whether the machine has it."""

from collections.abc import Mapping

from tilewright.isa.encoding import EXTENSION, INSTRUCTIONS, KNOWN, Instruction, Variant
from tilewright.isa.extension import stage_of, unit_of
from tilewright.isa.machine import Machine

__all__ = ["OWN_STAGE", "OWN_UNIT", "WINOGRAD", "has_unit", "lacking", "lacks", "variants_of"]

WINOGRAD = "an array for conv23"
"""Stands for the arrays that have conv23, beside the names of `isa.machine.UNITS`."""

OWN_STAGE, OWN_UNIT = "the stage of an extension", "the unit of an extension"
"""Stand for the instruction of a user's own, beside the names of `isa.machine.UNITS`."""

_VARIANTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("conv23", "run"): (WINOGRAD, "column_reuse"),
    ("conv23", "run_without_reuse"): (WINOGRAD,),
    ("conv23", "run_by_channel"): (WINOGRAD, "channel_kernels"),
    ("conv23", "run_four_patches"): (WINOGRAD, "channel_kernels", "four_patches"),
    ("lda", "blocked"): (WINOGRAD,),
    ("lda", "fill_blocked"): (WINOGRAD,),
    ("lda", "residual"): ("residual_adder",),
    ("ldw", "ninths"): (WINOGRAD,),
    ("ldw", "table"): ("value_tables",),
    ("ldw", "coded_main"): ("coded_weights",),
    ("ldw", "coded_ninths"): (WINOGRAD, "coded_weights"),
    ("ldw", "set_coded"): ("coded_weights",),
    ("conv", "set_planes"): ("wide_words",),
    ("pool", "set_words"): ("wide_words",),
    ("act", "rows"): ("value_tables", "row_unit"),
    ("act", "set_rows"): ("value_tables", "row_unit"),
    ("act", "set_norm"): ("value_tables", "row_unit"),
    ("act", "set_residual_scale"): ("residual_adder",),
    ("act", "set_residual_offset"): ("residual_adder",),
    ("pool", "window"): ("max_pooling",),
    ("sta", "linear"): ("chaining",),
    ("sta", "blocked"): ("chaining", WINOGRAD),
    ("extension", "set_stage"): (OWN_STAGE,),
    ("extension", "run_unit"): (OWN_UNIT,),
}
"""Units that a variant needs."""

_OPERANDS = {
    ("act", "run", "winograd"): WINOGRAD,
    ("act", "run", "residual"): "residual_adder",
    ("act", "run", "pooled"): "max_pooling",
    ("act", "run", "table"): "value_tables",
    ("act", "run", "whole"): "whole_sums",
    ("act", "run", "shared"): "channel_kernels",
    ("act", "set_clamp", "integer"): "integer_requantise",
    ("act", "set_clamp", "integer_long"): "integer_requantise",
    ("act", "set_clamp", "integer_twice"): "integer_requantise",
    ("act", "run", "wide"): "wide_words",
    ("conv", "set_kernel_step", "pair_words"): "paired_rows",
}
"""The unit that an operand other than zero needs; hardware without it takes the operand for zero."""

for _mnemonic, _name in _VARIANTS:
    KNOWN[_mnemonic].variant(_name)


def has_unit(machine: Machine, unit: str) -> bool:
    """Tell whether ``machine`` has ``unit``: a name of `isa.machine.UNITS`, or one that stands beside them."""
    if unit == WINOGRAD:
        return machine.winograd
    if unit == "four_patches":
        return machine.takes_four_patches
    if unit == OWN_STAGE:
        return stage_of(machine) is not None
    if unit == OWN_UNIT:
        return unit_of(machine) is not None
    return bool(getattr(machine, unit))


def lacks(machine: Machine, mnemonic: str, variant: str) -> str | None:
    """Return the first unit that a variant needs and ``machine`` has not; None if it has all."""
    return next((unit for unit in _VARIANTS.get((mnemonic, variant), ()) if not has_unit(machine, unit)), None)


def lacking(machine: Machine, mnemonic: str, variant: str, operands: Mapping[str, int] | None = None) -> str | None:
    """Return the first unit that a command needs and ``machine`` has not; None if it has all.

    Parameters
    ----------
    operands : mapping of str to int, optional
        By field name; left out, those that need a unit are taken for zero.
    """
    if (unit := lacks(machine, mnemonic, variant)) is not None:
        return unit
    return next((unit for (*command, name), unit in _OPERANDS.items()
                 if command == [mnemonic, variant] and operands and operands.get(name) and not has_unit(machine, unit)),
                None)


def variants_of(machine: Machine) -> tuple[tuple[Instruction, Variant], ...]:
    """Return the instructions and variants that ``machine`` has, in the order of the table."""
    known = (*INSTRUCTIONS, EXTENSION)
    return tuple((instruction, variant) for instruction in known for variant in instruction.variants
                 if lacks(machine, instruction.mnemonic, variant.name) is None)
