"""A family of FPGAs as synthesis sees it: its commands, its cells, and its devices."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.hardware.synthesis.ecp5.block_places import Sites

__all__ = ["LONE_REGISTER", "PATIENCE", "PINS_FILE", "Fpga"]

PINS_FILE = "pins"

LONE_REGISTER = "flip-flop without a LUT"
"""Type of cell that stands for the LUT which passes a flip-flop its input; see `Fpga.before_registers`."""

PATIENCE = ("--placer-heap-cell-placement-timeout", "3000")
"""cells² / 3000 attempts for a cell, and then an error: without, nextpnr looks for hours where a device is nearly full,
its issue 1062."""


@dataclass(frozen=True, slots=True)
class Fpga:
    """A device, or a family of them.

    Attributes
    ----------
    name, title : str
    synthesis : str
        Yosys commands for the flat netlist; ``{top}`` is the top module.
    primitives : mapping
        Cell type to what it counts as, and how many of it.
    uncounted : tuple of str
        Cell types that come with a place that is counted already.
    units : mapping
        Name of one unit of a resource on this target.
    capacity : mapping
        How many a device has of each resource, by device, smallest first. The one that is placed on is the only one.
    logic_per : mapping
        Logic cells (what a LUT takes) that one of a resource takes as well.
    registers_per : mapping
        Flip-flops that one of a resource takes as well.
    before_registers : mapping
        Output port of each type of cell that a flip-flop can have in its place, where no other way leads to its input:
        then flip-flops without such a cell take the place of a LUT too, and count as `LONE_REGISTER` as well.
    place : tuple of str
        Arguments of nextpnr that name the device; empty if it is not placed, then ``unplaced`` says why.
    router : str
        Which nextpnr places it: that of ``ecp5``, ``nexus`` or ``himbaechel-gowin``.
    pins : mapping
        Pin of each port of `sources.behind_pins`, where its nextpnr does not place a design out of context.
    oscillator : str
        Verilog of the device's own oscillator that drives ``clk`` there, instead of a pin.
    pin_line : str
        Line that gives a ``{port}`` its ``{pin}``, in the file `PINS_FILE`.
    ecp5_modules : bool
        Modules for ECP5 take the place of some of ours and of the core's: `sources.ecp5_design`.
    source : str
        Where the capacities are from.
    sites : Sites, optional
        By which multipliers and block RAMs get places; without, nextpnr chooses.
    with_sites : tuple of str
        Arguments of nextpnr beside ``place``, for a design with such places.
    """

    name: str
    title: str
    synthesis: str
    primitives: Mapping[str, tuple[str, int]]
    units: Mapping[str, str]
    capacity: Mapping[str, Mapping[str, int]]
    source: str
    uncounted: tuple[str, ...] = ()
    logic_per: Mapping[str, int] = field(default_factory=dict)
    place: tuple[str, ...] = ()
    unplaced: str = ""
    router: str = "ecp5"
    pins: Mapping[str, str] = field(default_factory=dict)
    oscillator: str = ""
    pin_line: str = ""
    ecp5_modules: bool = False
    sites: Sites | None = None
    with_sites: tuple[str, ...] = ()
    registers_per: Mapping[str, int] = field(default_factory=dict)
    before_registers: Mapping[str, str] = field(default_factory=dict)
