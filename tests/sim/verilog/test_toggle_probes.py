"""Probes in a small design of the coprocessor's shape, whose registers a loop in Python knows as well."""

import subprocess
from pathlib import Path

import pytest
from amaranth import Module, Signal
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from tilewright.sim.verilator import build as verilator
from tilewright.sim.verilog.elaborate import verilog_of
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS, count_registers
from tilewright.sim.verilog.toggle_probes import with_probes
from tilewright.tools.toolchain import verilator_environment

HARNESS = Path(verilator.__file__).parent / "harness"
CYCLES, RECORDS = 40, (7, 23)

MAIN = """
#include <cstdio>
#include "Vcoprocessor.h"
#include "activity.h"
int main() {
  Vcoprocessor top;
  for (int cycle = 0; cycle < %d; ++cycle) {
    top.start = %s;
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  }
  top.final();
  for (const auto& row : noted_toggles()) {
    for (auto total : row) std::printf("%%llu ", (unsigned long long)total);
    std::printf("\\n");
  }
}
"""


class Part(wiring.Component):
    """Registers of some widths that step to 5 x + 1 + ``start``, and parts below, to all of which ``start`` goes."""

    start: In(1)

    def __init__(self, widths, **parts):
        self.widths = widths
        self.parts = parts
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        for index, width in enumerate(self.widths):
            value = Signal(width, name=f"value_{index}")
            m.d.sync += value.eq(5 * value + 1 + self.start)
        for name, part in self.parts.items():
            m.submodules[name] = part
            m.d.comb += part.start.eq(self.start)
        return m


class Record(Part):
    """Such a part that always asks for the counters, whose walk begins with ``start``."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        request, begins = (Signal(name=f"counters__{name}") for name in ("request", "begins"))
        m.d.comb += [request.eq(1), begins.eq(self.start)]
        return m


WIDTHS = {"array": (100,), "sequencer": (3,), "activation_buffer": (8, 9, 70), "weight_buffer": (64,),
          "post_processing": (65, 1), "load": (2,) * 40, "store": (17,), "control": (5, 30)}
SHARED = {"array": (4,), "store": (33,)}
"""Of a second module of the block."""


def design():
    cluster = Part(WIDTHS["array"], weights=Part(WIDTHS["weight_buffer"]))
    mac = Part(WIDTHS["sequencer"], buffer=Part(WIDTHS["activation_buffer"]), cluster_0=cluster,
               transform=Part(SHARED["array"]))
    store = Part(WIDTHS["store"], record=Record(SHARED["store"]))
    inner = Part(WIDTHS["control"], mac=mac, store=store, load=Part(WIDTHS["load"]),
                 post=Part(WIDTHS["post_processing"]))
    return rtlil.convert(Part((), coprocessor=inner), name="coprocessor", emit_src=False)


def toggles(width, cycles, seen):
    """Return how many bits change in so many steps."""
    value = changed = 0
    for cycle in range(cycles):
        after = (5 * value + 1 + (cycle in seen)) % (1 << width)
        changed += (value ^ after).bit_count()
        value = after
    return changed


def expected(cycles, seen):
    return [sum(toggles(width, cycles, seen) for width in (*WIDTHS[block], *SHARED.get(block, ())))
            for block in ENERGY_BLOCKS]


def test_registers_are_counted_by_block():
    assert count_registers(design()) == {block: sum(WIDTHS[block]) + sum(SHARED.get(block, ()))
                                         for block in ENERGY_BLOCKS}


def test_probes_leave_the_ports_alone():
    text = verilog_of(with_probes(design()), "coprocessor")
    ports = text[text.index("\nmodule coprocessor("):]
    assert sorted(ports[:ports.index(";")].split("(")[1].rstrip(")").split(", ")) == ["clk", "rst", "start"]


@pytest.mark.parametrize("seen", [range(0), RECORDS])
def test_toggles_of_every_register_are_noted_at_each_record_and_at_the_end(tmp_path, seen):
    (tmp_path / "coprocessor.v").write_text(verilog_of(with_probes(design()), "coprocessor"))
    started = " || ".join(f"cycle == {cycle}" for cycle in seen) or "false"
    (tmp_path / "main.cpp").write_text(MAIN % (CYCLES, started))
    done = subprocess.run(
        ["verilator", "--cc", "--exe", "--build", "--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style",
         "--top-module", "coprocessor", "--prefix", "Vcoprocessor", "-Mdir", str(tmp_path / "model"), "-o", "simulator",
         "-CFLAGS", f"-std=c++17 -O0 -I{HARNESS}", str(tmp_path / "coprocessor.v"), str(HARNESS / "activity.sv"),
         str(HARNESS / "activity.cpp"), str(tmp_path / "main.cpp")],
        env=verilator_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([tmp_path / "model" / "simulator"], capture_output=True, text=True, check=True).stdout
    rows = [[int(word) for word in line.split()] for line in shown.splitlines()]
    # What is noted in a cycle are the changes up to the edge that begins it.
    assert rows == [expected(cycle, seen) for cycle in (*seen, CYCLES)]
