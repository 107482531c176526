"""The register file that synthesis for ECP5 puts in place of the core's behaves as it does."""

from amaranth import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib.wiring import Component, In, Out

from tests.support.bench import ROOT, run_bench
from tilewright.sim.verilog.core_sources import core_sources

PORTS = {"raddr": In(10), "waddr": In(5), "wdata": In(32), "we": In(1), "core_rdata": Out(64), "block_rdata": Out(64)}


class RegisterFiles(Component):
    """Both register files, with what register_files.sv names its ports."""

    def __init__(self):
        super().__init__(PORTS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.both = Instance(
            "register_files", ("i", "clk", ClockSignal()), ("i", "rst", ResetSignal()),
            *(("i" if member.flow is In else "o", name, getattr(self, name)) for name, member in PORTS.items()))
        return m


def test_the_register_file():
    needed = ("cv32e40x_pkg.sv", "cv32e40x_register_file.sv")
    run_bench(RegisterFiles(), module="tests.cocotb.bench_register_file", toplevel="register_files_side_by_side",
              sources=(*(path for path in core_sources() if path.name in needed),
                       ROOT / "hardware" / "synthesis" / "ecp5_register_file.sv",
                       ROOT / "tests" / "support" / "register_files.sv"))
