"""Wide registers are marked for Verilator; narrow ones and memories are not."""

import pytest

from tilewright.sim.verilog.split_registers import with_split_registers


@pytest.mark.parametrize(("line", "expected"), [
    ("  reg [64:0] wide = 65'h0;", "  reg [64:0] wide /*verilator split_var*/ = 65'h0;"),
    ("  reg [64:0] wide;", "  reg [64:0] wide /*verilator split_var*/;"),
    ("  reg signed [191:0] \\a$7  = 192'h0;", "  reg signed [191:0] \\a$7  /*verilator split_var*/ = 192'h0;"),
    ("  reg [63:0] narrow = 64'h0000000000000000;", None),
    ("  reg [127:0] storage [511:0];", None),
    ("  wire [127:0] wire_only;", None),
    ("    reg [127:0] in_a_block;", None),
])
def test_registers(line, expected):
    text = f"module top(clk);\n{line}\nendmodule\n"
    assert with_split_registers(text) == text.replace(line, expected or line)
