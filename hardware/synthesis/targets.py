"""Targets of synthesis: FPGA devices with their capacities, and libraries of standard cells."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.errors import nearest
from tilewright.hardware.synthesis.ecp5.block_places import Sites

__all__ = ["ECP5_SYNTHESIS", "TARGETS", "Fpga", "StandardCells", "Target", "target_named", "with_any_collision"]


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
    place : tuple of str
        Arguments of nextpnr that name the device; empty if it is not placed, then ``unplaced`` says why.
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
    ecp5_modules: bool = False
    sites: Sites | None = None
    with_sites: tuple[str, ...] = ()


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

ECP5_SYNTHESIS = "synth_ecp5 -nowidelut"
"""Without multiplexers between LUTs: with them abc takes a quarter more LUTs for the core, and a few for the array."""

# Yosys' own script for abc9, with 1 ns for a wire instead of 0.3, since in a large design wires take that or more, and
# without winning back area (-F 0 -A 0), which lets any path take as long as the longest. nextpnr makes another path the
# longest, and each level that it has is another wire; see docs/decisions/fpga.md, "`base` routes on …".
_ABC9 = "+&scorr;&sweep;&dc2;&dch,-f,-r;&ps;&if,{W},{D},{R},-F,0,-A,0;&mfs"
_ECP5 = (f"{ECP5_SYNTHESIS} -top {{top}} -run begin:map_luts\ntechmap -map +/lattice/latches_map.v\n"
         f"abc9 -W 1000 -maxlut 4 -script {_ABC9.replace('{', '{{').replace('}', '}}')}\nclean\n"
         f"{ECP5_SYNTHESIS} -top {{top}} -run map_cells: -json netlist.json\n")
# Where logic is scarce: carry chains take whole cells, and more at their ends; short adders are smaller in LUTs.
_ECP5_SMALL = (f"{ECP5_SYNTHESIS} -top {{top}} -run begin:map_gates\nselect -set short t:$alu r:Y_WIDTH<=8 %i\n"
               f"techmap -map +/techmap.v @short\n{ECP5_SYNTHESIS} -top {{top}} -run map_gates: -json netlist.json\n")
_ECP5_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    "LUT4": ("LUT", 1), "CCU2C": ("carry", 1), "TRELLIS_FF": ("FF", 1), "MULT18X18D": ("DSP", 1), "DP16KD": ("BRAM", 1),
    "PDPW16KD": ("BRAM", 1), "TRELLIS_DPR16X4": ("LUT RAM", 1),
}
_ECP5_UNITS: Mapping[str, str] = {
    "LUT": "LUT4", "carry": "CCU2C", "FF": "TRELLIS_FF", "DSP": "MULT18X18D", "BRAM": "DP16KD",
    "LUT RAM": "TRELLIS_DPR16X4",
}
_ECP5_SOURCE = "nextpnr-ecp5's device database"
# A carry cell takes two LUTs; a LUT RAM of 16x4 takes four for the data and two that the write port blocks.
_ECP5_LOGIC: Mapping[str, int] = {"carry": 2, "LUT RAM": 6}


# cells² / 3000 attempts for a cell, and then an error: without, nextpnr looks for hours where a device is nearly full.
_PATIENCE = ("--placer-heap-cell-placement-timeout", "3000")

# Needs a quarter less wire than HeAP for base, and ends; see docs/decisions/fpga.md, "`base` routes on …". router2
# looks at time only where it rips up by it.
_STATIC = ("--placer", "static", "--router", "router2", "--tmg-ripup")
# Read from a design that nextpnr placed; nextpnr refuses a place that is none.
_SITES_85 = Sites((4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114), (10, 34, 58), (22, 46, 70, 82))


def _ecp5(size: str, package: str, capacity: Mapping[str, int], synthesis: str = _ECP5, place: tuple[str, ...] = (),
          sites: Sites | None = None) -> Fpga:
    return Fpga(
        f"ecp5-{size}", f"Lattice ECP5 LFE5U-{size[:-1].upper()}F, speed grade 6", synthesis, _ECP5_PRIMITIVES,
        _ECP5_UNITS,
        {f"LFE5U-{size[:-1]}F": capacity}, _ECP5_SOURCE, ("PFUMX", "L6MUX21"), _ECP5_LOGIC,
        (f"--{size}", "--package", package, "--speed", "6", *place), ecp5_modules=True, sites=sites,
        with_sites=_STATIC if sites else ())


_XC7_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    **{f"LUT{inputs}": ("LUT", 1) for inputs in range(1, 7)}, "CARRY4": ("carry", 1),
    **dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), ("FF", 1)), "DSP48E1": ("DSP", 1),
    # Counted in halves: two blocks of 18 kbit are one of 36.
    "RAMB18E1": ("BRAM", 1), "RAMB36E1": ("BRAM", 2),
    # In LUTs of the kind that can be memory.
    "RAM32X1D": ("LUT RAM", 2), "RAM64X1D": ("LUT RAM", 2), "RAM128X1D": ("LUT RAM", 4), "RAM32M": ("LUT RAM", 4),
    "RAM64M": ("LUT RAM", 4), "SRL16E": ("LUT RAM", 1), "SRLC32E": ("LUT RAM", 1), "SRLC16E": ("LUT RAM", 1),
}

_ICE40_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    "SB_LUT4": ("LUT", 1), "SB_CARRY": ("carry", 1), "SB_MAC16": ("DSP", 1), "SB_RAM40_4K": ("BRAM", 1),
    "SB_SPRAM256KA": ("SPRAM", 1),
    **{f"SB_DFF{kind}": ("FF", 1) for kind in ("", "E", "SR", "R", "SS", "S", "ESR", "ER", "ESS", "ES")},
}

TARGETS: Mapping[str, Target] = {target.name: target for target in (
    _ecp5("25k", "CABGA381", {"LUT": 24288, "FF": 24288, "DSP": 28, "BRAM": 56}, _ECP5_SMALL, _PATIENCE),
    _ecp5("85k", "CABGA756", {"LUT": 83640, "FF": 83640, "DSP": 156, "BRAM": 208}, sites=_SITES_85),
    Fpga("ice40up5k", "Lattice iCE40 UltraPlus 5K",
         "synth_ice40 -device u -dsp -spram -top {top} -json netlist.json\n",
         _ICE40_PRIMITIVES,
         {"LUT": "SB_LUT4", "carry": "SB_CARRY", "FF": "SB_DFF", "DSP": "SB_MAC16", "BRAM": "SB_RAM40_4K",
          "SPRAM": "SB_SPRAM256KA"},
         {"iCE40UP5K": {"LUT": 5280, "FF": 5280, "DSP": 8, "BRAM": 30, "SPRAM": 4}},
         "Lattice FPGA-DS-02008, iCE40 UltraPlus Family",
         unplaced="even one lane needs twice the multipliers of the device, so no machine is placed"),
    Fpga("xc7", "AMD 7-series (Artix-7)",
         "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top {top}\nautoname\nwrite_json netlist.json\n",
         _XC7_PRIMITIVES,
         {"LUT": "LUT2-LUT6", "carry": "CARRY4", "FF": "FDRE", "DSP": "DSP48E1", "BRAM": "RAMB18E1 (a RAMB36E1 is two)",
          "LUT RAM": "LUTs as memory"},
         {"XC7A35T": {"LUT": 20800, "FF": 41600, "DSP": 90, "BRAM": 100},
          "XC7A100T": {"LUT": 63400, "FF": 126800, "DSP": 240, "BRAM": 270},
          "XC7A200T": {"LUT": 134600, "FF": 269200, "DSP": 740, "BRAM": 730}},
         "AMD DS180, 7 Series FPGAs Data Sheet: Overview",
         ("MUXF7", "MUXF8", "INV"),
         {"LUT RAM": 1},
         unplaced="there is no packaged open place and route for it: these are figures of synthesis, without a "
                  "frequency"),
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


_ANY_COLLISION = ("select -set clocked t:$mem_v2 r:RD_PORTS=1 %i r:WR_PORTS=1 %i r:RD_CLK_ENABLE=1'1 %i\n"
                  "setparam -set RD_COLLISION_X_MASK 1'1 @clocked\n")


def with_any_collision(synthesis: str) -> str:
    """Return ``Fpga.synthesis`` of an ECP5 where clocked memories may give anything for a word that is being written.

    Yosys then needs no logic around block RAMs that keeps the old word there.
    """
    begins = f"{ECP5_SYNTHESIS} -top {{top}} -run "
    return synthesis.replace(f"{begins}begin:", f"{begins}begin:map_ram\n{_ANY_COLLISION}{begins}map_ram:", 1)
