"""Verilog of queues whose bits can turn over, and of a coprocessor whose coverage is counted."""

from tilewright.sim.verilog.covered import with_plain_toggles
from tilewright.sim.verilog.upsets import queue_names, with_upsets

TEXT = """\
module \\top.plain (clk);
  reg [3:0] kept;
endmodule
module \\top.unit.first (clk);
  reg [73:0] storage [2:0];
endmodule
module \\top.second (clk);
  reg storage [15:0];
endmodule
"""


def test_each_queue_asks_for_its_own_upset() -> None:
    assert queue_names(TEXT) == ["unit.first", "second"]
    changed = with_upsets(TEXT)
    assert changed.count("tilewright_upset(input") == 2
    assert "tilewright_upset(0, 222)" in changed
    assert "74'd1 << (upset_place % 74)" in changed
    assert "tilewright_upset(1, 16)" in changed
    assert changed.count("endmodule") == 3
    assert "tilewright_upset" not in changed[:changed.index("endmodule")]


def test_signals_without_a_name_are_hidden_from_verilator() -> None:
    assert with_plain_toggles("wire \\$12 ;\nwire \\a$3 ;\nassign \\$12  = x;\n") == \
        "wire \\_$12 ;\nwire \\a$3 ;\nassign \\_$12  = x;\n"


def test_empty_branch_of_each_process_is_left_out() -> None:
    process = "  always @* begin\n{}    x = y;\n    if (z) begin\n      x = 1'h0;\n    end\n  end\n"
    written = process.format("    if (\\$auto$verilog_backend.cc:2505:dump_module$5 ) begin end\n")
    assert with_plain_toggles(written) == process.format("")
