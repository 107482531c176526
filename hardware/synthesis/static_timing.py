"""Frequency of a netlist of standard cells by OpenSTA: cells and their loads, no wires."""

import re
from collections.abc import Callable
from pathlib import Path

from tilewright.hardware.synthesis.cached_steps import LOG, FinishedStep, Show, SynthesisError, Tool, ToolStep, finish
from tilewright.hardware.synthesis.sources import SynthesisSources
from tilewright.hardware.synthesis.synthesis_report import CriticalPath, Timing
from tilewright.tools.debian import debian_tool

__all__ = ["static_timing", "timing_of"]

_SCRIPT = "timing.tcl"
_METHOD = "OpenSTA, register to register: cells and pin loads, no wires, no clock tree, no paths through memory macros"

# All registers have one clock and no input has a delay, so every path found is from register to register.
_COMMANDS = """\
read_liberty cells.lib
read_verilog netlist.v
link_design {top}
create_clock -name {clock} -period 1000 [get_ports {clock}]
report_checks -path_delay max -digits 4
report_checks -path_delay max -digits 4 -format end
exit
"""

_START = re.compile(r"^Startpoint: (\S+)", re.MULTILINE)
_END = re.compile(r"^Endpoint: (\S+)", re.MULTILINE)
_ARRIVAL = re.compile(r"^\s*(-?[\d.]+)\s+data arrival time", re.MULTILINE)
_SETUP = re.compile(r"^\s*(-?[\d.]+)\s+-?[\d.]+\s+library setup time", re.MULTILINE)
_HOP = re.compile(r"^\s*-?[\d.]+\s+-?[\d.]+\s+[\^v] \S+/\S+ \(\w+\)", re.MULTILINE)


def static_timing(design: SynthesisSources, netlist: Path, library: Path, block: Callable[[str], str], show: Show
                  ) -> tuple[FinishedStep, Timing]:
    """Return the finished step, and what it found; ``block`` tells the block of a cell.

    Raises
    ------
    SynthesisError
        If OpenSTA finds no path.
    ToolMissingError
        If there is no OpenSTA.
    """
    path = str(debian_tool("sta"))
    sta = Tool("OpenSTA", path, "OpenSTA 2.0.17 of Debian")
    script = _COMMANDS.format(top=design.top, clock=design.clock)
    step = finish(ToolStep(f"Timing of {design.name} in {library.name}", sta, ("-no_splash", "-exit", _SCRIPT),
                           {_SCRIPT: script, "netlist.v": netlist, "cells.lib": library}, (LOG,)), show)
    return step, timing_of((step.folder / LOG).read_text(errors="replace"), block)


def timing_of(log: str, block: Callable[[str], str]) -> Timing:
    """Return the timing that OpenSTA reported; nanoseconds, as the libraries have them.

    Raises
    ------
    SynthesisError
        If there is no path in it.
    """
    fields = [pattern.search(log) for pattern in (_START, _END, _ARRIVAL, _SETUP)]
    if not all(fields):
        raise SynthesisError(f"OpenSTA must report a path from register to register, and reported "
                             f"{(log.strip().splitlines() or ['nothing'])[-1]!r}")
    start, end, arrival, setup = (field[1] for field in fields if field is not None)
    needed = float(arrival) - float(setup)
    path = CriticalPath(start, end, block(start), block(end), needed, float("nan"),
                        len(_HOP.findall(log)) - 1)
    return Timing(1000 / needed, None, path, _METHOD)
