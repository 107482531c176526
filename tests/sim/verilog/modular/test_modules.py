# amaranth: UnusedElaboratable=no
"""One module for each kind of block: names are those of the source, and the same on every machine."""

import re
from dataclasses import replace

import pytest
from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tests.support.machines import TINY
from tilewright.isa.machine import preset
from tilewright.sim.verilog.elaborate import coprocessor_modules
from tilewright.sim.verilog.modular.memories import MemoryShape
from tilewright.sim.verilog.modular.modules import modules_of
from tilewright.sim.verilog.modular.unique_names import UniqueNames

PAIR = data.StructLayout({"low": 4, "high": 8})


class Adder(wiring.Component):
    """Adds one."""

    def __init__(self, width):
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.o.eq(self.i + 1)
        return m


class Around(wiring.Component):
    """Three adders, two of them equal, whose inputs are parts of structures or of two signals, and a memory."""

    def __init__(self):
        super().__init__({"pair": In(PAIR), "place": In(2), "kept": Out(8), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.first, m.submodules.second, m.submodules.wide = parts = Adder(4), Adder(4), Adder(8)
        m.submodules.words = words = Memory(shape=8, depth=4, init=[])
        write, read = words.write_port(), words.read_port()
        valid = Signal()
        m.d.comb += [
            parts[0].i.eq(self.pair.low),
            parts[1].i.eq(self.pair.high[2:6]),
            parts[2].i.eq(self.pair.as_value()[3:11]),
            write.addr.eq(self.place), write.data.eq(parts[2].o), write.en.eq(valid), read.addr.eq(self.place),
            self.kept.eq(read.data), self.o.eq(parts[0].o ^ parts[1].o), valid.eq(parts[0].o[0]),
        ]
        return m


def ports(rtlil):
    """Return the names of the ports of each module."""
    modules = re.split(r"^module \\", rtlil, flags=re.MULTILINE)[1:]
    return {each.split(None, 1)[0]: re.findall(r"^  wire width \d+ (?:input|output) \d+ +(?:signed )?\\(\S+)", each,
                                               re.MULTILINE) for each in modules}


def test_equal_modules_are_one_and_ports_keep_their_names():
    made = modules_of(Around(), "around")
    assert {name: set(each) for name, each in ports(made.rtlil).items()} == {
        "around_adder": {"clk", "rst", "i", "o"}, "around_adder_in_around": {"clk", "rst", "i", "o"},
        "around": {"clk", "rst", "pair", "place", "kept", "o"}}
    assert re.findall(r"cell \\(around_adder\w*) \\(\w+)", made.rtlil) == [
        ("around_adder", "first"), ("around_adder", "second"), ("around_adder_in_around", "wide")]
    assert made.rtlil.count("attribute \\top 1") == 1
    assert made.contracts == {"around_adder": "Adds one.", "around_adder_in_around": "Adds one."}
    for name in ("first__o", "second__o", "wide__i", "words__r_addr", "words__w_data"):
        assert f"\\{name}\n" in made.rtlil


class Store(wiring.Component):
    """A memory of ``depth`` words, written by halves and read in the clock or at once."""

    def __init__(self, depth, domain="sync"):
        self.depth, self.domain = depth, domain
        super().__init__({"place": In(5), "value": In(16), "halves": In(2), "o": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=16, depth=self.depth, init=[])
        write, read = words.write_port(granularity=8), words.read_port(domain=self.domain)
        m.d.comb += [write.addr.eq(self.place), write.data.eq(self.value), write.en.eq(self.halves),
                     read.addr.eq(self.place), self.o.eq(read.data)]
        return m


def test_memories_with_a_clocked_port_are_instances_of_one_module():
    made = modules_of(Store(32), "store", memories_apart=True)
    assert made.memories == {MemoryShape(depth=32, width=16, granule=8): 1}
    assert re.findall(r"cell \\tilewright_memory \\(\w+)", made.rtlil) == ["words"]
    assert "cell $mem" not in made.rtlil
    for inside in (Store(16), Store(32, "comb")):
        kept = modules_of(inside, "store", memories_apart=True)
        assert kept.memories == {}
        assert "$mem" in kept.rtlil
    assert modules_of(Store(32), "store").memories == {}


def names_of(machine):
    """Return the names of modules and of their ports, of which a machine has more or fewer by number."""
    found = ports(coprocessor_modules(machine, "cvxif", "pins").rtlil)
    return {name: {re.sub(r"\d+", "N", port) for port in each} for name, each in found.items()}


OF_SOME_MACHINES = {
    "drain_begins": "only the array of a machine that takes whole tiles waits for a drain",
    "drain_steady": "likewise",
    "o__valid": "nobody asks the residual add of a machine of paired lanes when its sums are there",
    "sums_request__slice": "no bits, where a tile's sums are one slice",
}
"""Ports of equal modules that a machine has or has not, and why; all others differ in their widths alone."""


@pytest.mark.parametrize(("one", "other"), [
    (TINY, replace(TINY, bus_bytes=2 * TINY.bus_bytes, activation_bytes=2 * TINY.activation_bytes)),
    pytest.param(preset("nano"), preset("base"), marks=pytest.mark.slow),
    pytest.param(preset("base"), preset("large"), marks=pytest.mark.slow)])
def test_two_machines_have_the_same_names(one, other):
    found, others = names_of(one), names_of(other)
    assert not [port for names in (*found.values(), *others.values()) for port in names if "$" in port]
    different = {port for name in found.keys() & others.keys() for port in found[name] ^ others[name]}
    assert different <= OF_SOME_MACHINES.keys()
    assert len(found.keys() & others.keys()) > 0.7 * max(len(found), len(others))


def test_names_are_numbered_only_where_none_of_those_proposed_is_free():
    names = UniqueNames()
    assert [names.take(*each) for each in (("a",), ("a", "a_in_b"), ("a", "a_in_b"), ("a", "a_in_b"), ("c",))] == [
        "a", "a_in_b", "a_in_b_2", "a_in_b_3", "c"]
