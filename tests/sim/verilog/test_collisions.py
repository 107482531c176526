# amaranth: UnusedElaboratable=no
"""Memories whose word is inverted where it is read while it is written: all clocked ones, and those alone."""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tests.support.random_layers import random_layer
from tests.support.side_by_side import side_by_side
from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.plan.planner import DoesNotFitError, plan_layer
from tilewright.isa.machine import preset
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.rtl_engine import Simulation, run_rtl
from tilewright.sim.verilog.collisions import clocked_memories, with_inverted_collisions, with_unknown_collisions
from tilewright.sim.verilog.elaborate import coprocessor_verilog, verilog

LAYERS, TABLES = 8, 2


class TwoMemories(Component):
    """A memory with a clocked read port, written in halves, and one that is read at once."""

    def __init__(self):
        super().__init__({"address": In(4), "other": In(4), "enable": In(2), "value": In(16), "from_clocked": Out(16),
                          "from_direct": Out(16)})

    def elaborate(self, platform):
        m = Module()
        for name, domain in (("clocked", "sync"), ("direct", "comb")):
            m.submodules[name] = memory = Memory(shape=16, depth=16, init=[])
            write, read = memory.write_port(granularity=8), memory.read_port(domain=domain)
            m.d.comb += [write.addr.eq(self.address), write.en.eq(self.enable), write.data.eq(self.value),
                         read.addr.eq(self.other), getattr(self, f"from_{name}").eq(read.data)]
        return m


def test_a_word_is_inverted_where_either_half_is_written():
    before = verilog(TwoMemories(), "two")
    assert [each.rpartition(".")[2] for each in clocked_memories(before)] == ["clocked"]
    after = with_inverted_collisions(before)
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(changed) == 1
    assert changed[0].count("(enable[0])") == changed[0].count("(enable[1])") == 1
    assert changed[0].count("(address) == (other)") == 2
    assert "^ {16{" in changed[0]


def test_a_word_is_any_word_where_it_is_written():
    before = verilog(TwoMemories(), "two")
    after = with_unknown_collisions(before)
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(changed) == 3
    assert changed[:2] == ["  wire [15:0] any_word_0;", "  anything #(.WIDTH(16)) any_word_0_source(.o(any_word_0));"]
    assert changed[2].endswith("& any_word_0);")


def test_every_buffer_is_among_them():
    found = " ".join(clocked_memories(coprocessor_verilog(preset("nano"))))
    for name in ("buffer.bank_0", "weights.low", "weights.high", "weights.ninths", "banks.bank_0", "parameters.memory",
                 "tables.copy_0", "fifo.storage"):
        assert name in found


@pytest.mark.parametrize("seed", [3])
def test_random_layers_and_tables_use_no_such_word(tmp_path, seed):
    machine, numbers, layers = preset("nano"), np.random.default_rng(seed), []
    while len(layers) < LAYERS or sum(layer.table is not None for layer in layers) < TABLES:
        layer = random_layer(numbers, longest=9, widest=20)
        try:
            plan_layer(layer, machine)
        except DoesNotFitError:
            continue
        layers.append(layer)
    compiled = compile_layers(side_by_side(layers), machine, keep_tensors=True)
    images = [*compiled.images, *((compiled.memory.tensors[info.name], numbers.bytes(tensor_bytes(info)))
                                  for info in compiled.network.inputs)]
    dumps = [(address, tensor_bytes(info)) for info, address in compiled.tensors.values()]
    expected = run_fast(machine, compiled.program, images=images, windows=compiled.windows, dumps=dumps,
                        memory_bytes=compiled.memory_bytes)
    simulation = Simulation(images=images, dumps=dumps, checked=True)
    found = run_rtl(machine, emit_elf(compiled, "layers", tmp_path), simulation, windows=compiled.windows)
    assert found.require_exit().dumps == expected.dumps
