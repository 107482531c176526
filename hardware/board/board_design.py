"""The system for a board: its files, the sizes of its memories, and the files with their contents."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pythondata_cpu_cv32e40x

from tilewright.hardware.board.boards import Board
from tilewright.isa.machine import Machine
from tilewright.sim.verilog.core_sources import core_sources, system_sources

__all__ = [
    "INCLUDES", "RTL", "TOP", "BoardDesign", "board_sources", "contents", "design_for", "sources",
]

TOP = "board_top"
"""The top module, of every board."""

_MAIN_MEMORY_STEP = 16 * 1024
"""Main memory is as large as a model needs, rounded up to this, so that models of a size share a simulator."""

INCLUDES = Path(pythondata_cpu_cv32e40x.data_location) / "rtl" / "include"
"""Include folder of the host core."""

RTL = Path(__file__).parent / "rtl"
"""Folder of the boards' own files."""


@dataclass(frozen=True, slots=True)
class BoardDesign:
    """Parameters of the hardware, without its memories' contents: a board, a machine, bytes of RAM and main memory."""

    board: Board
    machine: Machine
    ram_bytes: int
    main_bytes: int

    @property
    def parameters(self) -> dict[str, str]:
        """Parameters of the top module, as Verilog writes them."""
        return {"BUS_BYTES": f"{self.machine.bus_bytes}", "RAM_BYTES": f"{self.ram_bytes}",
                "MAIN_BYTES": f"{self.main_bytes}", **self.board.parameters}


def design_for(board: Board, machine: Machine, ram_bytes: int, model_bytes: int) -> BoardDesign:
    """Return the design for a model that needs ``model_bytes`` of main memory."""
    return BoardDesign(board, machine, ram_bytes, -(-model_bytes // _MAIN_MEMORY_STEP) * _MAIN_MEMORY_STEP)


def sources() -> Iterator[Path]:
    """Yield the SystemVerilog files, packages and interfaces first; `sim.verilog.elaborate` adds the coprocessor."""
    yield from core_sources()
    yield from system_sources()
    yield from board_sources()


def board_sources() -> list[Path]:
    """Return the SystemVerilog files of the boards alone."""
    return sorted(RTL.glob("*.sv"))


def contents(design: BoardDesign, ram: bytes, main: bytes) -> dict[str, str]:
    """Return the files that the memories take their first contents from, by name, for ``$readmemh``.

    Raises
    ------
    ValueError
        If a memory is too small.
    """
    for name, data, size in (("RAM", ram, design.ram_bytes), ("main memory", main, design.main_bytes)):
        if len(data) > size:
            raise ValueError(f"Contents of {name} must have at most {size} bytes, not {len(data)}")
    return {"program.hex": _words(ram.ljust(design.ram_bytes, b"\0"), 4),
            "main.hex": _words(main.ljust(design.main_bytes, b"\0"), design.machine.bus_bytes)}


def _words(data: bytes, size: int) -> str:
    """Return ``data`` as little-endian words of ``size`` bytes, one a line."""
    return "".join(f"{data[i:i + size][::-1].hex()}\n" for i in range(0, len(data), size))
