"""Registers of the AXI4-Lite port beside its commands: one table, for hardware, C header, manual and IP-XACT.

For the host, not for programs: windows with a lock, the interrupt, and what the hardware is. A package with
``--windows pins`` has none of them.
"""

from typing import Literal

from tilewright.isa.command_port import REGISTERS, PortRegister, RegisterField
from tilewright.isa.machine import UNITS
from tilewright.isa.memory import WINDOWS

__all__ = [
    "BY_HOST_REGISTER", "CONSTANT", "HOST_REGISTERS", "IDENTITY", "PORT_VERSION", "WINDOW_PARTS", "WindowPins",
    "registers_of", "window_register",
]

WindowPins = Literal["pins", "registers"]
"""Where the windows come from: from pins, which the integrator drives, or from registers of the port."""

IDENTITY = int.from_bytes(b"TWLT", "little")
"""Tells that these registers are there."""

PORT_VERSION = 1
"""Of all registers of the port; goes up when one of them changes its meaning."""

WINDOW_PARTS = ("base", "limit", "rights")
"""Registers of each window, in the order of their addresses; a window takes 16 bytes."""

CONSTANT = ("identity", "version", "array", "buffers", "options", "extension", "limits")
"""Names of registers whose value the machine fixes: `isa.registers.capability`."""

_OPTIONS = (
    *(RegisterField(name, place, 1, effect) for place, (name, effect) in enumerate(UNITS.items())),
    RegisterField("integers_alone", 15, 1, "requantisation in whole numbers alone, without a float32 scale"),
    RegisterField("erasure", 16, 2, "0: an abort erases no buffer, 1: on request, 2: always"),
    RegisterField("watchdog", 20, 5, "log2 of watchdog_cycles; 0: no watchdog"),
    RegisterField("prot", 28, 3, "AxPROT of every burst"),
)


def window_register(index: int, part: str) -> str:
    """Return the name of a window's register; ``part`` is one of ``WINDOW_PARTS``."""
    return f"window{index}_{part}"


def _window(index: int) -> tuple[PortRegister, ...]:
    low = 0x40 + 16 * index
    return (
        PortRegister(window_register(index, "base"), low, "RW", f"first byte of window {index}; 0 after reset"),
        PortRegister(window_register(index, "limit"), low + 4, "RW", "the byte after its last; 0 after reset"),
        PortRegister(window_register(index, "rights"), low + 8, "RW", "what the coprocessor may do; 0 after reset", (
            RegisterField("readable", 0, 1, "read"),
            RegisterField("writable", 1, 1, "write"),
        )),
    )


def _logarithms(*names: str, width: int) -> tuple[RegisterField, ...]:
    return tuple(RegisterField(name, width * place, width, f"log2 of {name}") for place, name in enumerate(names))


HOST_REGISTERS = (
    *(register for index in range(WINDOWS) for register in _window(index)),
    PortRegister("lock", 0x80, "RW", "what can no longer be written, until reset; an abort does not unlock", (
        RegisterField("windows", 0, 1, "1: writes to windows are answered with SLVERR; stays 1"),
    )),
    PortRegister("interrupt_enable", 0x84, "RW", "which causes raise irq; done after reset", (
        RegisterField("done", 0, 1, "a fence with notify would no longer block"),
        RegisterField("fault", 1, 1, "the coprocessor has stopped, whether a fence waits or not"),
    )),
    PortRegister("interrupt_cause", 0x88, "R", "causes of this moment, enabled or not", (
        RegisterField("done", 0, 1, "until the next fence or an abort"),
        RegisterField("fault", 1, 1, "until an abort or reset"),
    )),
    PortRegister("identity", 0xc0, "R", f"{IDENTITY:#010x}: these registers are there"),
    PortRegister("version", 0xc4, "R", "versions", (
        RegisterField("port", 0, 8, f"of these registers: {PORT_VERSION}"),
        RegisterField("patch", 8, 8, "third number of Tilewright's release"),
        RegisterField("minor", 16, 8, "second number"),
        RegisterField("major", 24, 8, "first number"),
    )),
    PortRegister("array", 0xc8, "R", "sizes, and the kind of array", (
        *_logarithms("lanes", "clusters", "tiles", "post_lanes", "bus_bytes", "queue_depth", width=4),
        RegisterField("kind", 24, 4, "0 plain, 1 winograd, 2 inner, 3 winograd_inner"),
    )),
    PortRegister("buffers", 0xcc, "R", "sizes",
                 _logarithms("activation_bytes", "weight_bytes", "result_bytes", "parameter_channels", width=8)),
    PortRegister("options", 0xd0, "R", "for each unit whether there is one, and other options",
                 _OPTIONS),
    PortRegister("extension", 0xd4, "R", "first 32 bits of the SHA-256 of an extension's file; 0 for none"),
    PortRegister("limits", 0xd8, "R", "of what a program may do", (
        RegisterField("command", 0, 5, "log2 of command_cycles; 0: no limit"),
    )),
)
"""In the order of their addresses."""

BY_HOST_REGISTER = {register.name: register for register in HOST_REGISTERS}

assert len(UNITS) <= 15  # below ``integers_alone``
assert max(register.offset for register in REGISTERS) < HOST_REGISTERS[0].offset


def registers_of(windows: WindowPins) -> tuple[PortRegister, ...]:
    """Return all registers of a port, in the order of their addresses."""
    return REGISTERS + (HOST_REGISTERS if windows == "registers" else ())
