"""Targets of synthesis: FPGA devices with their capacities, and libraries of standard cells."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.errors import nearest
from tilewright.hardware.synthesis.families import ecp5, gowin, lattice, others
from tilewright.hardware.synthesis.families.fpga_family import Fpga

__all__ = ["TARGETS", "StandardCells", "Target", "target_named"]


@dataclass(frozen=True, slots=True)
class StandardCells:
    """A library of standard cells.

    Attributes
    ----------
    name, title : str
    technology : str
        Name of the technology file whose static RAM is taken.
    buffer : str
        Cell that drives inputs; with the load it lets abc size and buffer.
    load : float
        At outputs, in the library's unit.
    unused : tuple of str
        Cells that logic must not be made of.
    """

    name: str
    title: str
    technology: str
    buffer: str
    load: float
    unused: tuple[str, ...]


Target = Fpga | StandardCells

TARGETS: Mapping[str, Target] = {target.name: target for target in (
    *ecp5.DEVICES, *lattice.DEVICES, *gowin.DEVICES, *others.DEVICES,
    StandardCells("osu018", "OSU 0.18 µm standard cells, typical, 1.8 V, 25 °C", "osu018", "BUFX2", 0.02,
                  ("TBUFX1", "TBUFX2", "CLKBUF1", "CLKBUF2", "CLKBUF3")),
    StandardCells("sky130", "SkyWater 130 nm high density standard cells, typical, 1.8 V, 25 °C", "sky130",
                  "sky130_fd_sc_hd__buf_2", 0.02, ()),
)}


def target_named(name: str) -> Target:
    """Return the target ``name``.

    Raises
    ------
    ValueError
        If there is none; the message lists those there are.
    """
    if name not in TARGETS:
        raise ValueError(f"Target must be one of {', '.join(TARGETS)}, not {name!r}{nearest(name, TARGETS)}")
    return TARGETS[name]
