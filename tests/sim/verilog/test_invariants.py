"""Assertions that are written into the coprocessor's Verilog: where, and that registers begin without values."""

import re

import pytest

from tilewright.isa.machine import preset
from tilewright.sim.verilog.elaborate import coprocessor_verilog, without_initial_values
from tilewright.sim.verilog.invariants import with_invariants

QUEUE = """\
module queue(clk, rst, w_en, r_en, {ports}r_data);
  input clk;
  input rst;
  input w_en;
  input r_en;
  {kind}wire w_rdy;
  output r_rdy;
  wire r_rdy;
  reg [7:0] storage [3:0];
endmodule
"""


@pytest.fixture(scope="module")
def text():
    return coprocessor_verilog(preset("nano"))


def test_a_queue_whose_room_nobody_looks_at_is_checked():
    blind = QUEUE.format(ports="r_rdy, ", kind="")
    assert 'if (!rst) assert (!w_en || w_rdy) else $error("an entry was lost in queue");\nendmodule' in (
        with_invariants(blind))
    assert "made up" not in with_invariants(blind)
    looking = QUEUE.format(ports="w_rdy, r_rdy, ", kind="output w_rdy;\n  ")
    assert with_invariants(looking) == looking


def test_queues_of_the_port_and_semaphores_of_the_coprocessor_are_checked(text):
    found = re.findall(r'\$error\("(.*) in (\S+)"\);', with_invariants(text))
    assert {("an entry was lost", "coprocessor.adapter.committed"),
            ("an entry was lost", "coprocessor.adapter.answers"),
            ("an event was lost", "coprocessor.coprocessor.semaphores")} <= set(found)
    assert len(found) > 6


def test_no_register_has_a_value_before_reset(text):
    assert re.search(r"^  reg \[3:0\] level = 4'h0;$", text, re.MULTILINE)
    bare = without_initial_values(text)
    assert not re.search(r"^  reg [^\\;]*=", bare, re.MULTILINE)
    assert len(bare.splitlines()) == len(text.splitlines())
