"""Gowin's families: GW2A (Tang Nano 20K), and GW5A (Tang Primer 25K)."""

from collections.abc import Mapping

from tilewright.hardware.synthesis.families.fpga_family import LONE_REGISTER, PATIENCE, PINS_FILE, Fpga

__all__ = ["DEVICES"]

_LUTS = tuple(f"LUT{inputs}" for inputs in range(1, 5))
_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(_LUTS, ("LUT", 1)), "ALU": ("carry", 1),
    **{f"DFF{kind}{enable}": ("FF", 1) for kind in ("", "S", "R", "P", "C") for enable in ("", "E")},
    LONE_REGISTER: ("lone FF", 1),
    **dict.fromkeys(("MULT9X9", "MULT18X18", "MULT27X36", "MULT12X12"), ("DSP", 1)), "MULT36X36": ("DSP", 2),
    **dict.fromkeys(("SP", "SPX9", "DPB", "DPX9B", "SDPB", "SDPX9B"), ("BRAM", 1)), "RAM16SDP4": ("LUT RAM", 1),
}
_UNITS = {"LUT": "LUT1-LUT4", "carry": "ALU", "FF": "DFF", "lone FF": "DFF without a LUT", "DSP": "MULT18X18",
          "BRAM": "SDPX9B", "LUT RAM": "RAM16SDP4"}
_UNCOUNTED = ("MUX2_LUT5", "MUX2_LUT6", "MUX2_LUT7", "MUX2_LUT8", "IBUF", "OBUF", "GND", "VCC", "INV")
# As nextpnr-himbaechel packs them: a RAM16SDP4 takes eight LUTs, and the flip-flops of six of these. It leads nothing
# to a flip-flop but the LUT or the ALU in its place (`slice_valid` in its gowin.cc).
_LOGIC = {"carry": 1, "lone FF": 1, "LUT RAM": 8}
_REGISTERS = {"LUT RAM": 6}
_BEFORE_REGISTERS = {**dict.fromkeys(_LUTS, "F"), "ALU": "SUM"}

DEVICES = (
    Fpga("gw2a-18", "Gowin GW2A-18 (Tang Nano 20K), speed grade 8",
         "synth_gowin -family gw2a -top {top} -json netlist.json\n", _PRIMITIVES, _UNITS,
         {"GW2A-18": {"LUT": 20736, "FF": 15552, "DSP": 48, "BRAM": 46}}, "Gowin DS102, GW2A Series",
         _UNCOUNTED, _LOGIC,
         ("--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C", "--vopt", f"cst={PINS_FILE}", *PATIENCE),
         router="himbaechel-gowin", pins={"clk": "4", "rst": "88", "in": "87", "take": "16", "out": "15"},
         pin_line='IO_LOC "{port}" {pin};\n', registers_per=_REGISTERS, before_registers=_BEFORE_REGISTERS),
    Fpga("gw5a-25", "Gowin GW5A-25 (Tang Primer 25K)",
         "synth_gowin -family gw5a -top {top} -json netlist.json\n", _PRIMITIVES, _UNITS,
         {"GW5A-25": {"LUT": 23040, "FF": 23040, "DSP": 28, "BRAM": 56}}, "Gowin DS1103, GW5A Series",
         _UNCOUNTED, _LOGIC,
         unplaced="Yosys 0.70 makes no multiplier of its DSP blocks and takes logic instead, and it makes "
                  "memories that the device has not (RAM16SDP4)",
         registers_per=_REGISTERS, before_registers=_BEFORE_REGISTERS),
)
