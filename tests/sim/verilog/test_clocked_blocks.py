"""Registers become one clocked block each, and the design stays the same."""

import subprocess

import pytest

from tilewright.rtl.arithmetic.requantise import Requantise
from tilewright.rtl.port.semaphores import Semaphores
from tilewright.sim.verilog.clocked_blocks import with_clocked_blocks
from tilewright.sim.verilog.elaborate import verilog
from tilewright.tools.toolchain import yosys_command

REGISTER = """\
module top(clk, enable, a, q);
  reg [7:0] q = 8'h00;
  reg [7:0] \\$1 ;
  always @(posedge clk)
    q <= \\$1 ;
  always @* begin
    if (\\$auto$7 ) begin end
    \\$1  = q;
    if (enable) begin
      \\$1 [3:0] = a;
      \\$1 [7:4] = \\$12 ;
    end
  end
endmodule
"""

CLOCKED = """\
module top(clk, enable, a, q);
  reg [7:0] q = 8'h00;
  reg [7:0] \\$1 ;
  always @(posedge clk) begin
    if (enable) begin
      q[3:0] <= a;
      q[7:4] <= \\$12 ;
    end
  end
endmodule
"""


def test_a_register_that_holds_its_value_is_left_alone():
    assert with_clocked_blocks(REGISTER) == CLOCKED


@pytest.mark.parametrize(("old", "new"), [
    ("endmodule", "  assign b = \\$1 ;\nendmodule"),  # the next value goes elsewhere, too
    ("reg [7:0] \\$1 ;", "reg [8:0] \\$1 ;"),  # another width: what is computed could differ
    ("= \\$12 ;", "= \\$1 [3:0];"),  # it depends on itself
    ("if (enable) begin\n", "if (enable) begin\n      \\$2  = a;\n"),  # the block has another result
    ("if (enable) begin\n", "if (enable) begin\n      { \\$1 [0], \\$2  } = a;\n"),
])
def test_other_blocks_stay_as_they_are(old, new):
    text = REGISTER.replace(old, new)
    assert text != REGISTER
    assert with_clocked_blocks(text) == text


@pytest.mark.parametrize("component", [Semaphores(), Requantise(1)])
def test_the_design_stays_the_same(component):
    text = verilog(component, "design")
    clocked = with_clocked_blocks(text)
    assert clocked.count("always @*") < text.count("always @*")
    assert is_proven_equal(text, clocked)
    assert not is_proven_equal(text, clocked.replace(" <= ", " <= ~", 1))


def is_proven_equal(text: str, other: str) -> bool:
    """Whether Yosys finds that both descriptions of ``design`` do the same, register by register."""
    script = "".join(
        f"read_verilog <<text\n{each}text\nhierarchy -top design\nproc\nflatten\nmemory\nopt_clean\n"
        f"rename design {name}\ndesign -stash {name}\n" for each, name in ((text, "gold"), (other, "gate")))
    script += ("design -copy-from gold gold\ndesign -copy-from gate gate\nequiv_make gold gate both\n"
               "hierarchy -top both\nequiv_simple -seq 1\nequiv_status -assert\n")
    done = subprocess.run([*yosys_command(), "-q", "-"], input=script, capture_output=True, text=True, check=False)
    assert "unproven" in done.stderr or done.returncode == 0, done.stderr
    return done.returncode == 0
