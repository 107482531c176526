"""Area on an FPGA, and where there is an open place and route for it, the frequency."""

from collections import defaultdict
from dataclasses import replace

from tilewright.hardware.synthesis.cached_steps import Show, SynthesisError, Tool, ToolStep, finish
from tilewright.hardware.synthesis.cell_counts import CellCounts, count_cells, with_lone_registers
from tilewright.hardware.synthesis.ecp5.block_places import places_of
from tilewright.hardware.synthesis.families.ecp5 import with_any_collision
from tilewright.hardware.synthesis.families.fpga_family import LONE_REGISTER, Fpga
from tilewright.hardware.synthesis.floorplan import placed_cells
from tilewright.hardware.synthesis.place import PLACED, REPORT, method_of, nextpnr, place_and_route, timing_of, used
from tilewright.hardware.synthesis.sources import PINS, VERILOG, behind_pins, ecp5_design
from tilewright.hardware.synthesis.synthesis_report import SynthesisReport, SynthesisRequest

__all__ = ["count", "synthesise_fpga"]

_SCRIPT = "synthesis.ys"
_NETLIST = "netlist.json"
_PINS = ("with shift registers at its ports, since this nextpnr wants a pin for each: block pins, and the paths from "
         "and to it")
_RELAXED = ("memories without logic for words that are read while they are written; docs/area.md and the area model "
            "describe machines with it: --collision-logic")


def synthesise_fpga(request: SynthesisRequest, target: Fpga, yosys: Tool, show: Show) -> SynthesisReport:
    """Synthesise, and place and route if asked for, possible, and it fits."""
    # Asked for first: synthesis takes its time.
    router = nextpnr(target.router) if target.place and request.place else None
    design = ecp5_design(request.design) if target.ecp5_modules else request.design
    if router is not None and target.pins:
        design = behind_pins(design, target.oscillator)
    relaxed = request.any_collision and target.ecp5_modules
    synthesis = with_any_collision(target.synthesis) if relaxed else target.synthesis
    script = f"{design.read}{synthesis.format(top=design.top)}"
    mapped = finish(ToolStep(f"Synthesising {design.name} for {target.name}", yosys, (_SCRIPT,),
                             {**design.files, _SCRIPT: script}, (_NETLIST, VERILOG, _SCRIPT)), show)
    netlist = count_cells(mapped.folder / _NETLIST, design.top, design.lines, lambda kind: _is_logic(kind, target))
    if target.before_registers:
        registers = [kind for kind, (resource, _) in target.primitives.items() if resource == "FF"]
        netlist = with_lone_registers(netlist, mapped.folder / _NETLIST, design.top, registers,
                                      target.before_registers, LONE_REGISTER)
    report = SynthesisReport.of(request, target, units=target.units, blocks=count(netlist, target), steps=[mapped],
                                capacity=target.capacity, logic_per=target.logic_per)
    if relaxed:
        report = replace(report, notes=(_RELAXED,))
    if design.top == PINS:
        report = replace(report, notes=(*report.notes, _PINS))
    if not target.place:
        return replace(report, notes=(f"not placed: {target.unplaced}",))
    if router is None or not report.fits:
        return report
    title = f"Placing and routing {design.name} on {target.name}"
    given = places_of(mapped.folder / _NETLIST, target.sites)
    routed = place_and_route(target, router, mapped.folder / _NETLIST, title, request, given, show)
    packed = ", ".join(f"{number:,} {kind}" for kind, number in used(routed.folder / REPORT).items())
    timing = timing_of(routed.folder / REPORT, request.freq, netlist.block, method_of(target))
    return replace(report.with_step(routed), timing=timing, seed=request.seed,
                   notes=(*report.notes, *_given(len(given), report, target), f"after packing: {packed}"),
                   cells=placed_cells(routed.folder / PLACED, netlist.block) if request.floorplan else ())


def _given(places: int, report: SynthesisReport, target: Fpga) -> tuple[str, ...]:
    """Return the note on places that were given to multipliers and block RAMs, of a device whose sites are known."""
    blocks = sum(report.total(name) for name in ("DSP", "BRAM"))
    if target.sites is None or not blocks:
        return ()
    return (f"places given to {places:,} of {blocks:,.0f} multipliers and block RAMs; nextpnr chose the others",)


def _is_logic(kind: str, target: Fpga) -> bool:
    """Tell whether a type of cell is logic, and no register or memory."""
    return kind in target.uncounted or target.primitives.get(kind, ("", 0))[0] in ("LUT", "carry")


def count(netlist: CellCounts, target: Fpga) -> dict[str, dict[str, float]]:
    """Return how much of each resource each block needs.

    Raises
    ------
    SynthesisError
        If the netlist has a cell of a type that the target does not know.
    """
    blocks: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(target.units, 0))
    for (block, kind), number in netlist.cells.items():
        if kind not in target.uncounted:
            if kind not in target.primitives:
                raise SynthesisError(f"Cells for {target.name} must be {', '.join(target.primitives)}, not {kind!r}")
            resource, each = target.primitives[kind]
            blocks[block][resource] += each * number
    return dict(blocks)
