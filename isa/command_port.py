"""The registers of the AXI4-Lite command port: one table, from which hardware, C header and manual are generated.

For a host that has no CV-X-IF: an instruction is its operands and its word, written one after the other.
"""

from dataclasses import dataclass
from typing import Literal

from tilewright.isa.core_names import HOST_CORE, IBEX_CORE, HostName

__all__ = [
    "ADDRESS_BITS", "BY_REGISTER", "COMMANDS_BASE", "PORTS", "PORT_OF", "REFUSED", "REGISTERS", "HardwarePort",
    "PortName", "PortRegister", "RegisterField", "WaitName",
]

PortName = Literal["cvxif", "axi4lite"]
PORTS: tuple[PortName, ...] = ("cvxif", "axi4lite")
"""How a host reaches the coprocessor: as instructions that its core offloads, or by stores to registers."""

HardwarePort = Literal["cvxif", "cvxif-1.0", "axi4lite"]
"""Ports of the hardware: CV-X-IF in two versions, which the same programs drive, or registers."""

WaitName = Literal["poll", "wfi"]
"""How the core waits at a fence: it stalls there or polls, or it sleeps until an interrupt."""

PORT_OF: dict[HostName, PortName] = {HOST_CORE: "cvxif", IBEX_CORE: "axi4lite"}
"""The port that each host drives."""

ADDRESS_BITS = 12
"""Bits of the port's addresses: 4 KiB, the least that interconnects give to a device."""

COMMANDS_BASE = 0x2000_0000
"""Where the simulated system has the registers; elsewhere they are where the integrator puts them."""


@dataclass(frozen=True, slots=True)
class RegisterField:
    """Bits ``low`` to ``low + width - 1`` of a register."""

    name: str
    low: int
    width: int
    effect: str

    @property
    def mask(self) -> int:
        """The field's bits, where they stand in the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True, slots=True)
class PortRegister:
    """A register of 32 bits at ``offset`` bytes; ``access`` is ``RW``, ``W`` or ``R``."""

    name: str
    offset: int
    access: str
    effect: str
    fields: tuple[RegisterField, ...] = ()

    def field(self, name: str) -> RegisterField:
        """Return the field called ``name``."""
        return next(field for field in self.fields if field.name == name)


REGISTERS = (
    PortRegister("rs1", 0x00, "RW", "value of the first operand; stays until it is written again, or an abort"),
    PortRegister("rs2", 0x04, "RW", "value of the second operand; stays until it is written again, or an abort"),
    PortRegister("command", 0x08, "W",
                 "the instruction word; writing it sends the command with rs1 and rs2. Its register numbers are "
                 "ignored. The response comes once the port's queue has room"),
    PortRegister("result", 0x0c, "R", "result of the last fence", (
        RegisterField("fault_code", 0, 4, "0, or the reason why the coprocessor has stopped"),
        RegisterField("refused", 4, 1, "a write was answered with an error since reset or the last abort"),
        RegisterField("pending", 31, 1, "commands, among them a fence, wait in the port; the other fields are not "
                                        "valid yet"),
    )),
    PortRegister("status", 0x10, "R", "of this moment", (
        RegisterField("ready", 0, 1, "a command would be answered at once"),
        RegisterField("idle", 1, 1, "nothing is left to do, and memory has acknowledged every write"),
        RegisterField("fault", 2, 1, "the coprocessor has stopped; until an abort or reset"),
        RegisterField("quiet", 3, 1, "a fence would be answered at once: idle, or after a fault all has come to rest"),
    )),
    PortRegister("fault_address", 0x14, "R", "the address of the fault"),
    PortRegister("control", 0x18, "W",
                 "what is taken at once, whatever waits in the port, also while a write to command is held up", (
        RegisterField("stop", 0, 1, "1: stop, which is a fault, as the pin stop_request"),
        RegisterField("abort", 1, 1, "1: abort; commands that wait in the port are forgotten, one whose write is held "
                                     "up among them"),
        RegisterField("erase", 2, 1, "1, with abort: erase all buffers; refused by a machine without erasure"),
    )),
)
"""In the order of their addresses; all others are answered with SLVERR."""

BY_REGISTER = {register.name: register for register in REGISTERS}

REFUSED = BY_REGISTER["result"].field("refused").mask
"""Result of a fence, besides the fault code, if the port has rejected a write."""

assert [register.offset for register in REGISTERS] == [4 * place for place in range(len(REGISTERS))]
