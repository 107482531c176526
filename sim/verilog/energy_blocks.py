"""Blocks of the coprocessor for energy: the modules of each block, and its registers in RTLIL.

A block's registers are the flip-flops of its modules as they are elaborated, memories apart: a synthesiser may merge
some of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ARRAY_BLOCKS", "ENERGY_BLOCKS", "ElaboratedModule", "Register", "count_registers", "energy_block_of",
           "modules", "path_of"]

ENERGY_BLOCKS = ("array", "sequencer", "activation_buffer", "weight_buffer", "post_processing", "load", "store",
                 "control")
"""In the order in which the simulator counts their toggles."""

ARRAY_BLOCKS = ("array", "sequencer", "activation_buffer", "weight_buffer")
"""Blocks that are others with another kind of array."""

# Beginnings of the paths of modules below `Coprocessor`, and their block; the longest that fits holds. Digits that tell
# instances apart are left out of paths.
_PLACES = {
    "": "control",
    "load": "load",
    "store": "store",
    "post": "post_processing",
    "mac": "sequencer",
    "mac.buffer": "activation_buffer",
    "mac.transform": "array",
    "mac.patches": "array",
    "mac.own_patches": "array",
    "mac.xi": "array",
    "mac.cluster": "array",
    "mac.cluster.weights": "weight_buffer",
}

_TOP = "coprocessor.coprocessor"
_NUMBER = re.compile(r"[$_]\d+")
_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
_REGISTER = re.compile(r"^  cell \$dff (?:\S+)\n((?:    .*\n)+)", re.MULTILINE)
_CHILD = re.compile(r"^  cell \\(\S+) (\S+)\n", re.MULTILINE)


def path_of(module: str) -> str:
    """Return the path of a module below `Coprocessor`, without numbers; empty for modules outside of it."""
    path = _NUMBER.sub("", module)
    return path.removeprefix(_TOP).removeprefix(".") if f"{path}.".startswith(f"{_TOP}.") else ""


def energy_block_of(module: str) -> str:
    """Return the block of a module of the elaborated coprocessor, by its hierarchical name."""
    inside = path_of(module)
    fits = [place for place in _PLACES if not place or f"{inside}.".startswith(f"{place}.")]
    return _PLACES[max(fits, key=len)]


@dataclass(frozen=True, slots=True)
class Register:
    """A flip-flop cell: its bits, and as RTLIL signals its current value and its next one."""

    width: int
    held: str
    taken: str


@dataclass(frozen=True, slots=True)
class ElaboratedModule:
    """A module of RTLIL as Amaranth writes it, where every instance is a separate module.

    Attributes
    ----------
    name : str
        Path of the instance: ``coprocessor.coprocessor.mac``.
    text : str
        Between its first and its last line.
    registers : tuple of Register
    children : tuple of (str, str)
        Names of the modules it instantiates, and of the cells.
    """

    name: str
    text: str
    registers: tuple[Register, ...]
    children: tuple[tuple[str, str], ...]


def modules(rtlil: str) -> Iterator[ElaboratedModule]:
    """Yield the modules of a design in the order of its text, in which a parent comes before its children."""
    for name, text in _MODULE.findall(rtlil):
        yield ElaboratedModule(name, text, tuple(map(_register, _REGISTER.findall(text))), tuple(_CHILD.findall(text)))


def _register(cell: str) -> Register:
    fields = dict(line.strip().removeprefix("parameter ").removeprefix("connect ").split(" ", 1)
                  for line in cell.splitlines())
    return Register(int(fields["\\WIDTH"]), fields["\\Q"], fields["\\D"])


def count_registers(rtlil: str) -> dict[str, int]:
    """Return the flip-flops of each block, in bits, of the coprocessor that ``rtlil`` describes."""
    counts = dict.fromkeys(ENERGY_BLOCKS, 0)
    for module in modules(rtlil):
        counts[energy_block_of(module.name)] += sum(register.width for register in module.registers)
    return counts
