"""Table and lines of the findings of ``tilewright evaluate``."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tilewright.cli.tables.text import plain
from tilewright.runtime.accuracy.accuracy_report import AccuracyReport
from tilewright.runtime.accuracy.answers import TOP, Column
from tilewright.tools.fitted_table import FittedTable

__all__ = ["accuracy_table", "print_accuracy", "summary"]

_COMPUTED_BY = {Column.FLOAT: "float model, ONNX Runtime", Column.QUANTISED: "quantised model, ONNX Runtime"}
_HARDWARE = {"values": "hardware (integer reference)", "fast": "hardware (engine fast)", "rtl": "hardware (RTL)"}

_SHOWN = 10
"""Images that are named; --json has all."""


def print_accuracy(report: AccuracyReport, out: Console) -> None:
    """Print the table, and below it what it does not show."""
    out.print(accuracy_table(report))
    for line in summary(report):
        out.print(plain(line), highlight=False, soft_wrap=True)


def accuracy_table(report: AccuracyReport) -> Table:
    """Return a table with a row for each that answers."""
    table = FittedTable(title=plain(f"{report.model} over {report.images:,} images"))
    table.column("answers of")
    heads = [] if report.labels is None else ["top-1", *(["top-5"] if report.classes > TOP else [])]
    for head in (*heads, *(f"same class\nas {column}" for column in report.columns[:-1])):
        table.column(head, number=True)
    for column in report.columns:
        shares = [_share(report.right(column, most), report.images) for most in (1, TOP)[:len(heads)]]
        same = {each.first: report.images - len(each.images) for each in report.partings if each.second is column}
        agreement = [f"{same[other]:,}" if other in same else "" for other in report.columns[:-1]]
        table.add_row(_COMPUTED_BY.get(column, _HARDWARE[report.engine]), *shares, *agreement)
    return table


def summary(report: AccuracyReport) -> list[str]:
    """Return the facts about the evaluation, one line each."""
    lines = [*report.notes, *([] if Column.FLOAT in report.columns else
                              ["no float model: MODEL is already quantised; give --float-model FILE to compare"])]
    lines += [f"{each.first} and {each.second} give different classes for {len(each.images):,} images: "
              f"{_listed(each.images)}"
              for each in report.partings if each.images]
    lines.append(_equality(report))
    cycles = report.answers.cycles
    if cycles.size:
        spread = f", {cycles.min():,} to {cycles.max():,}" if cycles.min() < cycles.max() else ""
        lines.append(f"cycles per image on {report.design.machine.name}: {cycles.mean():,.0f}{spread}; "
                     f"{cycles.mean() / (1e3 * report.design.mhz):,.3f} ms at {report.design.mhz:g} MHz")
    if report.engine == "values":
        lines.append("hardware's values come from the integer reference, which both engines equal bit for bit; "
                     "--engine fast or rtl executes the program and counts cycles")
    if report.resumed:
        lines.append(f"{report.resumed:,} images were evaluated in an earlier run (--fresh starts again)")
    if report.evaluated_now:
        rate = report.evaluated_now / max(report.seconds, 1e-3)
        lines.append(f"{report.evaluated_now:,} images in {report.seconds:.1f} s: {rate:,.1f} per second")
    return lines


def _equality(report: AccuracyReport) -> str:
    """Return how the hardware's scores compare with ONNX Runtime's."""
    if report.matches is None:
        return report.untrusted
    if not report.unequal:
        how = (f"but for {report.answers.off.max():.1g}, because the core adds floats in another order"
               if report.answers.off.any() else "bit for bit")
        return f"hardware's scores equal ONNX Runtime's in all {report.images:,} images, {how}"
    off = f"by {report.answers.off.max():.3g} at most"
    said = f"hardware's scores differ from ONNX Runtime's in {len(report.unequal):,} images, {off}: "
    declared = "; this is allowed, because ONNX Runtime computes them in float"
    return said + _listed(report.unequal) + (declared if report.declared else "")


def _share(count: int, images: int) -> str:
    return f"{100 * count / images:.2f} %"


def _listed(images: Sequence[int]) -> str:
    return ", ".join(map(str, images[:_SHOWN])) + (", …" if len(images) > _SHOWN else "")
