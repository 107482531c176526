"""Tables of a synthesis report for a person."""

import math
import re
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from tilewright.hardware.synthesis.synthesis_report import CriticalPath, PlacedDesign, SynthesisReport, Timing
from tilewright.tools.fitted_table import FittedTable

__all__ = ["figure", "path_delay", "print_synthesis", "rows", "shortened", "summary",
           "synthesis_table"]

_MAPPED = re.compile(r"_(?:[A-Z]{2}|sky130_fd_sc).*")


def print_synthesis(report: SynthesisReport, out: Console) -> None:
    """Print the table of the blocks, then what holds for the whole."""
    out.print(synthesis_table(report))
    for line in summary(report):
        out.print(line, highlight=False, markup=False, soft_wrap=True)


def synthesis_table(report: SynthesisReport) -> Table:
    """Return the table of the blocks, their sum, and what the device has."""
    table = FittedTable(title=f"{report.design} on {report.target_title}")
    table.column("block")
    for place, head in enumerate(report.units.values()):
        table.column(head, number=True, goes=len(report.units) - place if place else 0)
    for row in rows(report):
        table.add_row(*row)
    table.add_section()
    table.add_row("in all", *(figure(report.total(name)) for name in report.units))
    for device, has in report.capacity.items():
        table.add_row(f"{device} has", *(figure(has[name]) if name in has else "" for name in report.units))
    return table


def rows(report: SynthesisReport) -> Iterable[tuple[str, ...]]:
    """Return the blocks' rows: name and figures."""
    for name, block in report.blocks.items():
        yield name, *(figure(block[resource]) for resource in report.units)


def figure(value: float) -> str:
    """Return a count or an area: whole, thousands set off, a dash for none."""
    return f"{value:,.0f}" if value else "–"


def summary(report: SynthesisReport) -> Iterable[str]:
    """Return the facts about the whole design: fit, frequency, longest path, times; one line each."""
    if report.capacity:
        yield _fit(report)
    if report.timing is not None:
        goal = f", goal {report.timing.goal_mhz:g} MHz" if report.timing.goal_mhz is not None else ""
        seed = f", seed {report.seed}" if report.seed is not None else ""
        yield f"Fmax: {report.timing.fmax_mhz:.1f} MHz ({report.timing.method}{goal}{seed})"
        yield _longest_path(report.timing)
    if report.placed is not None:
        yield from _placed(report.placed)
    yield from report.notes
    for step in report.steps:
        kept = ", kept from an earlier run" if step.kept else ""
        yield f"{step.title}: {step.tool}, {step.seconds:,.0f} s of processor time{kept}"


def _fit(report: SynthesisReport) -> str:
    """Return whether it fits, and what it takes of the smallest device that holds it, as synthesised."""
    if report.lacking:
        return f"does not fit: {report.lacking}"
    return f"fits {report.device}, as synthesised: " + ", ".join(
        f"{100 * share:.0f} % of its {_places(report, name)}" for name, share in report.shares().items())


def _places(report: SynthesisReport, name: str) -> str:
    """Return what a device has of a resource: logic cells are taken by other resources than LUTs, too."""
    per = {"LUT": report.logic_per, "FF": report.registers_per}.get(name, {})
    others = [report.units[each] for each in per if each in report.units and report.total(each)]
    if not others:
        return report.units[name]
    kind = "logic cells" if name == "LUT" else "flip-flops"
    return f"{kind} ({report.needed(name):,.0f}: its {report.units[name]}, and those that {' and '.join(others)} fill)"


def _placed(placed: PlacedDesign) -> Iterable[str]:
    """Return the frequency with wires beside that without, and the wires of each block; one line each."""
    yield (f"placed in {placed.width_um:,.0f} x {placed.height_um:,.0f} µm of rows, {100 * placed.utilisation:.0f} % "
           f"filled, memories as points; not routed, no clock tree")
    yield (f"Fmax with wires: {placed.timing.fmax_mhz:.1f} MHz, of the same netlist without: "
           f"{placed.without_wires.fmax_mhz:.1f} MHz ({placed.timing.method}; registers that only memories read are in "
           f"it)")
    yield _longest_path(placed.timing)
    for name, wires in (*placed.wires.items(), ("in all", placed.all_wires)):
        if wires.pins:
            low, high = placed.low_and_high(wires.femtofarads_per_pin)
            yield (f"wires of {name}: {wires.femtofarads_per_pin:.2f} fF ({low:.2f} to {high:.2f}) for each of "
                   f"{wires.pins:,} pins of {1e3 * wires.pin_pf / wires.pins:.2f} fF, "
                   f"{wires.length_um / wires.pins:.1f} µm")


def _longest_path(timing: Timing) -> str:
    """Return where the longest path begins and ends, and what it consists of."""
    path = timing.path
    return (f"longest path: {path_delay(path)}; {path.cells} cells between {shortened(path.start)} and "
            f"{shortened(path.end)}")


def path_delay(path: CriticalPath) -> str:
    """Return the blocks at the ends of a path and its delay, of logic and, where it was looked at, of wires."""
    blocks = path.start_block if path.start_block == path.end_block else f"{path.start_block} to {path.end_block}"
    if math.isnan(path.wire_ns):
        return f"{blocks}, {path.logic_ns:.1f} ns"
    return f"{blocks}, {path.logic_ns + path.wire_ns:.1f} ns: {path.logic_ns:.1f} logic, {path.wire_ns:.1f} wire"


def shortened(cell: str, length: int = 60) -> str:
    """Return the register to which a cell belongs, from its name: mappers append their own parts in capitals.

    A name that has no such part loses its end if it is long.
    """
    name = _MAPPED.sub("", cell)
    return name if len(name) <= length else f"{name[:length]}…"
