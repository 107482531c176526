"""Main memory as the coprocessor reaches it: its address, the windows that permit requests, the faults that stop it."""

from dataclasses import dataclass
from enum import Flag

from tilewright.isa.counters import FAULTS

__all__ = ["MAIN_BASE", "MAIN_END", "WINDOWS", "AddressWindow", "Fault", "Permission"]

MAIN_BASE = 0x8000_0000
"""Where main memory starts; code, data and stack lie in RAM at 0."""

MAIN_END = 1 << 32
"""Where 32-bit addresses end."""

WINDOWS = 4
"""How many windows the coprocessor has."""


class Permission(Flag):
    """Permissions of the coprocessor in a window; the values are those of the hardware's bits."""

    NONE = 0
    READ = 1
    WRITE = 2
    READ_WRITE = 3


@dataclass(frozen=True, slots=True)
class AddressWindow:
    """Byte addresses [base, limit) that the coprocessor may read, write, or both; ``name`` says what lies there."""

    base: int
    limit: int
    permission: Permission = Permission.READ
    name: str = ""

    @property
    def readable(self) -> bool:
        """Whether the coprocessor may read."""
        return Permission.READ in self.permission

    @property
    def writable(self) -> bool:
        """Whether the coprocessor may write."""
        return Permission.WRITE in self.permission


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why the coprocessor has stopped: a code of `isa.counters.FAULTS`, and its address."""

    code: int
    address: int

    def __str__(self) -> str:
        return f"{FAULTS.get(self.code, f'fault {self.code}')} at {self.address:#010x}"
