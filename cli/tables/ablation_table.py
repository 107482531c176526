"""The table of an ablation for a person."""

from rich.console import Console
from rich.table import Table

from tilewright.bench.ablation.ablation import Ablation, AblationRow
from tilewright.bench.ablation.ablation_page import gains, resources
from tilewright.cli.tables.text import plain

__all__ = ["ablation_tables", "print_ablation"]


def print_ablation(found: Ablation, out: Console) -> None:
    """Print a table for each network and machine."""
    for each in ablation_tables(found):
        out.print(each)


def ablation_tables(found: Ablation) -> list[Table]:
    """Return a table for each network and machine."""
    groups: dict[tuple[str, str], list[AblationRow]] = {}
    for row in found.rows:
        groups.setdefault((row.model, row.machine), []).append(row)
    return [_table(f"{model} on {machine}", rows) for (model, machine), rows in groups.items()]


def _table(title: str, rows: list[AblationRow]) -> Table:
    having, measured = rows[0].having, resources(rows)
    table = Table(title=plain(f"{title}: {having.cycles:,} cycles, {having.bytes:,} bytes, {having.energy_uj:.3g} µJ"))
    table.add_column("without")
    for head in ("cycles", "factor", "bytes", "energy,\nµJ", *(f"{name},\n{target}" for target, name in measured),
                 *(f"gain per\n{name}" for _, name in gains(rows))):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.unit, *_figures(row), *(_area(row, *each) for each in measured),
                      *(_gain(row, *each) for each in gains(rows)))
    return table


def _figures(row: AblationRow) -> tuple[str, str, str, str]:
    if row.without is None:
        return "does not compile", "–", "–", "–"
    return (f"{row.without.cycles:,}", f"{row.speedup:.3f}", f"{row.without.bytes:,}", f"{row.without.energy_uj:.3g}")


def _area(row: AblationRow, target: str, resource: str) -> str:
    return f"{row.area_without[target][resource]:,.0f} of {row.area_with[target][resource]:,.0f}"


def _gain(row: AblationRow, target: str, resource: str) -> str:
    gain = row.gain_per_area(target, resource)
    return "–" if gain is None else f"{gain:.2f}"
