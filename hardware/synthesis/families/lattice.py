"""Lattice's families but ECP5: Nexus (CrossLink-NX) and iCE40 UltraPlus."""

from collections.abc import Mapping

from tilewright.hardware.synthesis.families.fpga_family import PINS_FILE, Fpga

__all__ = ["DEVICES"]

# A carry chain of synth_nexus begins with a cell that passes on its A1, whatever its own carry-in, which is open at
# first. Yosys 0.70 ties it to VLO, and nextpnr-nexus refuses that ("CIN net … driven by non-CCU2 cell", Yosys' issue
# 4081). So it is opened again.
_NEXUS = """\
synth_nexus -family lifcl -top {top}
design -stash mapped
read_verilog <<end_of_modules
module VLO(output Z);
  assign Z = 1'b0;
endmodule
module CCU2(input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT);
  parameter INIT0 = "0x0000";
  parameter INIT1 = "0x0000";
  parameter INJECT = "YES";
  parameter _TECHMAP_CONSTMSK_CIN_ = 1'b0;
  wire _TECHMAP_FAIL_ = !_TECHMAP_CONSTMSK_CIN_ || INIT0 != "0xFFFF";
  CCU2 #(.INIT0(INIT0), .INIT1(INIT1), .INJECT(INJECT)) _TECHMAP_REPLACE_ (.A0(A0), .B0(B0), .C0(C0), .D0(D0),
    .A1(A1), .B1(B1), .C1(C1), .D1(D1), .S0(S0), .S1(S1), .COUT(COUT));
endmodule
end_of_modules
design -stash open_carry
design -load mapped
techmap -max_iter 1 -map %open_carry t:VLO
techmap -max_iter 1 -map %open_carry t:CCU2
hilomap -singleton -hicell VHI Z -locell VLO Z
clean
write_json netlist.json
"""
_NEXUS_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    "LUT4": ("LUT", 1), "WIDEFN9": ("LUT", 2), "CCU2": ("carry", 1),
    **{f"FD1P3{kind}X": ("FF", 1) for kind in "BDIJ"},
    **dict.fromkeys(("MULT9X9", "MULT18X18"), ("DSP", 1)),
    **dict.fromkeys(("MULT18X36", "MULTADDSUB18X18"), ("DSP", 2)),
    "MULT36X36": ("DSP", 4), **dict.fromkeys(("DP16K", "PDP16K", "PDPSC16K"), ("BRAM", 1)),
    "PDPSC512K": ("large RAM", 1), "DPR16X4": ("LUT RAM", 1),
}

_ICE40_PRIMITIVES: Mapping[str, tuple[str, int]] = {
    "SB_LUT4": ("LUT", 1), "SB_CARRY": ("carry", 1), "SB_MAC16": ("DSP", 1), "SB_RAM40_4K": ("BRAM", 1),
    "SB_SPRAM256KA": ("SPRAM", 1),
    **{f"SB_DFF{kind}": ("FF", 1) for kind in ("", "E", "SR", "R", "SS", "S", "ESR", "ER", "ESS", "ES")},
}

DEVICES = (
    Fpga("nexus-40", "Lattice Nexus LIFCL-40 (CrossLink-NX), speed grade 9", _NEXUS, _NEXUS_PRIMITIVES,
         {"LUT": "LUT4 (a WIDEFN9 is two)", "carry": "CCU2", "FF": "FD1P3", "DSP": "MULT18X18", "BRAM": "PDPSC16K",
          "large RAM": "PDPSC512K", "LUT RAM": "DPR16X4"},
         {"LIFCL-40": {"LUT": 32256, "FF": 32256, "DSP": 56, "BRAM": 84, "large RAM": 2}},
         "nextpnr-nexus's device database", ("INV", "OSC_CORE", "IB", "OB", "VHI", "VLO"), {"carry": 2, "LUT RAM": 6},
         # router2 finds no way from the oscillator to the global clock of a full device (nextpnr's issue 1317).
         ("--device", "LIFCL-40-9BG400C", "--pdc", PINS_FILE, "--router", "router1"), router="nexus",
         # Of Lattice's evaluation board. nextpnr-nexus finds no way from a pin there to a global clock.
         oscillator='OSC_CORE #(.HF_CLK_DIV("5"), .HF_OSC_EN("ENABLED")) '
                    "oscillator(.HFOUTEN(1'b1), .HFCLKOUT(clk));",
         pins={"rst": "G13", "in": "F14", "take": "E17", "out": "F13"},
         pin_line="ldc_set_location -site {{{pin}}} [get_ports {port}]\n"),
    Fpga("ice40up5k", "Lattice iCE40 UltraPlus 5K",
         "synth_ice40 -device u -dsp -spram -top {top} -json netlist.json\n",
         _ICE40_PRIMITIVES,
         {"LUT": "SB_LUT4", "carry": "SB_CARRY", "FF": "SB_DFF", "DSP": "SB_MAC16", "BRAM": "SB_RAM40_4K",
          "SPRAM": "SB_SPRAM256KA"},
         {"iCE40UP5K": {"LUT": 5280, "FF": 5280, "DSP": 8, "BRAM": 30, "SPRAM": 4}},
         "Lattice FPGA-DS-02008, iCE40 UltraPlus Family",
         unplaced="even one lane needs twice the multipliers of the device, so no machine is placed"),
)
