"""Families that no packaged open tool places: AMD 7-series, Intel Cyclone V, Cologne Chip GateMate."""

from collections.abc import Mapping

from tilewright.hardware.synthesis.families.fpga_family import Fpga

__all__ = ["DEVICES"]

_UNPLACED = "there is no packaged open place and route for it: these are figures of synthesis, without a frequency"

_XC7_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    **{f"LUT{inputs}": ("LUT", 1) for inputs in range(1, 7)}, "CARRY4": ("carry", 1),
    **dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), ("FF", 1)), "DSP48E1": ("DSP", 1),
    # Counted in halves: two blocks of 18 kbit are one of 36.
    "RAMB18E1": ("BRAM", 1), "RAMB36E1": ("BRAM", 2),
    # In LUTs of the kind that can be memory.
    "RAM32X1D": ("LUT RAM", 2), "RAM64X1D": ("LUT RAM", 2), "RAM128X1D": ("LUT RAM", 4), "RAM32M": ("LUT RAM", 4),
    "RAM64M": ("LUT RAM", 4), "SRL16E": ("LUT RAM", 1), "SRLC32E": ("LUT RAM", 1), "SRLC16E": ("LUT RAM", 1),
}
_CYCLONE_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    **{f"MISTRAL_ALUT{inputs}": ("LUT", 1) for inputs in range(2, 7)}, "MISTRAL_ALUT_ARITH": ("carry", 1),
    "MISTRAL_FF": ("FF", 1), **dict.fromkeys(("MISTRAL_MUL9X9", "MISTRAL_MUL18X18", "MISTRAL_MUL27X27"), ("DSP", 1)),
    "MISTRAL_M10K": ("BRAM", 1), "MISTRAL_MLAB": ("LUT RAM", 1),
}
_GATEMATE_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    **{f"CC_LUT{inputs}": ("LUT", 1) for inputs in range(1, 5)},
    **dict.fromkeys(("CC_L2T4", "CC_L2T5", "CC_MX2"), ("LUT", 1)), "CC_MX4": ("LUT", 2), "CC_MX8": ("LUT", 4),
    "CC_ADDF": ("carry", 1), **dict.fromkeys(("CC_DFF", "CC_DLT"), ("FF", 1)), "CC_MULT": ("DSP", 1),
    "CC_BRAM_20K": ("BRAM", 1), "CC_BRAM_40K": ("BRAM", 2),
}

DEVICES = (
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
         unplaced=_UNPLACED),
    Fpga("cyclonev", "Intel Cyclone V SE A6 (DE10-Nano)",
         "synth_intel_alm -family cyclonev -top {top}\nautoname\nwrite_json netlist.json\n",
         _CYCLONE_PRIMITIVES,
         {"LUT": "ALUT (an ALM is two)", "carry": "ALUT in a chain", "FF": "FF", "DSP": "18x18 (a block is two)",
          "BRAM": "M10K", "LUT RAM": "bits of MLAB, 32 words"},
         {"5CSEBA6": {"LUT": 83020, "FF": 166036, "DSP": 224, "BRAM": 553}},
         "Intel CV-51001, Cyclone V Device Overview",
         ("MISTRAL_NOT", "MISTRAL_CLKENA", "MISTRAL_CLKBUF", "MISTRAL_IB", "MISTRAL_OB"), {"carry": 1},
         unplaced=_UNPLACED),
    Fpga("gatemate-a1", "Cologne Chip GateMate CCGM1A1",
         "synth_gatemate -nomx8 -top {top} -json netlist.json\n", _GATEMATE_PRIMITIVES,
         {"LUT": "LUTs of four inputs", "carry": "CC_ADDF", "FF": "CC_DFF", "DSP": "CC_MULT, of logic cells",
          "BRAM": "20-kbit block RAM"},
         {"CCGM1A1": {"LUT": 40960, "FF": 40960, "BRAM": 64}}, "Cologne Chip DS1001, CCGM1A1",
         ("CC_BUFG", "CC_IBUF", "CC_OBUF"), {"carry": 1},
         unplaced=_UNPLACED),
)
