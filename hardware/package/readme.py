"""The README of a Verilog package: files, instantiation, ports, windows, clock, bus, resources."""

from collections.abc import Mapping
from pathlib import Path

from tilewright._version import __version__
from tilewright.hardware.package.descriptions import COMPONENT, CORE_FILE
from tilewright.hardware.package.macros import LIBRARIES
from tilewright.hardware.package.top import (
    BRIDGES,
    COPROCESSOR,
    CORE_FOLDER,
    SYSTEM,
    SYSTEM_FILES,
    TOP,
    Bus,
    Top,
)
from tilewright.hardware.synthesis.families.ecp5 import ECP5_SYNTHESIS
from tilewright.isa.command_port import HardwarePort
from tilewright.isa.machine import Machine
from tilewright.isa.registers.host_registers import registers_of
from tilewright.sim.verilog.modular.memories import MEMORY, MemoryShape
from tilewright.tools.templates import render

__all__ = ["instance", "readme"]

_TEMPLATE = Path(__file__).parent / "templates" / "README.md.j2"

_SOURCES = (f"rtl/{TOP}.v", f"rtl/{COPROCESSOR}.v", f"rtl/{MEMORY}.v", *(f"rtl/{name}.v" for name in BRIDGES.values()))

_FILES = {
    f"rtl/{TOP}.v": "the top module: flat ports, each with its meaning",
    f"rtl/{COPROCESSOR}.v": "the coprocessor, generated",
    f"rtl/{MEMORY}.v": "the memory that all its buffers are instances of",
    **{library.file: f"the same of macros that {library.maker}" for library in LIBRARIES},
    f"rtl/{BRIDGES['wishbone']}.v": "the adapter from its AXI4 port to Wishbone, generated",
    f"rtl/{BRIDGES['axi4-own-clock']}.v": "the queues between its clock and that of the bus, generated",
    "testbench/testbench.v": "sends commands, compares memory",
    "testbench/xif_host.v": "a core's part of CV-X-IF",
    "testbench/split_xif_host.v": "a core's part of CV-X-IF 1.0",
    "testbench/axilite_host.v": "a master on AXI4-Lite",
    "testbench/axi_memory.v": "a memory on AXI4 that pauses",
    "testbench/wishbone_memory.v": "a memory on Wishbone that stalls",
    "testbench/Makefile": "runs the testbench and lint in Icarus Verilog and Verilator",
    "testbench/settings.hex": "registers that the host reads and writes before the first command",
    "testbench/commands.hex": "instruction word and operands of each command",
    "testbench/memory.hex": "memory before",
    "testbench/expected.hex": "memory after",
    "constraints/ecp5.lpf": "template for Lattice ECP5",
    "constraints/xilinx7.xdc": "template for AMD 7-series",
    "constraints/timing.sdc": "template for static timing of a netlist",
    "tilewright.f": "sources, one on a line",
    COMPONENT: "the component in IP-XACT (IEEE 1685-2009): ports, AXI interfaces, registers",
    CORE_FILE: "the same for FuseSoC, with targets for its testbench, for lint, and for synthesis of six families",
    "LICENSE": "licence of all files but the core's",
    SYSTEM_FILES: "sources of core and coprocessor together",
    f"{CORE_FOLDER}/LICENSE": "licence of the core's files",
    "rtl/clock_gate.sv": "the core's clock gate, always open",
    "rtl/host_core.sv": "the core with its unused inputs tied off",
    f"rtl/{SYSTEM}.sv": "core and coprocessor: OBI for code and data, AXI4 for tensors",
}


def readme(machine: Machine, bus: Bus, port: HardwarePort, top: Top, files: tuple[str, ...], commands: int,
           memories: Mapping[MemoryShape, int], *, with_core: bool) -> str:
    """Return the text of README.md for a package of ``files``, by their paths; the testbench sends ``commands``.

    ``memories`` has each shape of those that are instances of one module, and how many there are.
    """
    listed = {name: _FILES[name] for name in files if name in _FILES}
    if with_core:
        listed[f"{CORE_FOLDER}/*.sv"] = "CV32E40X, unmodified"
    return render(
        _TEMPLATE, machine=machine, bus=bus, port=port, registers=registers_of(top.windows), windows=top.windows,
        bus_bits=8 * machine.bus_bytes, with_core=with_core, version=__version__, synth_ecp5=ECP5_SYNTHESIS,
        files=listed, top=TOP, sources=[name for name in files if name in _SOURCES], instance=instance(top),
        ports=top.ports, system=SYSTEM, system_files=SYSTEM_FILES, core_folder=CORE_FOLDER, commands=commands,
        memory=MEMORY, memories=memories, libraries=LIBRARIES)


def instance(top: Top) -> str:
    """Return an instantiation of the top module, every port connected to a wire of its name."""
    wide = max(len(port.name) for port in top.ports)
    lines = ",\n".join(f"  .{port.name:<{wide}} ({port.name})" for port in top.ports)
    return f"{TOP} coprocessor (\n{lines}\n);"
