"""From the system for a board to its bitstream by open tools: Yosys, nextpnr-ecp5, ecppack.

Synthesis and routing know nothing of the memories' contents (see `hardware.board.ram_contents`): both are done once
for a design, kept in the cache, and each model's contents are put in afterwards.
"""

import json
import os
import re
import shutil
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.board.board_design import TOP, BoardDesign, contents, sources
from tilewright.hardware.board.boards import Board
from tilewright.hardware.board.ram_contents import exchange, random_contents
from tilewright.hardware.synthesis.cached_steps import (
    FinishedStep,
    HopelessError,
    Show,
    Tool,
    ToolStep,
    finish,
    finished,
    tool,
)
from tilewright.hardware.synthesis.families.ecp5 import ECP5_SYNTHESIS
from tilewright.hardware.synthesis.place import nextpnr, timing_of, used
from tilewright.hardware.synthesis.sources import SynthesisSources, ecp5_design, ports_only
from tilewright.hardware.synthesis.synthesis_report import CriticalPath
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.sim.verilog.plain_names import plain_names
from tilewright.tools.toolchain import ToolMissingError, yosys_command

__all__ = ["BoardReport", "build_bitstream", "preferences"]

_CONFIG = "routed.config"
_NETLIST = "netlist.json"
_REPORT = "report.json"
_SCRIPT = "synthesis.ys"
_YOSYS_LOG = "yosys.log"
_BITSTREAM = "board.bit"
_PINS = "board.lpf"

_SEEDS = 3
"""Seeds that are tried one after the other."""

_OVERUSED = re.compile(r"^Info: +iter=\d+ wires=\d+ overused=(\d+)", re.MULTILINE)
_PATIENCE = 40
"""Rounds of the router without fewer wires that are used twice; those that end take 40 to 80 rounds in all."""

_PARTS = {"soc.soc.host.": "CV32E40X", "soc.soc.coprocessor.": "coprocessor", "soc.main_memory.": "main memory",
          "soc.ram.": "RAM", "soc.devices.": "UART and registers"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardReport:
    """Resources, timing and tools of a bitstream.

    Attributes
    ----------
    used : mapping
        How many of each kind of place in the device are used.
    available : mapping
        How many there are.
    fmax_mhz, clock_mhz : float
        Frequency that the slowest path allows, and the board's clock.
    path : CriticalPath
        The slowest path from register to register.
    seconds : mapping
        Duration of each step when it ran.
    versions : tuple of str
        Of the tools.
    bitstream_bytes : int
    """

    device: str
    machine: str
    used: Mapping[str, int]
    available: Mapping[str, int]
    fmax_mhz: float
    clock_mhz: float
    path: CriticalPath
    seconds: Mapping[str, float]
    versions: tuple[str, ...]
    bitstream_bytes: int


def build_bitstream(design: BoardDesign, ram: bytes, main: bytes, show: Show, *,
                    seed: int = 1) -> tuple[Path, BoardReport]:
    """Return the bitstream of a design with these first contents of its memories, and what it is made of.

    Raises
    ------
    SynthesisError
        If a tool fails, the design does not fit, it is too slow for the board's clock, or no routing is found from
        ``seed`` and the two seeds behind it.
    ToolMissingError
        If a tool is not installed.
    """
    board = design.board
    pack = _ecppack()  # before the long steps, lest it is missing after them
    mapped = finish(_synthesis(design), show)
    routed = _routed(mapped.folder / _NETLIST, design, seed, show)
    with show("Putting program and weights into it"):
        config = _with_contents((routed.folder / _CONFIG).read_text(), design, ram, main)
    arguments = ("--compress", *board.pack, _CONFIG, _BITSTREAM)
    packed = finish(ToolStep("Packing the bitstream", pack, arguments, {_CONFIG: config}, (_BITSTREAM,)), show)
    bitstream = packed.folder / _BITSTREAM
    report = json.loads((routed.folder / _REPORT).read_text())
    timing = timing_of(routed.folder / _REPORT, board.clock_hz / 1e6, _part_of)
    steps = {"synthesis": mapped, "place and route": routed, "packing": packed}
    return bitstream, BoardReport(
        device=board.part, machine=design.machine.name, used=used(routed.folder / _REPORT),
        available={name: entry["available"] for name, entry in report["utilization"].items()},
        fmax_mhz=timing.fmax_mhz, clock_mhz=board.clock_hz / 1e6, path=timing.path,
        seconds={name: step.seconds for name, step in steps.items()},
        versions=tuple(step.tool.version for step in steps.values()), bitstream_bytes=bitstream.stat().st_size)


def _part_of(cell: str) -> str:
    """Return which part of the system a cell belongs to, by its path in the hierarchy."""
    return next((part for start, part in _PARTS.items() if cell.startswith(start)), "around them")


def _synthesis(design: BoardDesign) -> ToolStep:
    mapped = ecp5_design(_system(design))
    files = {**mapped.files, **contents(design, *_random_contents(design)),
             _SCRIPT: f"{mapped.read}{ECP5_SYNTHESIS} -top {TOP} -json {_NETLIST}\n"}
    yosys = tool("Yosys", yosys_command(), "-V")
    return ToolStep(f"Synthesising the system with machine {design.machine.name}", yosys,
                    ("-q", "-l", _YOSYS_LOG, _SCRIPT), files, (_NETLIST, _YOSYS_LOG))


def _routed(netlist: Path, design: BoardDesign, seed: int, show: Show) -> FinishedStep:
    """Return the finished step of the first seed, from ``seed`` on, from which the router comes to an end."""
    steps = [_place_and_route(netlist, design, each) for each in range(seed, seed + _SEEDS)]
    for step in steps:
        if finished(step):
            return finish(step, show)
    for step in steps[:-1]:
        try:
            return finish(step, show)
        except HopelessError:
            continue
    return finish(steps[-1], show)


def _wanders(log: str) -> str:
    """Return why nextpnr's second router will not end, if its wires used twice have grown fewer for the last time."""
    overused = [int(count) for count in _OVERUSED.findall(log)]
    if not overused or len(overused) - overused.index(min(overused)) <= _PATIENCE:
        return ""
    return (f"router2 has {overused[-1]} wires that are used twice, and had {min(overused)} over {_PATIENCE} rounds "
            "ago; another seed may do")


def _place_and_route(netlist: Path, design: BoardDesign, seed: int) -> ToolStep:
    # Without --timing-allow-fail: what is too slow for the board's clock is no result. --freq: of every clock but the
    # oscillator, so of one that is divided, whose net has a name of Yosys' choice.
    board = design.board
    arguments = (*board.nextpnr_options, "--router", "router2", "--json", _NETLIST, "--lpf", _PINS, "--seed", str(seed),
                 "--freq", f"{board.clock_hz / 1e6:g}",
                 "--textcfg", _CONFIG, "--report", _REPORT)
    title = f"Placing and routing machine {design.machine.name} on {board.part}, seed {seed}"
    files: dict[str, str | Path] = {_NETLIST: netlist, _PINS: preferences(board)}
    return ToolStep(title, nextpnr(), arguments, files, (_CONFIG, _REPORT), _wanders)


def _system(design: BoardDesign) -> SynthesisSources:
    """Return all sources, and the commands that read them."""
    paths: dict[str, str | Path] = {path.name: path for path in sources()}
    coprocessor = plain_names(coprocessor_verilog(design.machine))
    parameters = " ".join(f"-G {name}={value}" for name, value in design.parameters.items())
    read = (f"read_slang -j 1 --top {TOP} {parameters} {' '.join(paths)} ports.v\n"
            f"read_verilog coprocessor.v\n")
    files = {**paths, "coprocessor.v": coprocessor, "ports.v": ports_only(coprocessor, "coprocessor")}
    return SynthesisSources(f"board with {design.machine.name}", TOP, files, read)


def preferences(board: Board) -> str:
    """Return places and buffers of a board's pins, and its oscillator, as Lattice's preference file (LPF)."""
    lines = ["BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;",
             f'FREQUENCY PORT "oscillator" {board.oscillator_hz / 1e6:g} MHZ;']
    for pin in board.pins:
        buffer = " ".join(f"{name}={value}" for name, value in pin.attributes)
        lines += [f'LOCATE COMP "{pin.port}" SITE "{pin.site}";', f'IOBUF PORT "{pin.port}" {buffer};']
    return "\n".join((*lines, ""))


def _random_contents(design: BoardDesign) -> tuple[bytes, bytes]:
    """Return contents of RAM and main memory by which each of their bits can be found again."""
    return random_contents(design.ram_bytes, 1), random_contents(design.main_bytes, 2)


def _with_contents(config: str, design: BoardDesign, ram: bytes, main: bytes) -> str:
    for old, new, word_bytes in zip(_random_contents(design), (ram, main), (4, design.machine.bus_bytes), strict=True):
        config = exchange(config, old, new.ljust(len(old), b"\0"), word_bytes)
    return config


def _ecppack() -> Tool:
    """Return the packer, which comes with nextpnr's wheel."""
    scripts = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    found = shutil.which("yowasp-ecppack", path=scripts)
    if found is None:
        raise ToolMissingError("Packing needs ecppack, which was not found; install it with "
                               "pip install 'tilewright[synth]'")
    return tool("ecppack", (found,), "--version")

