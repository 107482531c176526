"""The Verilog package's top module: flat, documented ports around the coprocessor and the bus adapter, if any."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal

from tilewright.isa.command_port import HardwarePort
from tilewright.isa.machine import Machine
from tilewright.isa.registers.host_registers import WindowPins
from tilewright.sim.verilog.ports import Port

__all__ = [
    "BRIDGES", "COPROCESSOR", "CORE_FOLDER", "SYSTEM", "SYSTEM_FILES", "TOP", "Bus", "Top", "TopPort", "build_top",
    "vector",
]

Bus = Literal["axi4", "axi4-own-clock", "wishbone"]

TOP, COPROCESSOR = "tilewright_coprocessor", "coprocessor"
"""Names of the modules."""

BRIDGES: dict[Bus, str] = {"axi4-own-clock": "clock_crossing", "wishbone": "wishbone_bridge"}
"""Names of what is between the coprocessor's AXI4 port and the bus."""

SYSTEM, SYSTEM_FILES, CORE_FOLDER = "tilewright_soc", "tilewright_soc.f", "cv32e40x"
"""Of core and coprocessor together: top module and list of sources; and the folder with the core's."""

_AXI, _WISHBONE, _SLAVE_AXI = "m_axi__", "m_wb__", "s_axi__"

_WINDOW_FIELDS = (("base", 32), ("limit", 32), ("readable", 1), ("writable", 1))
"""Of a window, the lowest bits first; as `rtl.port.window_check.Window`, which a test compares."""

_MEANINGS = {
    "clk": "clock; every register uses its rising edge",
    "bus_clk": "clock of m_axi_*, of any frequency and phase",
    "rst": "synchronous reset, active high, together with the bus; hold it for one cycle or more",
    "stop_request": "stops only the coprocessor, like a fault, until the abort instruction; one cycle or longer",
    "issue_valid": "the core offers an instruction in its ID stage",
    "issue_ready": "the instruction is taken (or rejected, see xif_issue_accept)",
    "issue_instr": "the instruction word",
    "issue_id": "its id",
    "issue_hartid": "the hart that offers it",
    "issue_rs1": "value of its first source register",
    "issue_rs2": "value of its second source register",
    "issue_rs_valid": "which of the two values are valid",
    "accept": "the instruction belongs to the coprocessor; the rest of the issue response is zero",
    "writeback": "the instruction writes its rd: a fence writes the fault code",
    "register_read": "the two source registers that it reads: both, or none of what is rejected",
    "register_valid": "the core sends the operands of an instruction: with its offer, or in any cycle after its issue",
    "register_ready": "they are taken; low only beside an offer that is not taken",
    "register_hartid": "its hart",
    "register_id": "its id",
    "register_rs1": "value of its first source register",
    "register_rs2": "value of its second source register",
    "register_rs_valid": "which of the two values are valid, beside an offer; later both are",
    "commit_hartid": "its hart",
    "commit_valid": "the instruction with xif_commit_id is committed or killed",
    "commit_id": "its id",
    "commit_kill": "it is killed",
    "result_valid": "an accepted instruction is complete; the rest of the result is zero",
    "result_ready": "the core takes the result",
    "result_hartid": "its hart",
    "result_id": "its id",
    "result_rd": "its destination register",
    "result_we": "there is a result: that of a fence whose rd is not x0",
    "result_data": "the value to write: the fault code",
    "idle": "all work is done, and memory has acknowledged every write; low after a fault",
    "irq": "interrupt: the commands before a fence with notify are done; a level, until the next fence or an abort",
    "fault": "the coprocessor has stopped; until an abort or reset",
    "fault_code": "fault code, from the table in docs/isa.md",
    "fault_address": "address of the request at fault, or the value that this table names",
    "status": "for a debugger: state, busy and queued units, semaphores above zero (rtl/coprocessor.py)",
    "progress": "a unit has worked in this cycle",
}
_INTERRUPT = "interrupt: a cause of interrupt_cause that interrupt_enable enables; a level"
"""Meaning of ``irq`` where there are such registers."""

_WINDOW_PIN = re.compile(r"window\d_")
_WINDOW_MEANINGS = {
    "base": "window {}: its first byte",
    "limit": "window {}: the byte after its last",
    "readable": "window {}: the coprocessor may read there",
    "writable": "window {}: the coprocessor may write there",
}
_WISHBONE_MEANINGS = {
    "cyc": "a bus cycle, from the first request to the last answer",
    "stb": "a word is requested",
    "we": "it is written",
    "adr": "its address in bytes, a multiple of the bus width",
    "sel": "which of its bytes",
    "dat_w": "data to write",
    "dat_r": "data read, with wb_ack",
    "ack": "the answer to a word, in order",
    "err": "an error answer to a word, which is a fault",
    "stall": "the requested word is not accepted in this cycle",
}
_PORT_TITLES: dict[HardwarePort, str] = {"cvxif": "CV-X-IF (as in CV32E40X 0.6.0)",
                                         "cvxif-1.0": "CV-X-IF 1.0.0",
                                     "axi4lite": "commands over AXI4-Lite"}
_AXI_CHANNELS = {"ar": "read address", "r": "read data",
                 "aw": "write address", "w": "write data", "b": "write response"}
_AXI_FIELD = re.compile(r"(ar|aw|r|w|b)(id|addr|len|size|burst|cache|prot|valid|ready|data|resp|last|strb)")


@dataclass(frozen=True, slots=True)
class TopPort:
    """A port of the package's top module."""

    name: str
    width: int
    is_input: bool
    meaning: str

    @property
    def declaration(self) -> str:
        """As in a Verilog header, without a comma."""
        return f"{'input ' if self.is_input else 'output'} wire {vector(self.width):>7} {self.name}"


@dataclass(frozen=True, slots=True)
class Top:
    """The top module: its ports, and the Verilog of it."""

    ports: tuple[TopPort, ...]
    text: str

    @property
    def windows(self) -> WindowPins:
        """Where the windows come from."""
        return "pins" if any(_WINDOW_PIN.match(port.name) for port in self.ports) else "registers"


def vector(width: int) -> str:
    """Return the range of a signal, empty for one of a single bit."""
    return f"[{width - 1}:0]" if width > 1 else ""


def build_top(machine: Machine, bus: Bus, commands: HardwarePort, coprocessor: tuple[Port, ...],
              bridge: tuple[Port, ...]) -> Top:
    """Return the top module around ``coprocessor`` and what `BRIDGES` has for the bus, whose ports are given."""
    clocks = tuple(port for port in bridge if port.name == "bus_clk")
    ports = tuple(_in_order([*_own_ports(coprocessor + clocks, bus), *_bus_ports(coprocessor, bridge, bus)]))
    windows: WindowPins = "pins" if any(_window(port.name) for port in coprocessor) else "registers"
    if windows == "registers":
        ports = tuple(replace(port, meaning=_INTERRUPT) if port.name == "irq" else port for port in ports)
    lines = [_heading(machine, bus, commands, windows), f"module {TOP} ("]
    width = max(len(port.declaration) for port in ports) + 1
    for index, port in enumerate(ports):
        comma = "" if index == len(ports) - 1 else ","
        line = f"  {port.declaration + comma:<{width}}"
        if port.name == "rst" and clocks:  # as in `lint_pragmas`, of whose text this file is no part
            line = f"  /* verilator lint_off SYNCASYNCNET */{line} /* verilator lint_on SYNCASYNCNET */"
        lines.append(f"{line} // {port.meaning}")
    lines.append(");")
    if bridge:
        wires = [port for port in coprocessor if port.name.startswith(_AXI)]
        lines += [f"  wire {vector(port.width):>7} {port.name};" for port in wires]
        lines += ["", _instance(BRIDGES[bus], "bridge", {port.name: _bridge_wire(port.name) for port in bridge})]
    lines += ["", _instance(COPROCESSOR, "inner", {port.name: _outer(port.name, bus) for port in coprocessor}),
              "endmodule"]
    return Top(ports, "\n".join(lines) + "\n")


def _heading(machine: Machine, bus: Bus, port: HardwarePort, windows: WindowPins) -> str:
    parameters = ", ".join(f"{each.name} = {getattr(machine, each.name)}" for each in fields(machine)
                           if each.name != "name")
    bits = 8 * machine.bus_bytes
    axi = f"AXI4 master, {bits} bits, 32-bit addresses, INCR bursts of up to 64 words, one ID"
    buses = {"axi4": axi, "axi4-own-clock": f"{axi}, in a clock of its own",
             "wishbone": f"Wishbone B4 master, pipelined mode, {bits} bits, 32-bit byte addresses"}
    clocks = "Two clocks" if bus == "axi4-own-clock" else "One clock"
    lines = [
        f"Tilewright's coprocessor, machine {machine.name}: {_PORT_TITLES[port]} and {bus}.",
        "",
        *textwrap.wrap(f"Parameters, fixed when this was written: {parameters}.", 117),
        f"Bus: {buses[bus]}.",
        f"{clocks}, a synchronous reset. Set the windows before the first command, and keep them stable from then on.",
        *(["Windows, their lock, interrupt and capability are registers; component.xml and README.md list them."]
          if windows == "registers" else []),
    ]
    return "\n".join(f"// {line}".rstrip() for line in lines)


def _own_ports(coprocessor: tuple[Port, ...], bus: Bus) -> Iterator[TopPort]:
    """Yield the ports that do not belong to the memory bus."""
    for port in coprocessor:
        if port.name.startswith(_AXI):
            continue
        if window := _window(port.name):
            for field, width in _WINDOW_FIELDS:
                yield TopPort(f"window{window}_{field}", width, True, _WINDOW_MEANINGS[field].format(window))
        else:
            meaning = _axi_meaning(port.name.removeprefix(_SLAVE_AXI), "AXI4-Lite") \
                if port.name.startswith(_SLAVE_AXI) else _MEANINGS[port.name]
            yield TopPort(_outer(port.name, bus), port.width, port.is_input, meaning)


def _axi_meaning(field: str, protocol: str) -> str:
    found = _AXI_FIELD.fullmatch(field)
    return f"{protocol} {field.upper()}: {_AXI_CHANNELS[found[1]] if found else ''}"


def _bus_ports(coprocessor: tuple[Port, ...], bridge: tuple[Port, ...], bus: Bus) -> Iterator[TopPort]:
    if bus != "wishbone":
        for port in bridge or coprocessor:
            if port.name.startswith(_AXI):
                field = port.name.removeprefix(_AXI)
                yield TopPort(f"m_axi_{field}", port.width, port.is_input, _axi_meaning(field, "AXI4"))
    else:
        for port in bridge:
            if port.name.startswith(_WISHBONE):
                field = port.name.removeprefix(_WISHBONE)
                yield TopPort(f"wb_{field}", port.width, port.is_input, _WISHBONE_MEANINGS[field])


def _in_order(ports: list[TopPort]) -> list[TopPort]:
    """Return the ports by what they belong to: clock, CV-X-IF, windows, bus, the rest."""
    groups = ("clk", "bus_clk", "rst", "xif_issue", "xif_register", "xif_commit", "xif_result", "s_axi_ar", "s_axi_r",
              "s_axi_aw", "s_axi_w", "s_axi_b", "window", "m_axi_ar", "m_axi_r", "m_axi_aw",
              "m_axi_w", "m_axi_b", "wb_")

    def group(port: TopPort) -> int:
        return next((index for index, prefix in enumerate(groups) if port.name.startswith(prefix)), len(groups))

    return sorted(ports, key=group)


def _outer(name: str, bus: Bus) -> str:
    """Return what a port of the coprocessor is connected to in the top module."""
    if name.startswith(_AXI):
        return name.replace(_AXI, "m_axi_") if bus == "axi4" else name
    if name.startswith(_SLAVE_AXI):
        return name.replace(_SLAVE_AXI, "s_axi_")
    if window := _window(name):
        return "{" + ", ".join(f"window{window}_{field}" for field, _ in reversed(_WINDOW_FIELDS)) + "}"
    if name in ("accept", "writeback", "register_read"):
        return f"xif_issue_{name}"
    return f"xif_{name}" if re.match("issue_|register_|commit_|result_", name) else name


def _bridge_wire(name: str) -> str:
    """Return what a port of the bridge is connected to in the top module."""
    if name.startswith(_SLAVE_AXI):
        return name.replace(_SLAVE_AXI, _AXI)
    return name.replace(_AXI, "m_axi_").replace(_WISHBONE, "wb_")


def _window(name: str) -> str:
    """Return the number of the window that a port of the coprocessor sets, or nothing."""
    found = re.fullmatch(r"windows__(\d+)", name)
    return found[1] if found else ""


def _instance(module: str, name: str, connections: dict[str, str]) -> str:
    lines = ",\n".join(f"    .{port}({wire})" for port, wire in connections.items())
    return f"  {module} {name} (\n{lines}\n  );"
