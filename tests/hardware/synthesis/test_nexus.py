"""Synthesis for Nexus: carry chains begin with a carry-in that is open, as nextpnr wants it, and count as before."""

import json
import subprocess

import pytest

from tilewright.hardware.synthesis.families.lattice import DEVICES
from tilewright.tools.toolchain import yosys_command

NEXUS = next(device for device in DEVICES if device.name == "nexus-40")
GOLD = """
module gold(input clk, input [7:0] x, y, output reg [7:0] sum, difference, output reg less);
  always @(posedge clk) begin
    sum <= x + y;
    difference <= x - y;
    less <= $signed(x) < $signed(y);
  end
endmodule
"""
PROOF = """
read_verilog gold.v netlist.v
read_verilog -lib -overwrite +/nexus/cells_xtra.v
read_verilog -overwrite +/nexus/cells_sim.v
hierarchy -check
proc
flatten
opt_clean
miter -equiv -flatten -make_outputs gold netlist miter
hierarchy -top miter
proc
opt
sat -verify -tempinduct -prove trigger 0 -seq 2 miter
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a mapped design, as JSON and as Verilog."""
    place = tmp_path_factory.mktemp("nexus")
    (place / "gold.v").write_text(GOLD)
    run(place, f"read_verilog gold.v\n{NEXUS.synthesis.format(top='gold')}rename gold netlist\n"
               "write_verilog -noattr netlist.v\n")
    return place


def run(folder, script):
    (folder / "script.ys").write_text(script)
    done = subprocess.run([*yosys_command(), "-q", "script.ys"], cwd=folder, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_chain_begins_with_a_constant(folder):
    cells = json.loads((folder / "netlist.json").read_text())["modules"]["gold"]["cells"]
    constants = {bit for cell in cells.values() if cell["type"] in ("VHI", "VLO") for bit in cell["connections"]["Z"]}
    carry_ins = [cell["connections"].get("CIN", []) for cell in cells.values() if cell["type"] == "CCU2"]
    assert [] in carry_ins
    assert len(carry_ins) == 2 * 5      # the comparison has that of the difference
    assert not constants & {bit for bits in carry_ins for bit in bits}
    assert not {"0", "1", "x"} & {bit for bits in carry_ins for bit in bits}


def test_it_counts_as_the_verilog(folder):
    run(folder, PROOF)
