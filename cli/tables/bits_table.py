"""The table of ``tilewright quantise``: each layer's bits, by the numbers that its options take."""

from collections.abc import Sequence

from rich.table import Table

from tilewright.cli.tables.text import short_name
from tilewright.runtime.precision.quantised_file import LayerRow
from tilewright.tools.fitted_table import FittedTable

__all__ = ["bits_table"]


def bits_table(rows: Sequence[LayerRow], samples: int) -> Table:
    """Return the table of the layers, and the bytes of all weights; ``samples`` are those that rounding went by."""
    table = FittedTable(title=f"Bits of the layers, rounded by {f'{samples} samples' if samples else 'weights alone'}")
    for head in ("number", "layer"):
        table.column(head, number=head == "number")
    for head in ("weights", "bits of\nweights", "bytes", "bits of\ninput"):
        table.column(head, number=True)
    for number, row in enumerate(rows, 1):
        table.add_row(str(number), short_name(row.name), f"{row.weights:,}", str(row.weight_bits),
                      f"{-(-row.weights * row.weight_bits // 8):,}", str(row.activation_bits))
    table.add_section()
    table.add_row("", "in all", f"{sum(row.weights for row in rows):,}", "",
                  f"{sum(-(-row.weights * row.weight_bits // 8) for row in rows):,}", "")
    return table
