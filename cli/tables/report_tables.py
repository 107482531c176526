"""Reports of runs as tables for a person, with units in the heads of the columns."""

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilewright.cli.tables.core_share_lines import print_core_share
from tilewright.cli.tables.text import WIDTH, plain, short_name
from tilewright.energy.energies import Amount, EnergyEstimate
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE
from tilewright.runtime.execution.report import LayerReport, Report
from tilewright.runtime.execution.verdict import count_text
from tilewright.runtime.oracle.value_ranges import TensorStatistics
from tilewright.tools.fitted_table import FittedTable

__all__ = [
    "amount_text", "energy_text", "layer_table", "print_report", "range_text", "report_text", "statistics_table",
    "summary",
]



def report_text(report: Report) -> str:
    """Return the tables of a report as plain text."""
    out = io.StringIO()
    print_report(report, Console(file=out, width=WIDTH))
    return out.getvalue().rstrip()


def print_report(report: Report, out: Console) -> None:
    """Print a report: the core's share, the table of the layers, then what holds for the run."""
    print_core_share(report.core_share, out)
    out.print(layer_table(report))
    for line in summary(report):
        out.print(line, highlight=False, markup=False, soft_wrap=True)


def layer_table(report: Report) -> Table:
    """Return the table of a report's layers, and their sum."""
    table = FittedTable(title=plain(report.title))
    table.column("layer")
    table.column("kind", goes=5)
    table.column("MACs", number=True, goes=2)
    table.column("cycles", number=True)
    table.column("MAC per\nmultiplier\nand cycle", number=True, goes=1)
    table.column("main stall,\nof its cycles", least=16)
    table.column("memory,\nbytes", number=True, goes=3)
    table.column("energy, µJ\n(relative; absolute)", number=True, goes=4, brief=_without_range,
                 brief_head="energy,\nµJ")
    for layer in report.layers:
        table.add_row(*_row(layer, report))
    table.add_section()
    if report.tail_cycles:
        table.add_row("after the last layer", "", "", f"{report.tail_cycles:,}")
    moved = sum(layer.bytes_read + layer.bytes_written for layer in report.layers)
    table.add_row("in all", "", f"{report.macs:,}", f"{report.cycles:,}", f"{report.macs_per_multiplier_cycle:.2f}",
                  "", f"{moved:,}", range_text(report.energy))
    return table


def _row(layer: LayerReport, report: Report) -> tuple[Text | str, ...]:
    work = f"{layer.macs / (report.multipliers * layer.cycles):.2f}" if layer.macs and layer.cycles else "–"
    stall: Text | str = "–"
    if layer.algorithm == "core":
        work = "–"      # no multiplier of the array works
        stall = plain(f"core, {100 * layer.cycles / report.cycles:.0f} % of all cycles: {layer.reason}")
    elif layer.main_stall is not None:
        name = layer.main_stall.removeprefix("mac_").replace("_", " ")
        stall = f"{name} {100 * layer.stalls[layer.main_stall] / layer.cycles:.0f} %"
    kind = layer.algorithm if layer.kind == "conv" else layer.kind
    return (short_name(layer.name), kind, f"{layer.macs:,}", f"{layer.cycles:,}", work, stall,
            f"{layer.bytes_read + layer.bytes_written:,}", range_text(layer.energy))


def _without_range(text: str) -> str:
    return text.partition(" (")[0]


def range_text(energy: EnergyEstimate) -> str:
    """Return ``total (relative range; absolute range)`` in microjoules, at least three digits."""
    return amount_text(energy.total)


def amount_text(amount: Amount) -> str:
    """Return the same of an amount of energy."""
    return (f"{_digits(amount.uj)} ({_digits(amount.relative_low_uj)} … {_digits(amount.relative_high_uj)}; "
            f"{_digits(amount.absolute_low_uj)} … {_digits(amount.absolute_high_uj)})")


def energy_text(energy: EnergyEstimate, source: str) -> str:
    """Return a line with both ranges, whose prices they are, and the share of every component from 1 % on."""
    total = energy.total
    parts = sorted(energy.by_component.items(), key=lambda part: -part[1])
    shares = ", ".join(f"{name.replace('_', ' ')} {100 * part / total.uj:.0f} %"
                       for name, part in parts if 100 * part >= total.uj)
    return (f"energy: {_digits(total.uj)} µJ (relative {_digits(total.relative_low_uj)} … "
            f"{_digits(total.relative_high_uj)}; absolute {_digits(total.absolute_low_uj)} … "
            f"{_digits(total.absolute_high_uj)}) in {source}: {shares}")


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def summary(report: Report) -> Iterable[str]:
    """Return the facts about the whole run, one line each."""
    counts = ", ".join(f"{name} {count:,}" for name, count in report.instructions.items())
    yield f"instructions: {counts}"
    batch = "" if report.images == 1 else (f" for {report.images} images, {report.cycles_per_image:,.0f} cycles per "
                                           "image")
    yield (f"time at {report.clock_mhz:g} MHz: {_digits(report.milliseconds)} ms{batch}, "
           f"{_digits(report.inferences_per_second)} inferences per second, {_digits(report.milliwatts)} mW")
    if report.host != HOST_CORE:
        yield _host_text(report)
    if report.asleep_cycles:
        yield (f"host core: asleep for {report.asleep_cycles:,} cycles, "
               f"{100 * report.asleep_cycles / report.cycles:.0f} %, during which its clock takes no energy")
    yield energy_text(report.energy, f"{report.technology}, main memory {report.dram}")
    changed = sum(report.toggles.values())
    yield (f"register toggles: {changed:,} in the coprocessor, "
           f"{'counted in RTL' if report.toggles_counted else 'predicted'}")
    if (power := report.imported) is not None:
        static, dynamic = power.energy_uj(report.cycles)
        yield plain(f"energy on {power.device}: {_digits(static + dynamic)} µJ ({_digits(static)} static, "
                    f"{_digits(dynamic)} dynamic) at {power.clock_mhz:g} MHz, from {power.file} of {power.tool}").plain
    yield f"memory: {report.memory}"
    yield f"simulated in {report.wall_seconds:.2f} s, {report.simulated_cycles_per_second:,.0f} cycles per second"
    yield from (plain(note).plain for note in report.notes)
    judged = [(report.judged_outputs, "outputs"), (report.judged, "layers")]
    if report.judged_outputs and any(each.verdict.kind != "equal" for some, _ in judged for each in some):
        yield "beside ONNX Runtime: " + "; ".join(count_text((each.verdict for each in some), what)
                                                  for some, what in judged if some)


def _host_text(report: Report) -> str:
    """Return what is to be known of a run beside another host than CV32E40X."""
    beside = "" if report.predicted_cycles is None else (
        f"; with {HOST_CORE} over {PORT_OF[HOST_CORE]}, engine fast predicts {report.predicted_cycles:,} cycles, "
        f"{100 * (report.cycles / report.predicted_cycles - 1):+.1f} % here")
    return (f"host: {report.host}, commands over {PORT_OF[report.host]}: {report.cycles:,} cycles{beside}; its "
            f"instructions are priced as {HOST_CORE}'s")


def statistics_table(statistics: Sequence[TensorStatistics]) -> Table:
    """Return the table of ``tilewright run --statistics``."""
    table = FittedTable(title="Values of the int8 tensors")
    table.column("layer")
    for head in ("elements", "zero, %", "saturated\n(-128, 127), %", "values used,\nof 256"):
        table.column(head, number=True, goes=1 if head == "elements" else 0)
    for each in statistics:
        table.add_row(plain(each.layer), f"{each.elements:,}", f"{100 * each.zeros:.1f}", f"{100 * each.saturated:.2f}",
                      str(each.levels))
    return table
