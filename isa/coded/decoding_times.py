"""The least time in which each block of coded weights is decoded, which the block's bytes decide."""

from collections.abc import Callable

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.coded.weight_code import WeightCode, decode_weights
from tilewright.isa.machine import Machine

__all__ = ["DecodingTimes", "ReadMemory", "no_memory"]

ReadMemory = Callable[[int, int], bytes]
"""Returns the bytes of main memory from an address on, so many."""


def no_memory(address: int, size: int) -> bytes:
    """Stand for the memory of a program without coded weights."""
    raise ValueError(f"Memory must be given for the coded weights at {address:#x}, {size} bytes")


class DecodingTimes:
    """Follow the commands of a program, and time those that load coded weights."""

    def __init__(self, machine: Machine, read: ReadMemory) -> None:
        self.machine = machine
        self.read = read
        self._words = 1

    def cycles(self, command: EncodedCommand) -> int:
        """Return the cycles in which what ``command`` loads is decoded; 0 if it is not coded."""
        if command.instruction.mnemonic != "ldw":
            return 0
        operands, name, bus = command.operands, command.variant.name, self.machine.bus_bytes
        if name == "set_coded":
            self._words = operands["words"]
        if not name.startswith("coded_"):
            return 0
        stream = self.read(operands["address"] // bus * bus, self._words * bus)
        return decode_weights(WeightCode.of(self.machine), stream, operands["steps"]).cycles
