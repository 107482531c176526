"""Area in standard cells: logic and flip-flops mapped to a library, memories priced as macros of static RAM.

A memory of more than `REGISTER_FILE_WORDS` words is left out of the netlist and priced by
energy/technology/sram.toml; a smaller one is what an FPGA has LUT RAM for, and is made of flip-flops.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tilewright.energy.estimate import Technology
from tilewright.energy.sram import Sram
from tilewright.energy.technology_text import technologies
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.synthesis.cached_steps import Show, Tool, ToolStep, finish
from tilewright.hardware.synthesis.cell_counts import CellCounts, count_cells
from tilewright.hardware.synthesis.sources import VERILOG
from tilewright.hardware.synthesis.static_timing import CellsToPlace, placed_timing, static_timing
from tilewright.hardware.synthesis.synthesis_report import AREA, FLIP_FLOPS, MEMORY, SynthesisReport, SynthesisRequest
from tilewright.hardware.synthesis.targets import StandardCells

__all__ = ["REGISTER_FILE_WORDS", "count", "synthesise_cells"]

REGISTER_FILE_WORDS = 16
_MACRO = "tilewright_sram"
_CLOCK_PS = 10_000

_SCRIPT = "synthesis.ys"
_NETLIST = "netlist.json"
_MAPPED = "netlist.v"
_LIBRARY = "cells.lib"
_CONSTRAINTS = "abc.constr"

# Without constraints abc does not buffer. splitnets: OpenSTA does not read `wire signed`.
# keep: what only memories read stays, though they are gone.
_COMMANDS = """\
hierarchy -check -top {top}
proc
opt
memory -nomap
opt_clean
select -set large t:$mem_v2 r:SIZE>{words} %i
chtype -set {macro} @large
memory_map
{marks}synth -flatten -noshare -run coarse:fine
opt -undriven -fine
techmap
opt -fast
dfflibmap {unused} -liberty cells.lib
abc {unused} -D {clock} -constr abc.constr -liberty cells.lib
setundef -zero
opt_clean
delete t:$scopeinfo
autoname
read_liberty -lib cells.lib
write_json netlist.json
delete t:{macro}
setattr -set keep 1 t:*
splitnets
opt_clean -purge
write_verilog -noattr -noexpr -nohex -nodec netlist.v
"""

_MARK = """\
setattr -set src "design.v:{1}" {0}/t:* {0}/a:src %d
"""
"""For a module and its first line: what has no line of Verilog, such as the flip-flops of a memory, gets this one."""


def synthesise_cells(request: SynthesisRequest, target: StandardCells, library: Path, yosys: Tool,
                     show: Show) -> SynthesisReport:
    """Map to ``library``, a Liberty file; look at timing if asked to place: without wires, and with a layout's too."""
    design = request.design
    marks = "".join(_MARK.format(module, line) for module, line in design.lines.modules)
    script = design.read + _COMMANDS.format(
        marks=marks, top=design.top, words=REGISTER_FILE_WORDS, macro=_MACRO, clock=_CLOCK_PS,
        unused=" ".join(f"-dont_use {name}" for name in target.unused))
    constraints = f"set_driving_cell {target.buffer}\nset_load {target.load}\n"
    mapped = finish(ToolStep(
        f"Mapping {design.name} to {target.name}", yosys, (_SCRIPT,),
        {**design.files, _SCRIPT: script, _CONSTRAINTS: constraints, _LIBRARY: library},
        (_NETLIST, _MAPPED, VERILOG, _SCRIPT)), show)
    storage = {cell.name for cell in read_library(library).cells.values() if cell.storage is not None} | {_MACRO}
    netlist = count_cells(mapped.folder / _NETLIST, design.top, design.lines, lambda kind: kind not in storage, _MACRO)
    sram = Technology.load(target.technology).sram if target.technology in technologies() else None
    report = replace(
        SynthesisReport.of(request, target, units=_units(sram), blocks=count(netlist, library, sram), steps=[mapped]),
        notes=_notes(netlist, sram))
    if not request.place:
        return report
    step, timing = static_timing(design, mapped.folder / _MAPPED, library, netlist.block, show)
    report = replace(report.with_step(step), timing=timing)
    if not request.layout:
        return report
    given = CellsToPlace(mapped.folder / _NETLIST, library, target.name, _MACRO)
    steps, placed, cells = placed_timing(design, given, netlist.block, show)
    for each in steps:
        report = report.with_step(each)
    return replace(report, placed=placed, cells=cells if request.floorplan else ())


def count(netlist: CellCounts, library: Path, sram: Sram | None) -> dict[str, dict[str, float]]:
    """Return each block's area in µm²: of its cells, and of its macros where static RAM has a price."""
    cells = read_library(library)
    blocks: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_units(sram), 0.0))
    for (block, kind), number in netlist.cells.items():
        cell = cells.cell(kind)
        blocks[block][AREA] += number * cell.area
        if cell.storage is not None and cell.storage.kind == "ff":
            blocks[block][FLIP_FLOPS] += number
    if sram is not None:
        for memory in netlist.memories:
            blocks[memory.block][MEMORY] += sram.area_um2(memory.bytes, memory.bits)
    return dict(blocks)


def _units(sram: Sram | None) -> Mapping[str, str]:
    units = {AREA: "logic and flip-flops, µm²", FLIP_FLOPS: "flip-flops"}
    return units if sram is None else {**units, MEMORY: "static RAM, µm²"}


def _notes(netlist: CellCounts, sram: Sram | None) -> tuple[str, ...]:
    number, kilobytes = len(netlist.memories), sum(memory.bytes for memory in netlist.memories) / 1024
    macros = f"{number} memories of {kilobytes:,.1f} KiB in all are macros of static RAM"
    return (f"{macros}, with one port more than in the table: {sram.table.name} ({sram.table.node}), area × "
             f"{sram.area.value:g}" if sram is not None else
             f"{macros}, left out: this technology has no price for them yet",
             f"memories of up to {REGISTER_FILE_WORDS} words are flip-flops",
             "areas are sums of cells: no wires, no clock tree, no unused rows")
