"""Facts that registers tell of a machine, and those among them that a program relies on."""

from tilewright._version import __version__
from tilewright.isa.command_port import PortRegister
from tilewright.isa.extension import extension_of
from tilewright.isa.machine import ARRAYS, INTEGRATION, UNITS, Machine
from tilewright.isa.registers.host_registers import BY_HOST_REGISTER, CONSTANT, IDENTITY, PORT_VERSION

__all__ = ["capability", "required"]

_SET_BY_SYSTEM = (("options", "erasure"), ("options", "watchdog"), ("options", "prot"), ("limits", "command"))
"""Fields that suit a machine to its system, and no program relies on: `isa.machine.INTEGRATION`."""

assert len(_SET_BY_SYSTEM) == len(INTEGRATION)


def capability(machine: Machine) -> dict[str, int]:
    """Return the value of each register of ``CONSTANT``, by name."""
    major, minor, patch = (int(number) for number in __version__.split(".")[:3])
    extension = extension_of(machine)
    sizes = {name: getattr(machine, name).bit_length() - 1
             for register in ("array", "buffers") for name in _fields(register) if name != "kind"}
    values: dict[str, int | dict[str, int]] = {
        "identity": IDENTITY,
        "version": {"port": PORT_VERSION, "patch": patch, "minor": minor, "major": major},
        "array": {**sizes, "kind": list(ARRAYS).index(machine.array)},
        "buffers": sizes,
        "options": {**{name: int(getattr(machine, name)) for name in UNITS}, "erasure": machine.erasure,
                    "integers_alone": int(not machine.float_requantise),
                    "watchdog": _logarithm(machine.watchdog_cycles), "prot": machine.axi_prot},
        "extension": 0 if extension is None else int(extension.digest[:8] or "0", 16),
        "limits": {"command": _logarithm(machine.command_cycles)},
    }
    return {name: _packed(BY_HOST_REGISTER[name], values[name]) for name in CONSTANT}


def required(machine: Machine) -> dict[str, tuple[int, int]]:
    """Return mask and value of each register of ``CONSTANT`` that a program for ``machine`` relies on, by name."""
    masks = dict.fromkeys(CONSTANT, 0xffff_ffff)
    masks["version"] = BY_HOST_REGISTER["version"].field("port").mask
    for register, name in _SET_BY_SYSTEM:
        masks[register] &= ~BY_HOST_REGISTER[register].field(name).mask
    return {name: (masks[name], value & masks[name]) for name, value in capability(machine).items()}


def _logarithm(cycles: int) -> int:
    return max(cycles.bit_length() - 1, 0)


def _fields(register: str) -> list[str]:
    return [field.name for field in BY_HOST_REGISTER[register].fields]


def _packed(register: PortRegister, value: int | dict[str, int]) -> int:
    if isinstance(value, int):
        return value
    return sum(value[field.name] << field.low for field in register.fields)
