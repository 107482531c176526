"""Descriptions of a Verilog package for other tools: IP-XACT (IEEE 1685-2009), and a core file for FuseSoC."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright._version import __version__
from tilewright.hardware.package.top import TOP, Top, TopPort
from tilewright.isa.command_port import ADDRESS_BITS
from tilewright.isa.machine import Machine
from tilewright.isa.registers.host_registers import registers_of
from tilewright.tools.templates import render

__all__ = ["COMPONENT", "CORE_FILE", "SYNTHESES", "descriptions"]

COMPONENT, CORE_FILE = "component.xml", f"{TOP}.core"
"""Names of the files."""

_TEMPLATES = Path(__file__).parent / "templates"
_ACCESS = {"RW": "read-write", "W": "write-only", "R": "read-only"}


@dataclass(frozen=True, slots=True)
class BusInterface:
    """AXI ports that belong together: their common prefix is ``name``; ``protocol`` is AMBA's name for it."""

    name: str
    protocol: str
    is_master: bool
    ports: tuple[TopPort, ...]

    @property
    def data_bits(self) -> int:
        """Bits of a word."""
        return next(port.width for port in self.ports if port.name == f"{self.name}_wdata")


SYNTHESES = {
    "ecp5": ("Lattice ECP5", "ecp5", "-nowidelut"),
    "nexus": ("Lattice Nexus", "nexus", "-family lifcl"),
    "gowin": ("Gowin GW2A", "gowin", "-family gw2a"),
    "cyclonev": ("Intel Cyclone V", "intel_alm", "-family cyclonev"),
    "gatemate": ("Cologne Chip GateMate", "gatemate", "-nomx8"),
}
"""Of the core file's targets: the family, and Yosys' ``synth_`` command and its options."""

_INTERFACES = (("s_axi", "AXI4-Lite", False), ("m_axi", "AXI4", True))


def descriptions(machine: Machine, top: Top, files: Sequence[str]) -> dict[str, str]:
    """Return both files by name, for a package with ``files``, by their paths in it.

    CV-X-IF and Wishbone have no interface there: no bus definition of theirs is part of a standard library. Their ports
    are.
    """
    buses = [BusInterface(name, protocol, is_master, ports) for name, protocol, is_master in _INTERFACES
             if (ports := tuple(port for port in top.ports if port.name.startswith(f"{name}_")))]
    values = {
        "top": TOP, "version": _version(), "title": f"Tilewright's coprocessor, machine {machine.name}",
        "ports": top.ports, "buses": buses, "registers": registers_of(top.windows),
        "own_clock": any(port.name == "bus_clk" for port in top.ports),
        "register_bytes": 1 << ADDRESS_BITS, "access": _ACCESS,
        "sources": [name for name in files if name.startswith("rtl/") and name.endswith(".v")],
        "testbench": [name for name in files if name.startswith("testbench/")], "syntheses": SYNTHESES,
    }
    return {COMPONENT: render(_TEMPLATES / "component.xml.j2", **values),
            CORE_FILE: render(_TEMPLATES / "tilewright.core.j2", **values)}


def _version() -> str:
    """Return the version as both files want it: three numbers."""
    return ".".join(__version__.split(".")[:3])
