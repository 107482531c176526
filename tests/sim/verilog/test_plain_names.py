"""Escaped identifiers become plain ones: deterministic, without collisions, and the same design."""

import re
import subprocess

import pytest
from amaranth import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.verilog.elaborate import verilog
from tilewright.sim.verilog.plain_names import KEYWORDS, plain_names
from tilewright.tools.toolchain import yosys_command


@pytest.mark.parametrize(("text", "expected"), [
    ("assign \\a.b = 1;", "assign a_b= 1;"),
    ("wire \\u[3] , \\u[4] ;", "wire u_3_, u_4_;"),
    ("wire [3:0] \\$17  ;", "wire [3:0] _17 ;"),
    ("module \\top.x (\\y$1 );", "module top_x(y_1);"),
    ("\\a.b \\c.d ;", "a_b c_d;"),  # a blank follows
    ("\\a.b\nwire", "a_b\nwire"),
    ("wire \\3x ;", "wire _3x;"),
    ("wire a_b, \\a.b , \\a[b ;", "wire a_b, a_b_2, a_b_3;"),
    ("wire \\a.b , \\a[b , a_b_2;", "wire a_b, a_b_3, a_b_2;"),
    ("wire \\output , \\logic ;", "wire output_2, logic_2;"),
    ("wire \\foo , foo;", "wire foo, foo;"),  # one and the same
    ("wire \\a$b , a$b, \\c$d ;", "wire a$b, a$b, c_d;"),
    ('$display("\\n \\x "); // \\a.b \n/* \\c.d */', '$display("\\n \\x "); // \\a.b \n/* \\c.d */'),
    ("`MACRO 8'hab $signed(\\x.y )", "`MACRO 8'hab $signed(x_y)"),
])
def test_names(text, expected):
    assert plain_names(text) == expected


def test_nothing_is_left_and_a_second_time_changes_nothing():
    text = "module \\m.n (\\a[0] ); wire \\b.c = \\a[0] ; endmodule\n"
    once = plain_names(text)
    assert "\\" not in once
    assert plain_names(once) == once
    assert plain_names(text) == once


def test_keywords_are_those_of_both_languages():
    assert {"config", "table", "logic", "priority", "reg", "endmodule"} <= KEYWORDS
    assert len(KEYWORDS) == 248


class Awkward(wiring.Component):
    """Names with brackets, dots and keywords, in a submodule with a memory."""

    i: In(8)
    k: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Module()
        inner.submodules.table = table = memory.Memory(shape=8, depth=4, init=[])
        write, read = table.write_port(), table.read_port()
        first, second = Signal(8, name="a[0]"), Signal(8, name="a.0.")
        other = Signal(8, name="output")
        inner.d.comb += [write.addr.eq(self.k), write.en.eq(1), write.data.eq(first ^ other), read.addr.eq(1),
                         other.eq(self.k), first.eq(self.i)]
        inner.d.sync += second.eq(read.data)
        m.d.comb += self.o.eq(second ^ other)
        return m


def is_proven_equal(text, other):
    """Whether Yosys finds that both descriptions of ``awkward`` do the same for ever."""
    read = "read_verilog <<text\n{}text\nhierarchy -top awkward\nproc\nflatten\nmemory\nopt_clean\n"
    # Through standard input: Yosys as WebAssembly does not see files under /tmp.
    script = "".join([
        read.format(text), "rename awkward gold\ndesign -stash gold\n",
        read.format(other), "rename awkward gate\ndesign -stash gate\n",
        "design -copy-from gold gold\ndesign -copy-from gate gate\n",
        "miter -equiv -make_assert -flatten gold gate miter\nhierarchy -top miter\n",
        "sat -verify -prove-asserts -seq 3 -set-init-zero -tempinduct miter\n",
    ])
    done = subprocess.run([*yosys_command(), "-q", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "proof did fail" in done.stderr, done.stderr
    return done.returncode == 0


def test_yosys_proves_the_renamed_design_equal():
    text = verilog(Awkward(), "awkward")
    renamed = plain_names(text)
    assert re.search(r"\\a\[0\] ", text)
    assert "\\" not in renamed
    assert is_proven_equal(text, renamed)
    assert not is_proven_equal(text, renamed.replace(" ^ ", " | "))
