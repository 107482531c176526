"""The instruction table of isa/encoding.py as the manual page docs/isa.md."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tilewright.isa.command_port import ADDRESS_BITS, PortRegister
from tilewright.isa.counters import COUNTERS, CYCLES_HIGH_WORD, FAULT_ADDRESS_WORD, FAULT_WORD, FAULTS, RECORD_WORDS
from tilewright.isa.encoding import CUSTOM_0, INSTRUCTIONS, SEMAPHORE_WIDTH, SEMAPHORES, Instruction, Variant
from tilewright.isa.registers.host_registers import registers_of
from tilewright.tools.templates import render

__all__ = ["manual"]

_TEMPLATE = Path(__file__).with_name("isa_page.md.j2")


def manual() -> str:
    """Return the page's text."""
    return render(_TEMPLATE, opcode=f"{CUSTOM_0:#04x}", instructions=INSTRUCTIONS, operands=_operands, flags=_flags,
                  alike=_alike, semaphores=SEMAPHORES, semaphore_width=SEMAPHORE_WIDTH, counters=COUNTERS,
                  faults=FAULTS, record_words=RECORD_WORDS, fault_word=FAULT_WORD, cycles_high_word=CYCLES_HIGH_WORD,
                  fault_address_word=FAULT_ADDRESS_WORD,
                  registers=list(_shown()), port_bytes=1 << ADDRESS_BITS)


def _alike(instruction: Instruction, variant: Variant) -> str:
    """Return the first variant before ``variant`` with the same operands, if it has any, and flags; else nothing."""
    def form(each: Variant) -> tuple[object, ...]:
        return each.rs1, each.rs2, each.flags
    before = instruction.variants[:instruction.variants.index(variant)]
    return next((each.name for each in before if variant.fields and form(each) == form(variant)), "")


def _operands(variant: Variant) -> Iterator[str]:
    """Yield a row of a table for each field of a variant's operands: where it lies, its name, what it means."""
    for operand, fields in (("rs1", variant.rs1), ("rs2", variant.rs2)):
        low = 0
        for field in fields:
            high = low + field.width - 1
            bits = f"{high}..{low}" if high > low else f"{low}"
            yield f"| {operand} [{bits}]{' signed' if field.signed else ''} | `{field.name}` | {field.effect} |"
            low += field.width


def _shown() -> Iterator[PortRegister]:
    """Yield the registers of the port, of all windows those of the first."""
    for register in registers_of("registers"):
        if register.name.startswith("window0"):
            yield replace(register, effect=f"{register.effect}; further windows follow, each 0x10 on")
        elif not register.name.startswith("window"):
            yield register


def _flags(variant: Variant) -> str:
    return ", ".join(f"bit {i} `{flag.name}`" for i, flag in enumerate(variant.flags) if flag is not None)


if __name__ == "__main__":
    print(manual(), end="")
