"""Frequency of a netlist of standard cells by OpenSTA: cells and their loads, without wires and with a placement's."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.hardware.gates.cells.liberty import Library, read_library
from tilewright.hardware.synthesis.cached_steps import LOG, FinishedStep, Show, SynthesisError, Tool, ToolStep, finish
from tilewright.hardware.synthesis.layout.placed_results import (
    PLACE_PROCESS,
    PLACES,
    SPEF,
    VERILOG_BY_NUMBER,
    coloquinte_version,
    placing_inputs,
    read_results,
)
from tilewright.hardware.synthesis.layout.wire_rules import COUPLING, COUPLING_RANGE
from tilewright.hardware.synthesis.sources import SynthesisSources
from tilewright.hardware.synthesis.synthesis_report import CriticalPath, PlacedCell, PlacedDesign, Timing
from tilewright.tools.debian import debian_tool

__all__ = ["CellsToPlace", "opensta", "placed_timing", "placed_timing_of", "static_timing", "timing_of"]

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

_WITH = "WITH WIRES"
_PLACED_METHOD = ("OpenSTA, register to register: cells as mapped, none larger or buffered for its wires, pin loads, "
                  "wires as placed; no clock tree, no paths through memory macros")

# As `_COMMANDS`, and again with the wires; `input_pins` tells a wire's delay from a cell's.
_WIRED_COMMANDS = f"""\
read_liberty cells.lib
read_verilog {VERILOG_BY_NUMBER}
link_design {{top}}
create_clock -name clock -period 1000 [get_ports clock]
report_checks -path_delay max -digits 4
puts "{_WITH}"
read_spef {SPEF}
report_checks -path_delay max -digits 4 -fields input_pins
exit
"""

_START = re.compile(r"^Startpoint: (\S+)", re.MULTILINE)
_END = re.compile(r"^Endpoint: (\S+)", re.MULTILINE)
_ARRIVAL = re.compile(r"^\s*(-?[\d.]+)\s+data arrival time", re.MULTILINE)
_SETUP = re.compile(r"^\s*(-?[\d.]+)\s+-?[\d.]+\s+library setup time", re.MULTILINE)
_PLACED_STEP = re.compile(r"^\s*(-?[\d.]+)\s+-?[\d.]+\s+[\^v] g\d+/(\S+) \((\w+)\)", re.MULTILINE)
_HOP = re.compile(r"^\s*-?[\d.]+\s+-?[\d.]+\s+[\^v] (\S+)/\S+ \(\w+\)", re.MULTILINE)


def opensta() -> Tool:
    """Return OpenSTA.

    Raises
    ------
    ToolMissingError
        If it is not there and cannot be fetched.
    """
    return Tool("OpenSTA", (str(debian_tool("sta")),), "OpenSTA 2.0.17 of Debian")


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
    script = _COMMANDS.format(top=design.top, clock=design.clock)
    step = finish(ToolStep(f"Timing of {design.name} in {library.name}", opensta(), ("-no_splash", "-exit", _SCRIPT),
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
                        len(set(_HOP.findall(log)) - {start, end}))
    return Timing(1000 / needed, None, path, _METHOD)


@dataclass(frozen=True, slots=True)
class CellsToPlace:
    """A mapped netlist in Yosys' JSON, its library, its technology and the type of its memories."""

    netlist: Path
    library: Path
    technology: str
    macro: str


def placed_timing(design: SynthesisSources, given: CellsToPlace, block: Callable[[str], str], show: Show
                  ) -> tuple[list[FinishedStep], PlacedDesign, tuple[PlacedCell, ...]]:
    """Return the steps, what they found, and where cells lie; ``block`` tells the block of a cell.

    Raises
    ------
    SynthesisError
        If a tool fails, or OpenSTA finds no path.
    ToolMissingError
        If one is not there.
    """
    coloquinte = Tool("Coloquinte", (sys.executable,), f"Coloquinte {coloquinte_version()}")
    placed = finish(ToolStep(
        f"Placing {design.name} in {given.technology}", coloquinte,
        ("-m", PLACE_PROCESS, design.top, design.clock, given.technology, given.macro),
        placing_inputs(given.netlist, given.library, given.technology), (PLACES, SPEF, VERILOG_BY_NUMBER)), show)
    timed = finish(ToolStep(
        f"Timing of {design.name} with wires", opensta(), ("-no_splash", "-exit", _SCRIPT),
        {_SCRIPT: _WIRED_COMMANDS.format(top=design.top), "cells.lib": given.library,
         **{name: placed.folder / name for name in (VERILOG_BY_NUMBER, SPEF)}}, (LOG,)), show)
    found = read_results(placed.folder)
    without, timing = placed_timing_of((timed.folder / LOG).read_text(errors="replace"), read_library(given.library),
                                       found.names, block)
    whole = PlacedDesign(timing, without, found.width, found.height, found.utilisation, COUPLING, COUPLING_RANGE,
                         found.wires(block))
    return [placed, timed], whole, tuple(PlacedCell(x, y, "", each) for x, y, each in found.squares(block))


def placed_timing_of(log: str, library: Library, names: Sequence[str], block: Callable[[str], str]
                     ) -> tuple[Timing, Timing]:
    """Return the timing without and with wires that OpenSTA reported; ``g5`` in it is the cell ``names[5]``.

    Raises
    ------
    SynthesisError
        If there is no path in it.
    """
    before, _, after = log.partition(_WITH)
    bare, wired = (_by_name(timing_of(part, str), names, block) for part in (before, after))
    steps = [(float(delay), library.cell(kind).pins[pin].is_output)
             for delay, pin, kind in _PLACED_STEP.findall(after)]
    wire = sum(delay for delay, output in steps if not output)
    path = replace(wired.path, logic_ns=wired.path.logic_ns - wire, wire_ns=wire)
    return replace(bare, method=_METHOD), replace(wired, path=path, method=_PLACED_METHOD)


def _by_name(timing: Timing, names: Sequence[str], block: Callable[[str], str]) -> Timing:
    start, end = (names[int(cell[1:])] for cell in (timing.path.start, timing.path.end))
    return replace(timing, path=replace(timing.path, start=start, end=end, start_block=block(start),
                                        end_block=block(end)))
