"""Names in waveforms: no dollar sign is left, what has no name is hidden, and the design stays the same."""

import re

from tilewright.sim.verilog.wave_names import HIDDEN, with_wave_names

TEXT = r"""
module \top.unit$3 (clk, \busy$94 , o);
  input clk;
  output \busy$94 ;
  wire \busy$94 ;
  output [3:0] o;
  wire [3:0] o;
  wire \$17 ;
  wire [1:0] \$auto$proc.cc:9$2 ;
  reg [3:0] \runs$66  = 4'h0;
  reg [3:0] runs_66 = 4'h0;
  wire [2:0] \commands__payload.funct3 ;
  wire [2:0] \commands__payload$1.funct3 ;
  reg \memory$5 [15:0];
  assign \busy$94  = \$17  & \$auto$proc.cc:9$2 [0];
  assign o = \runs$66  + runs_66;
  \top.unit$3.part  \part$4  (.\busy$94 (\busy$94 ));
endmodule
"""


def test_no_name_that_is_shown_has_a_dollar_sign():
    found = with_wave_names(TEXT)
    shown = [name for name in re.findall(r"\\(\S+)|\b([A-Za-z_]\w*(?:\$\w+)*)", found) for name in name if name]
    assert not [name for name in shown if "$" in name and not name.startswith(HIDDEN)]


def test_signals_without_a_name_and_those_of_neighbours_are_hidden():
    found = with_wave_names(TEXT)
    hidden = set(re.findall(rf"{HIDDEN}\d+", found))
    assert len(hidden) == 4         # $17, $auto..., busy$94, commands__payload$1.funct3
    assert re.search(rf"assign {HIDDEN}\d+  = {HIDDEN}\d+  & {HIDDEN}\d+ \[0\];", found)


def test_a_register_keeps_its_name_with_a_number_that_nobody_has():
    found = with_wave_names(TEXT)
    assert "reg [3:0] runs_66_  = 4'h0;" in found
    assert "reg [3:0] runs_66 = 4'h0;" in found
    assert "assign o = runs_66_  + runs_66;" in found
    assert "reg memory_5 [15:0];" in found


def test_instances_are_never_hidden():
    assert re.search(rf"\\top.unit_3.part  part_4  \(\.{HIDDEN}\d+ \({HIDDEN}\d+ \)\);", with_wave_names(TEXT))


def test_names_of_fields_stay():
    assert r"wire [2:0] \commands__payload.funct3 ;" in with_wave_names(TEXT)
