"""Settings of post-processing as the operands of its set variants hold them."""

from collections.abc import Iterator

from amaranth import Mux, Value, signed
from amaranth.lib.data import Layout, StructLayout, View

from tilewright.isa.integers.shift_requantise import SHIFT_BITS
from tilewright.rtl.arithmetic.residual_add import SETTINGS
from tilewright.rtl.stream.commands import Command, operands

__all__ = ["CLAMP", "INTEGER_CLAMP", "OFFSET", "SCALE", "WORDS", "assign", "chosen_clamp"]

CLAMP = StructLayout({"zero_point": signed(8), "low": signed(8), "high": signed(8)})
"""Operands of ``act.set_clamp``."""

INTEGER_CLAMP = StructLayout({**CLAMP.members, "integer_shift": SHIFT_BITS, "integer": 1, "integer_long": 1,
                              "integer_twice": 1})
"""The same of a machine that also requantises in integers."""

SCALE = StructLayout({name: SETTINGS.members[name] for name in ("mantissa_a", "shift_a", "mantissa_b", "shift_b")})
"""Operands of ``act.set_residual_scale``."""

WORDS = StructLayout({"word_zero": signed(16), "word_low": signed(16), "word_high": signed(16), "plane_words": 16})
"""Operands of ``pool.set_words``."""

OFFSET = StructLayout({
    **{name: SETTINGS.members[name] for name in ("offset_mantissa", "offset_shift", "offset_negative", "unsigned")},
    "residual_low": signed(8), "residual_high": signed(8), "own_second": 1,
})
"""Operands of ``act.set_residual_offset``."""


def chosen_clamp(clamp: View, words: View | None, wide: Value) -> View | dict[str, Value]:
    """Return zero point and bounds of the requantisation, those of ``words``, if there are any, of ``wide`` results."""
    if words is None:
        return clamp
    names = {"zero_point": "word_zero", "low": "word_low", "high": "word_high"}
    return {name: Mux(wide, words[word], clamp[name]) for name, word in names.items()}


def assign(target: View, command: Command, mnemonic: str, variant: str) -> Iterator[object]:
    """Return the assignments of the operands of ``command`` to the members of ``target`` named like them.

    What ``target`` lacks is an operand of a unit, which takes it itself.
    """
    for operand, layout in zip((command.rs1, command.rs2), operands(mnemonic, variant), strict=True):
        view = layout(operand)
        yield from (target[name].eq(view[name]) for name in layout.members
                    if name in Layout.cast(target.shape()).members)
