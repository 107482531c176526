"""Tables of ``tilewright explore --accuracy``: what each layer's bits cost alone, and the front, with commands."""

from rich.console import Console
from rich.table import Table

from tilewright.bench.precision.front_files import FrontReport, machine_text
from tilewright.cli.tables.text import plain, short_name
from tilewright.tools.fitted_table import FittedTable

__all__ = ["bits_front_table", "print_precision", "sensitivity_table"]


def print_precision(report: FrontReport, out: Console) -> None:
    """Print both tables, a command for each row of the front, and notes."""
    out.print(sensitivity_table(report))
    out.print(bits_front_table(report))
    for number, point in enumerate(report.points, 1):
        out.print(plain(f"{number}: {report.command_of(point)}"), highlight=False, soft_wrap=True)
    for note in report.notes:
        out.print(plain(note), highlight=False, soft_wrap=True)


def sensitivity_table(report: FrontReport) -> Table:
    """Return the error of the network with other bits in one layer at a time."""
    table = FittedTable(title=plain(f"{report.model}: error in % with other bits in one layer alone"))
    table.column("number", number=True)
    table.column("layer")
    for head in ("weights", "int4", "int2", "input\nint16"):
        table.column(head, number=True)
    for number, row in enumerate(report.front.sensitivity(), 1):
        each = [row[name] for name in ("int4", "int2", "int16")]
        table.add_row(str(number), short_name(row["layer"]), f"{row['weights']:,}",
                      *("–" if found is None else f"{found['error']:.3g}" for found in each))
    return table


def bits_front_table(report: FrontReport) -> Table:
    """Return the front: bits of each layer in order, the machine, and what both cost."""
    table = FittedTable(title=f"Front of {len(report.front.errors)} choices of bits")
    table.column("row", number=True)
    for head in ("bits of weights", "bits of inputs", "machine"):
        table.column(head)
    for head in ("error, %", "cycles", "energy, µJ", "bytes of\nweights", "area"):
        table.column(head, number=True)
    for number, point in enumerate(report.points, 1):
        found = point.measures
        table.add_row(str(number), *(" ".join(map(str, bits)) for bits in (point.choice.weights,
                                                                           point.choice.activations)),
                      plain(machine_text(report.base, point.design)), f"{found['error']:.3g}",
                      f"{found['cycles']:,.0f}", f"{found['energy']:,.4g}", f"{found['weight_bytes']:,.0f}",
                      f"{found['area']:.4g}")
    return table
