"""The coprocessor as a Verilog package for use elsewhere: sources, testbench, constraints, README."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import InputError
from tilewright.hardware.package.descriptions import descriptions
from tilewright.hardware.package.licence import licence_text, licensed
from tilewright.hardware.package.lint_pragmas import with_pragmas
from tilewright.hardware.package.macros import macro_files
from tilewright.hardware.package.readme import readme
from tilewright.hardware.package.testbench import command_lines, exercise, memory_lines, placeholders, settings_lines
from tilewright.hardware.package.top import (
    BRIDGES,
    COPROCESSOR,
    CORE_FOLDER,
    SYSTEM_FILES,
    TOP,
    Bus,
    Top,
    build_top,
)
from tilewright.isa.command_port import HardwarePort
from tilewright.isa.machine import Machine
from tilewright.isa.registers.host_registers import WindowPins
from tilewright.sim.verilog.core_sources import core_license, core_sources, system_sources
from tilewright.sim.verilog.elaborate import bridge_modules, coprocessor_modules
from tilewright.sim.verilog.modular.memories import MEMORY
from tilewright.sim.verilog.modular.modules import Modules
from tilewright.sim.verilog.ports import packaged, ports_of
from tilewright.tools.files import reason, write_file
from tilewright.tools.templates import render

__all__ = ["write_verilog"]

_TEMPLATES = Path(__file__).parent / "templates"
_CONSTRAINTS = ("ecp5.lpf", "xilinx7.xdc", "timing.sdc")
_FILE_LIST = "tilewright.f"


@dataclass(slots=True)
class _Package:
    """Files by their path in the package, in the order in which they are written."""

    files: dict[str, str] = field(default_factory=dict)

    def template(self, path: str, name: str, values: Mapping[str, object]) -> None:
        """Add a template whose gaps have ``values``."""
        self.files[path] = render(_TEMPLATES / name, **values)


def write_verilog(machine: Machine, folder: Path, *, bus: Bus = "axi4", port: HardwarePort = "cvxif",
                  windows: WindowPins | None = None, with_core: bool = False,
                  show: Callable[[str], None] = lambda step: None) -> list[Path]:
    """Write the package to ``folder`` and return the paths of its files.

    Parameters
    ----------
    bus
        The memory bus of the top module: ``axi4``, in the coprocessor's clock or in its own, or ``wishbone``.
    port
        How a host reaches the top module.
    windows
        Where the windows come from; by default registers of ``axi4lite``, and pins of ``cvxif``, which has no others.
    with_core
        Copy the host core's files too, and a system of core and coprocessor.
    show
        Called with what is being done.

    Raises
    ------
    ToolError
        If Yosys fails, or the testbench's network is not computed as it must.
    InputError
        If the folder cannot be written to, or the core is wanted with another bus than AXI4 or port than CV-X-IF, or
        registers with CV-X-IF.
    """
    if with_core and bus != "axi4":
        raise InputError(f"Option --with-core must be given with --bus axi4, which its system has, not {bus!r}; "
                         f"without it, --bus wishbone writes the adapter")
    if with_core and port != "cvxif":
        raise InputError(f"Option --with-core must be given with --port cvxif, which its core has, not {port!r}")
    if windows == "registers" and port != "axi4lite":
        raise InputError(f"Option --windows registers must be given with --port axi4lite, which has registers, not "
                         f"{port!r}; --windows pins is for both")
    windows = windows or ("registers" if port == "axi4lite" else "pins")
    _prepare(folder)
    show("elaborating")
    design = coprocessor_modules(machine, port, windows)
    top, sources = _sources(machine, design, bus, port, windows)
    show("running the testbench's network")
    package = _Package()
    package.files |= {f"rtl/{name}": text for name, text in sources.items()}
    commands = _add_testbench(package, machine, bus, port, top, list(sources))
    for name in _CONSTRAINTS:
        package.template(f"constraints/{name}", name, {"windows": windows, "bus": bus})
    package.files |= macro_files()
    package.files[_FILE_LIST] = "".join(f"rtl/{name}\n" for name in sources)
    package.files |= descriptions(machine, top, tuple(package.files))
    package.files = {name: licensed(name, text) for name, text in package.files.items()} | {"LICENSE": licence_text()}
    if with_core:
        package.files |= _core_files()
    package.files["README.md"] = readme(
        machine, bus, port, top, tuple(package.files), commands, design.memories, with_core=with_core)
    show("writing")
    paths = {folder / name: text for name, text in package.files.items()}
    for path, text in paths.items():
        _make(path.parent)
        write_file(path, text.encode())
    return list(paths)


def _sources(machine: Machine, design: Modules, bus: Bus, port: HardwarePort,
             windows: WindowPins) -> tuple[Top, dict[str, str]]:
    """Return the top module and the Verilog of all modules by file name, the top first."""
    coprocessor, memory = packaged(design, COPROCESSOR), render(_TEMPLATES / "memory.v")
    name = BRIDGES.get(bus)
    bridge = packaged(bridge_modules(name, machine.bus_bytes), name) if name else ""
    top = build_top(machine, bus, port, ports_of(coprocessor, COPROCESSOR), ports_of(bridge, name) if name else ())
    sources = {f"{TOP}.v": top.text, f"{COPROCESSOR}.v": with_pragmas(coprocessor, COPROCESSOR, {MEMORY: memory}),
               f"{MEMORY}.v": memory}
    return top, sources | ({f"{name}.v": with_pragmas(bridge, name)} if name else {})


def _core_files() -> dict[str, str]:
    """Return the host core's files, the system's, and a list of all sources, by their path in the package.

    The core's files are under the licence that lies beside them; they are copied, and not changed.
    """
    theirs = {f"{CORE_FOLDER}/{path.name}": path.read_text(encoding="utf-8") for path in core_sources()}
    ours = {f"rtl/{path.name}": licensed(path.name, path.read_text(encoding="utf-8")) for path in system_sources()}
    listed = "".join(f"{name}\n" for name in (*theirs, *ours, f"rtl/{COPROCESSOR}.v", f"rtl/{MEMORY}.v"))
    licence = core_license().read_text(encoding="utf-8")
    return {**theirs, f"{CORE_FOLDER}/LICENSE": licence, **ours, SYSTEM_FILES: listed}


def _add_testbench(package: _Package, machine: Machine, bus: Bus, port: HardwarePort, top: Top,
                   sources: list[str]) -> int:
    """Add the testbench; return how many commands it sends."""
    work = exercise(machine)
    values = placeholders(machine, work, bus, port, top) | {"SOURCES": " ".join(f"../rtl/{name}" for name in sources)}
    for name in ("testbench.v", str(values["HOST_FILE"]), str(values["MEMORY_FILE"]), "Makefile"):
        package.template(f"testbench/{name}", name, values)
    package.files |= {
        **({"testbench/settings.hex": settings_lines(work.settings)} if top.windows == "registers" else {}),
        "testbench/commands.hex": command_lines(work.commands),
        "testbench/memory.hex": memory_lines(work.before, machine.bus_bytes),
        "testbench/expected.hex": memory_lines(work.after, machine.bus_bytes),
    }
    return len(work.commands)


def _prepare(folder: Path) -> None:
    """Make the folder, before the work of seconds for which there would be no place."""
    _make(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"Folder {str(folder)!r} cannot be written to: permission denied")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Folder {str(folder)!r} cannot be made: {reason(error)}") from error
