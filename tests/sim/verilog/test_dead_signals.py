"""Signals that nothing reads go, and all that only they read; everything else stays."""

import pytest

from tilewright.sim.verilog.dead_signals import without_dead_signals

MODULE = """\
module top(a, q, r);
  input [7:0] a;
  wire [7:0] a;
  output [3:0] q;
  wire [3:0] q;
  output r;
  reg r = 1'h0;
  wire [7:0] first;
  wire signed [3:0] \\first.low ;
  reg [7:0] \\$7 ;
  assign first = a;
  assign \\first.low  = first[3:0];
  assign q = a[3:0];
endmodule
"""

LIVE = """\
module top(a, q, r);
  input [7:0] a;
  wire [7:0] a;
  output [3:0] q;
  wire [3:0] q;
  output r;
  reg r = 1'h0;
  assign q = a[3:0];
endmodule
"""


def test_chains_of_dead_signals_go():
    assert without_dead_signals(MODULE) == LIVE


@pytest.mark.parametrize("reader", [
    "  always @(posedge clk) r <= \\first.low [0];\n",
    "  part part (.i(\\first.low ));\n",
    "  always @(posedge clk) if (!rst) assert (\\first.low [3]);\n",
])
def test_what_is_read_stays(reader):
    text = MODULE.replace("  assign q", f"{reader}  assign q")
    assert without_dead_signals(text) == text.replace("  reg [7:0] \\$7 ;\n", "")


def test_modules_are_looked_at_one_by_one():
    text = MODULE + "module other(first);\n  output first;\n  wire first;\nendmodule\n"
    assert without_dead_signals(text) == LIVE + text[len(MODULE):]
