"""What a command costs the RISC-V core: itself, and the instructions that bring its operands into registers.

The C compiler keeps constants in registers as long as it can; here the most recent ``REGISTERS`` of them. Another
constant costs one instruction or two, as its size demands. The core retires one such instruction per cycle.
"""

from collections import OrderedDict

from tilewright.isa.assembler import Command

REGISTERS = 14
"""Registers left for operands: of the 31, some hold loop counters, addresses and the stack."""


class Host:
    """Counts the instructions of the generated code; an estimate, since the C compiler chooses them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, None] = OrderedDict.fromkeys([0])

    def instructions(self, command: Command) -> int:
        """Return the instructions that send ``command``."""
        count = 1
        for value in (command.rs1, command.rs2):
            if value in self._kept:
                self._kept.move_to_end(value)
                continue
            small = value < 1 << 11 or value >= (1 << 32) - (1 << 11)
            count += 1 if small or value % (1 << 12) == 0 else 2     # addi or lui; both
            self._kept[value] = None
            if len(self._kept) > REGISTERS:
                self._kept.popitem(last=False)
        return count
