"""Tables of two reports side by side."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilewright.cli.tables.text import plain, short_name
from tilewright.runtime.compare.report_difference import LayerDifference, LayerSide, ReportDifference
from tilewright.tools.fitted_table import FittedTable
from tilewright.tools.line_breaks import broken

__all__ = ["layers_table", "print_difference", "totals_table"]

_UNITS = {"cycles": "cycles", "milliseconds": "time, ms", "bytes": "memory, bytes", "energy_uj": "energy, µJ",
          "milliwatts": "power, mW"}


_PAIRS = (("cycles", 0), ("", 0), ("ratio", 3), ("memory,\nbytes", 2), ("", 2), ("energy,\nµJ", 1), ("", 1))
"""Heads of a layer's figures on both sides, and their turn when columns are dropped."""

_HEAD = 14
"""Letters of a line of a side's name: designs are stated at length, and figures are short."""


def print_difference(found: ReportDifference, out: Console) -> None:
    """Print what differs between the designs, the totals, then the layers."""
    for each in found.design:
        out.print(plain(f"design: {each}"), highlight=False, soft_wrap=True)
    out.print(totals_table(found))
    out.print(layers_table(found))


def totals_table(found: ReportDifference) -> Table:
    """Return the table of the runs' figures."""
    table = FittedTable(title="In all")
    table.column("", least=13)
    for head in (_folded(found.first), _folded(found.second), "second /\nfirst"):
        table.column(head, number=True)
    for each in found.totals:
        table.add_row(_UNITS[each.name], _number(each.first), _number(each.second), _ratio(each.ratio))
    return table


def layers_table(found: ReportDifference) -> Table:
    """Return the table of the layers, in the first's order; those of the second alone stand where it has them."""
    table = FittedTable(title=plain(f"{found.first}, and {found.second}"))
    table.column("layer")
    for head, turn in _PAIRS:
        table.column(head, number=True, goes=turn)
    table.column("what changed", least=24)
    for layer in found.layers:
        table.add_row(*_row(layer))
    return table


def _folded(head: str) -> Text:
    """Return the name of a side in lines of at most ``_HEAD`` letters, broken behind spaces and marks."""
    return Text("\n".join(broken(plain(head).plain, _HEAD)))


def _row(layer: LayerDifference) -> list[str]:
    def pair(name: str) -> tuple[str, str]:
        return tuple("–" if side is None else _number(getattr(side, name))  # type: ignore[return-value]
                     for side in (layer.first, layer.second))
    return [short_name(layer.name).plain, *pair("cycles"), _ratio(_quotient(layer.first, layer.second)), *pair("bytes"),
            *pair("energy_uj"), plain("; ".join(layer.changes)).plain]


def _quotient(first: LayerSide | None, second: LayerSide | None) -> float | None:
    return second.cycles / first.cycles if first is not None and second is not None and first.cycles else None


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.3g}"
