"""Convert commands to words and back: funct7, operand packing, assembly text.

A *command* is one executed instruction with the values of its operands; a *word* is the 32-bit instruction
that names the registers in which those operands travel.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilewright.isa.command_form import fields_of, form_of, pack_fields
from tilewright.isa.encoding import (
    CUSTOM_0,
    EXTENSION,
    KNOWN,
    EncodingError,
    Field,
    Instruction,
    Variant,
)

__all__ = [
    "EncodedCommand", "assemble_word", "command", "decode_variant", "disassemble_word", "encode_word", "funct7",
    "pack", "parse", "unpack",
]

_BY_FUNCT3 = {instruction.funct3: instruction for instruction in KNOWN.values()}


@dataclass(frozen=True, slots=True)
class EncodedCommand:
    """An instruction as the coprocessor sees it: funct3, funct7 and two 32-bit operands."""

    funct3: int
    funct7: int
    rs1: int
    rs2: int

    @property
    def instruction(self) -> Instruction:
        """The instruction of the table."""
        if self.funct3 not in _BY_FUNCT3:
            raise EncodingError(f"funct3 must be one of {sorted(_BY_FUNCT3)}, not {self.funct3!r}")
        return _BY_FUNCT3[self.funct3]

    @property
    def variant(self) -> Variant:
        """The variant of the table."""
        return decode_variant(self.instruction, self.funct7)

    @property
    def operands(self) -> dict[str, int]:
        """Operand values by field name."""
        return form_of(self.variant).values(self.rs1, self.rs2)

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the semaphore flags that are set, lowest bit first."""
        return tuple(flag.name for i, flag in enumerate(self.variant.flags)
                     if flag is not None and self.funct7 >> i & 1)

    def __str__(self) -> str:
        operands = [f"{name}={value:#x}" if name == "address" else f"{name}={value}"
                    for name, value in self.operands.items()]
        return " ".join([f"{self.instruction.mnemonic}.{self.variant.name}", *operands, *self.flags])


def pack(fields: Iterable[Field], values: Mapping[str, int]) -> int:
    """Return the 32-bit operand that holds ``values``; fields not named are zero.

    Raises
    ------
    EncodingError
        If a value does not fit its field.
    """
    return pack_fields(fields_of(fields), values)


def unpack(fields: Iterable[Field], word: int) -> dict[str, int]:
    """Return the values of ``fields`` in the operand ``word``."""
    values, low = {}, 0
    for field in fields:
        value = word >> low & (1 << field.width) - 1
        if field.signed and value >> (field.width - 1):
            value -= 1 << field.width
        values[field.name] = value
        low += field.width
    return values


def funct7(variant: Variant, flags: Iterable[str] = ()) -> int:
    """Return funct7: the variant's code above its semaphore flags."""
    return variant.code << 4 | variant.flag_bits(*flags)


_DECODED: dict[tuple[int, int], tuple[Instruction, Variant]] = {}
"""Meaning of (funct3, funct7) as found so far, with the instruction for which that holds."""


def decode_variant(instruction: Instruction, funct7: int) -> Variant:
    """Return the variant that ``funct7`` selects.

    Raises
    ------
    EncodingError
        If the instruction has no such variant, or the variant no such flag.
    """
    key = instruction.funct3, funct7
    known = _DECODED.get(key)
    if known is None or known[0] is not instruction:
        known = _DECODED[key] = instruction, _variant_of(instruction, funct7)
    return known[1]


def _variant_of(instruction: Instruction, funct7: int) -> Variant:
    """Return the variant that ``funct7`` selects, looked up in the table."""
    for variant in instruction.variants:
        if variant.code == funct7 >> 4:
            legal = sum(1 << i for i, flag in enumerate(variant.flags) if flag is not None)
            if funct7 & 15 & ~legal:
                raise EncodingError(f"{instruction.mnemonic}.{variant.name} has no semaphore flag "
                                    f"{funct7 & 15 & ~legal:#06b}")
            return variant
    raise EncodingError(f"{instruction.mnemonic} has no variant {funct7 >> 4}")


def command(mnemonic: str, variant: str, flags: Iterable[str] = (), **operands: int) -> EncodedCommand:
    """Build a command from names.

    Raises
    ------
    EncodingError
        If a name is not in the table or a value does not fit.
    """
    if mnemonic not in KNOWN:
        raise EncodingError(f"Mnemonic must be one of {', '.join(KNOWN)}, not {mnemonic!r}")
    instruction = KNOWN[mnemonic]
    chosen = instruction.variant(variant)
    form = form_of(chosen)
    if not operands.keys() <= form.names:
        raise EncodingError(f"{mnemonic}.{variant} has the operands {', '.join(sorted(form.names)) or 'none'}, "
                            f"not {min(operands.keys() - form.names)!r}")
    set_flags = tuple(flags)
    bits = form.funct7.get(set_flags)
    if bits is None:
        bits = form.funct7[set_flags] = funct7(chosen, set_flags)
    return EncodedCommand(instruction.funct3, bits, pack_fields(form.rs1, operands), pack_fields(form.rs2, operands))


def parse(text: str) -> EncodedCommand:
    """Read the form that ``str(command)`` prints."""
    name, *rest = text.split()
    mnemonic, _, variant = name.partition(".")
    operands = {key: int(value, 0) for key, equals, value in (word.partition("=") for word in rest) if equals}
    return command(mnemonic, variant, [word for word in rest if "=" not in word], **operands)


def encode_word(command: EncodedCommand, rs1: int, rs2: int) -> int:
    """Return the instruction word that reads the operands from registers x``rs1`` and x``rs2``."""
    for register in (rs1, rs2):
        if register not in range(32):
            raise EncodingError(f"Register must be in 0..31, not {register!r}")
    return command.funct7 << 25 | rs2 << 20 | rs1 << 15 | command.funct3 << 12 | CUSTOM_0


def disassemble_word(word: int) -> str:
    """Return ``mnemonic.variant x<rs1>, x<rs2> flags`` for an instruction word.

    Raises
    ------
    EncodingError
        If the word is none of ours.
    """
    if word & 0x7F != CUSTOM_0 or word >> 7 & 31:
        raise EncodingError(f"Word must have opcode {CUSTOM_0:#04x} and rd x0, not {word:#010x}")
    bare = EncodedCommand(word >> 12 & 7, word >> 25, 0, 0)
    if bare.funct3 == EXTENSION.funct3:
        raise EncodingError(f"Word must be in the table, not of funct3 {bare.funct3}, an extension's: {word:#010x}")
    name = f"{bare.instruction.mnemonic}.{bare.variant.name}"
    return " ".join([name, f"x{word >> 15 & 31},", f"x{word >> 20 & 31}", *bare.flags])


def assemble_word(text: str) -> int:
    """Read the form that :func:`disassemble_word` prints."""
    name, rs1, rs2, *flags = text.replace(",", " ").split()
    mnemonic, _, variant = name.partition(".")
    return encode_word(command(mnemonic, variant, flags), int(rs1[1:]), int(rs2[1:]))
