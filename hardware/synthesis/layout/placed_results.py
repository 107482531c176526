"""Input and results of the process that places: wires by block, and cells in squares of a picture."""

import hashlib
import importlib.metadata
import importlib.util
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.synthesis.layout.wire_rules import lef_inputs
from tilewright.tools.toolchain import ToolMissingError

__all__ = ["PLACES", "PLACE_PROCESS", "SPEF", "VERILOG_BY_NUMBER", "BlockWires", "PlacedResults", "coloquinte_version",
           "placing_inputs", "read_results"]

PLACES = "places.json"
SPEF = "wires.spef"
VERILOG_BY_NUMBER = "numbered.v"

PLACE_PROCESS = "tilewright.hardware.synthesis.layout.place_process"
"""The module, for ``python -m``."""

_SQUARES = 64
"""Squares of a picture across and up."""


def coloquinte_version() -> str:
    """Return the placer's version.

    Raises
    ------
    ToolMissingError
        If it is not installed.
    """
    if importlib.util.find_spec("coloquinte") is None:
        raise ToolMissingError("Placing standard cells needs Coloquinte, which is not installed; install it with "
                               "pip install 'tilewright[layout]', or leave out --place: the frequency is then without "
                               "wires")
    return importlib.metadata.version("coloquinte")


def placing_inputs(netlist: Path, library: Path, technology: str) -> dict[str, str | Path]:
    """Return the files that the process reads, by their names there; this folder's code is one, for the step's key.

    Raises
    ------
    ToolMissingError
        If the technology's LEF cannot be fetched.
    """
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    return {"netlist.json": netlist, "cells.lib": library, **lef_inputs(technology), "code": code.hexdigest()}


@dataclass(frozen=True, slots=True)
class BlockWires:
    """Nets that the cells of a block drive, the clock's left out.

    Attributes
    ----------
    pins : int
        Pins of cells at the nets.
    pin_pf, wire_pf : float
        Capacitance of those pins, and of the wires, with coupling.
    length_um : float
        Of the wires.
    """

    pins: int
    pin_pf: float
    wire_pf: float
    length_um: float

    @property
    def femtofarads_per_pin(self) -> float:
        """Return the capacitance of wires for each pin, in fF."""
        return 1e3 * self.wire_pf / self.pins if self.pins else 0.0

    def __add__(self, other: "BlockWires") -> "BlockWires":
        """Return the wires of both."""
        return BlockWires(self.pins + other.pins, self.pin_pf + other.pin_pf, self.wire_pf + other.wire_pf,
                          self.length_um + other.length_um)


@dataclass(frozen=True, slots=True)
class PlacedResults:
    """Results that the process has left.

    Attributes
    ----------
    width, height, utilisation : float
        Of the rows, in µm, and the share of them that cells fill.
    names : tuple of str
        By the number in ``g5``.
    corners : tuple of (float, float)
        Of cells and memories, µm.
    nets : tuple of (driver, sinks, pF of pins, pF of wires, µm)
        The driver is a cell's number, or nothing.
    """

    width: float
    height: float
    utilisation: float
    names: tuple[str, ...]
    corners: tuple[tuple[float, float], ...]
    nets: tuple[tuple[int | None, int, float, float, float], ...]

    def wires(self, block: Callable[[str], str]) -> dict[str, BlockWires]:
        """Return the wires that the cells of each block drive; ``block`` tells the block of a cell."""
        found: dict[str, BlockWires] = defaultdict(lambda: BlockWires(0, 0.0, 0.0, 0.0))
        for driver, pins, pin_pf, wire_pf, length_um in self.nets:
            if driver is not None:
                found[block(self.names[driver])] += BlockWires(pins, pin_pf, wire_pf, length_um)
        return dict(sorted(found.items()))

    def squares(self, block: Callable[[str], str]) -> list[tuple[int, int, str]]:
        """Return the square of each cell, the top row first, and its block."""
        side = max(self.width, self.height) / _SQUARES
        top = int(self.height / side)
        return [(int(x / side), top - int(y / side), block(name))
                for name, (x, y) in zip(self.names, self.corners, strict=True)]


def read_results(folder: Path) -> PlacedResults:
    """Return what the process left in a folder."""
    data = json.loads((folder / PLACES).read_text(encoding="utf-8"))
    return PlacedResults(data["width"], data["height"], data["utilisation"],
                         tuple(data["names"]), tuple(map(tuple, data["corners"])), tuple(map(tuple, data["nets"])))
