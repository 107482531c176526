"""What the reader of a Verilog package reads first: files, instantiation, ports, windows, clock, bus, resources."""

from pathlib import Path

from tilewright._version import __version__
from tilewright.hardware.package import core_files as verilog_core
from tilewright.hardware.package.top import BRIDGE, COPROCESSOR, TOP, Bus, Top
from tilewright.isa.machine import Machine

TEMPLATE = Path(__file__).parent / "templates" / "README.md"

_FILES = {
    f"rtl/{TOP}.v": "the top module: flat ports, each with its meaning",
    f"rtl/{COPROCESSOR}.v": "the coprocessor, generated",
    f"rtl/{BRIDGE}.v": "the adapter from its AXI4 port to Wishbone, generated",
    "testbench/testbench.v": "sends commands, compares memory",
    "testbench/axi_memory.v": "a memory on AXI4 that pauses",
    "testbench/wishbone_memory.v": "a memory on Wishbone that stalls",
    "testbench/Makefile": "runs the testbench and lint in Icarus Verilog and Verilator",
    "testbench/commands.hex": "instruction word and operands of each command",
    "testbench/memory.hex": "memory before",
    "testbench/expected.hex": "memory after",
    "constraints/ecp5.lpf": "template for Lattice ECP5",
    "constraints/xilinx7.xdc": "template for AMD 7-series",
    "constraints/timing.sdc": "template for static timing of a netlist",
    "tilewright.f": "sources, one on a line",
    verilog_core.FILE_LIST: "sources of core and coprocessor together",
    f"{verilog_core.FOLDER}/LICENSE": "licence of the core's files",
    "rtl/clock_gate.sv": "the core's clock gate, always open",
    "rtl/host_core.sv": "the core with its unused inputs tied off",
    f"rtl/{verilog_core.SYSTEM}.sv": "core and coprocessor: OBI for code and data, AXI4 for tensors",
}
_BUS_TITLES: dict[Bus, str] = {"axi4": "AXI4", "wishbone": "Wishbone B4"}
_BUS_TEXTS: dict[Bus, str] = {
    "axi4": "AXI4 master of {bits} bits: INCR bursts of up to 64 full words that cross no 4 KiB border, one ID, up to "
            "16 bursts outstanding each way. Reads and writes are not ordered with each other; programs order them by "
            "waiting for write responses. SLVERR or DECERR is a fault. `AxCACHE` is 0011: ordinary memory, bufferable, "
            "not to be cached.",
    "wishbone": "Wishbone B4 master of {bits} bits, *pipelined* mode: a word per cycle while `wb_stall` is low, up to "
                "32 answers due. Each word is answered once, in order, by `wb_ack` or `wb_err`; its own cycle "
                "is early enough. `wb_adr` counts bytes. `wb_err` is a fault. For a slave in *standard* (classic) mode "
                "drive `wb_stall` with `wb_stb & ~(wb_ack | wb_err)`. There is no `rty`, and there are no burst tags.",
}


def readme(machine: Machine, bus: Bus, top: Top, files: tuple[str, ...], commands: int, *, with_core: bool) -> str:
    """Return the text of README.md for a package of ``files``, by their paths; the testbench sends ``commands``."""
    core_folder = f"{verilog_core.FOLDER}/"
    rows = [f"| `{name}` | {_FILES[name]} |" for name in files if name in _FILES]
    if with_core:
        rows.append(f"| `{core_folder}*.sv` | CV32E40X, unmodified |")
    sources = [name for name in files if name in (f"rtl/{TOP}.v", f"rtl/{COPROCESSOR}.v", f"rtl/{BRIDGE}.v")]
    values = {
        "MACHINE": machine.name,
        "BUS": bus,
        "BUS_TITLE": _BUS_TITLES[bus],
        "BUS_TEXT": _BUS_TEXTS[bus].format(bits=8 * machine.bus_bytes),
        "CORE_OPTION": " --with-core" if with_core else "",
        "VERSION": __version__,
        "FILES": "\n".join(rows),
        "TOP": TOP,
        "SOURCES": " ".join(sources),
        "INSTANCE": instance(top),
        "PORTS": "\n".join(f"| `{port.name}` | {'in' if port.is_input else 'out'} | {port.width} | {port.meaning} |"
                           for port in top.ports),
        "CORE_HINT": (f"Core and coprocessor connected so are the module `{verilog_core.SYSTEM}` "
                      f"(`{verilog_core.FILE_LIST}`)." if with_core else
                      "With `--with-core` the package holds the core too, connected so."),
        "CORE_LICENCE": (f" Those in `{core_folder}` are OpenHW Group's CV32E40X, under the licence in "
                         f"`{core_folder}LICENSE`." if with_core else ""),
        "COMMANDS": str(commands),
        "MULTIPLIERS": str(machine.multipliers),
        "POST_LANES": str(machine.post_lanes),
        "BUFFERS": (f"buffers of {machine.activation_bytes // 1024} KiB for activations, "
                    f"{machine.weight_bytes * 9 // 8 // 1024} KiB for weights, {machine.result_bytes // 1024} KiB for "
                    f"results"),
    }
    text = TEMPLATE.read_text()
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", value)
    return text


def instance(top: Top) -> str:
    """Return an instantiation of the top module, every port connected to a wire of its name."""
    wide = max(len(port.name) for port in top.ports)
    lines = ",\n".join(f"  .{port.name:<{wide}} ({port.name})" for port in top.ports)
    return f"{TOP} coprocessor (\n{lines}\n);"
