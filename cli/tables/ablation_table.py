"""The tables of an ablation for a person."""

from rich.console import Console
from rich.table import Table

from tilewright.bench.ablation.ablation import Ablation, AblationRow
from tilewright.bench.ablation.ablation_page import area_lost, by_machine, gain_of, gains, resources, signed
from tilewright.cli.tables.text import plain
from tilewright.tools.fitted_table import FittedTable
from tilewright.tools.markdown import change

__all__ = ["ablation_tables", "print_ablation"]


def print_ablation(found: Ablation, out: Console) -> None:
    """Print the areas of each machine, and below them a table for each network."""
    for each in ablation_tables(found):
        out.print(each)


def ablation_tables(found: Ablation) -> list[Table]:
    """Return for each machine a table of areas and then one of costs for each network; 80 columns hold each."""
    tables = []
    for machine, groups in by_machine(found).items():
        tables.append(_areas(machine, groups[0]))
        tables += [_costs(machine, rows) for rows in groups]
    return tables


def _areas(machine: str, rows: list[AblationRow]) -> Table:
    measured = resources(rows)
    table = _started(f"Area of {machine}, and what each unit takes of it",
                     [f"{name},\n{target}" for target, name in measured])
    table.add_row("(the machine)", *(f"{rows[0].area_with[target][name]:,.0f}" for target, name in measured))
    for row in rows:
        table.add_row(row.unit, *(signed(area_lost(row, *each)) for each in measured))
    return table


def _costs(machine: str, rows: list[AblationRow]) -> Table:
    having = rows[0].having
    table = _started(f"{rows[0].model} on {machine}: {having.cycles:,} cycles, {having.bytes:,} bytes, "
                     f"{having.energy_uj:,.4g} µJ",
                     ["cycles", "factor", "bytes", "energy", *(f"gain/\n{name}" for _, name in gains(rows))])
    for row in rows:
        table.add_row(row.unit, *_figures(row), *(gain_of(row, *each) for each in gains(rows)))
    refused = [f"Without {row.unit}: {row.reason}" for row in rows if row.without is None]
    table.caption = plain("\n".join(refused)) if refused else None
    return table


def _started(title: str, heads: list[str]) -> Table:
    table = FittedTable(title=plain(title))
    table.column("without", least=16)
    for place, head in enumerate(heads):  # the last goes first, and the first stays
        table.column(head, number=True, goes=len(heads) - place if place else 0)
    return table


def _figures(row: AblationRow) -> tuple[str, str, str, str]:
    if row.without is None:
        return "refused", "–", "–", "–"
    return (f"{row.without.cycles:,}", f"{row.speedup:.3f}", change(row.without.bytes, row.having.bytes),
            change(row.without.energy_uj, row.having.energy_uj))
