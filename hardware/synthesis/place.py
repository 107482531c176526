"""Place and route by nextpnr, and its report: the frequency and the path that limits it."""

import json
import os
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilewright.hardware.synthesis.cached_steps import FinishedStep, Show, SynthesisError, Tool, ToolStep, finish, tool
from tilewright.hardware.synthesis.ecp5.block_places import with_places
from tilewright.hardware.synthesis.families.fpga_family import PINS_FILE, Fpga
from tilewright.hardware.synthesis.synthesis_report import CriticalPath, SynthesisRequest, Timing
from tilewright.tools.toolchain import ToolMissingError

__all__ = ["PLACED", "REPORT", "critical_path", "method_of", "nextpnr", "place_and_route", "timing_of", "used"]

_NETLIST = "netlist.json"
REPORT = "report.json"
PLACED = "placed.json"

def nextpnr(family: str = "ecp5") -> Tool:
    """Return nextpnr for a family, one of `Fpga.router`; a wheel.

    Raises
    ------
    ToolMissingError
        If it is not installed.
    """
    scripts = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    found = shutil.which(f"yowasp-nextpnr-{family}", path=scripts)
    if found is None:
        raise ToolMissingError(f"Place and route needs nextpnr-{family}, which was not found; install it with "
                               "pip install 'tilewright[synth]', or leave this step out with --no-place")
    return tool(f"nextpnr-{family}", (found,), "--version")


def place_and_route(target: Fpga, router: Tool, netlist: Path, title: str, request: SynthesisRequest,
                    given: Mapping[str, str], show: Show) -> FinishedStep:
    """Return the finished step; raises SynthesisError, also if the design turns out not to fit.

    ``given`` are places of cells, by name. For a floorplan it also leaves ``PLACED``, the design with that of each.
    """
    arguments = (*target.place, *(target.with_sites if given else ()), "--json", _NETLIST,
                 *(() if target.pins else ("--out-of-context",)), "--timing-allow-fail", "--freq", f"{request.freq:g}",
                 "--seed", str(request.seed), "--report", REPORT)
    kept = (REPORT, PLACED) if request.floorplan else (REPORT,)
    if request.floorplan:
        arguments += ("--write", PLACED)
    design = with_places(netlist, given) if given else netlist
    pins = "".join(target.pin_line.format(port=port, pin=pin) for port, pin in target.pins.items())
    files = {_NETLIST: design, **({PINS_FILE: pins} if pins else {})}
    return finish(ToolStep(title, router, arguments, files, kept), show)


def method_of(target: Fpga) -> str:
    """Return in words what the frequency of a target is of."""
    ports = "register to register, ports behind shift registers" if target.pins else \
        "out of context: register to register, no pins"
    return f"nextpnr-{target.router} after routing, {ports}"


def timing_of(report: Path, goal_mhz: float, block: Callable[[str], str], method: str = "") -> Timing:
    """Return the frequency of the slowest clock, and its longest path; ``block`` tells the block of a cell.

    Raises
    ------
    SynthesisError
        If the report has no path from register to register.
    """
    data = json.loads(report.read_text(encoding="utf-8"))
    inside = [path for path in data["critical_paths"] if path["from"] == path["to"] != "<async>"]
    if not inside:
        raise SynthesisError(f"Report of nextpnr must have a path from register to register, and {report} has none")
    path = critical_path(max(inside, key=_length)["path"], block)
    fmax = min(clock["achieved"] for clock in data["fmax"].values())
    return Timing(fmax, goal_mhz, path, method)


def used(report: Path) -> dict[str, int]:
    """Return how many of each kind of place in the device are used, those that are used at all."""
    data = json.loads(report.read_text(encoding="utf-8"))
    return {name: entry["used"] for name, entry in data["utilization"].items() if entry["used"]}


def critical_path(hops: list[dict[str, Any]], block: Callable[[str], str]) -> CriticalPath:
    """Return a path of nextpnr's report in our terms."""
    start, end = hops[0]["from"]["cell"], hops[-1]["to"]["cell"]
    wire = sum(hop["delay"] for hop in hops if hop["type"] == "routing")
    logic = sum(hop["delay"] for hop in hops if hop["type"] != "routing")
    return CriticalPath(start, end, block(start), block(end), logic, wire,
                        sum(hop["type"] == "logic" for hop in hops))


def _length(path: dict[str, Any]) -> float:
    return float(sum(hop["delay"] for hop in path["path"]))
