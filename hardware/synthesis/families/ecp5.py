"""ECP5: its synthesis, which gives our own multipliers and register file places of their own, and its devices."""

from collections.abc import Mapping

from tilewright.hardware.synthesis.ecp5.block_places import Sites
from tilewright.hardware.synthesis.families.fpga_family import PATIENCE, Fpga

__all__ = ["DEVICES", "ECP5_SYNTHESIS", "with_any_collision"]

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


DEVICES = (
    _ecp5("25k", "CABGA381", {"LUT": 24288, "FF": 24288, "DSP": 28, "BRAM": 56}, _ECP5_SMALL, PATIENCE),
    _ecp5("85k", "CABGA756", {"LUT": 83640, "FF": 83640, "DSP": 156, "BRAM": 208}, sites=_SITES_85),
)

_ANY_COLLISION = ("select -set clocked t:$mem_v2 r:RD_PORTS=1 %i r:WR_PORTS=1 %i r:RD_CLK_ENABLE=1'1 %i\n"
                  "setparam -set RD_COLLISION_X_MASK 1'1 @clocked\n")


def with_any_collision(synthesis: str) -> str:
    """Return ``Fpga.synthesis`` of an ECP5 where clocked memories may give anything for a word that is being written.

    Yosys then needs no logic around block RAMs that keeps the old word there.
    """
    begins = f"{ECP5_SYNTHESIS} -top {{top}} -run "
    return synthesis.replace(f"{begins}begin:", f"{begins}begin:map_ram\n{_ANY_COLLISION}{begins}map_ram:", 1)
