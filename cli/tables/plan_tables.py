"""Plans as tables for a person, for ``--explain``."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilewright.cli.tables.text import plain, short_name
from tilewright.compiler.explain import Explanation, LayerExplanation
from tilewright.tools.fitted_table import FittedTable

__all__ = ["plan_table", "print_plan"]

_COLUMNS: tuple[tuple[str, bool, int], ...] = (
    ("layer", False, 0), ("by", False, 0), ("tile,\nrows x columns", True, 6), ("tiles", True, 3),
    ("channels\nper block", True, 5), ("blocks", True, 2), ("outer\nloop", False, 1), ("cycles,\npredicted", True, 0),
    ("bytes,\npredicted", True, 7), ("bound", False, 0), ("roofline,\ncycles", True, 4), ("fused", False, 8),
)
"""Head, whether it holds numbers, and its turn when columns are dropped."""


def print_plan(explanation: Explanation, out: Console) -> None:
    """Print a plan: the table of the layers, then what holds for the network."""
    out.print(plan_table(explanation))
    share = explanation.roofline_cycles / explanation.predicted_cycles
    out.print(f"roofline: {explanation.roofline_cycles:,} cycles, {100 * share:.0f} % of those predicted layer by "
              f"layer; main memory: {explanation.memory_bytes:,} bytes; {explanation.options}",
              highlight=False, soft_wrap=True)


def plan_table(explanation: Explanation) -> Table:
    """Return the table of a plan's layers, and their sum."""
    table = FittedTable(title=plain(f"Plan of {explanation.model} for {explanation.machine.name}"))
    for head, number, turn in _COLUMNS:
        table.column(head, number=number, goes=turn)
    for layer in explanation.layers:
        table.add_row(*_row(layer))
    table.add_section()
    table.add_row("in all", *[""] * 6, f"{explanation.predicted_cycles:,}", f"{explanation.predicted_bytes:,}", "",
                  f"{explanation.roofline_cycles:,}", "")
    return table


def _row(layer: LayerExplanation) -> tuple[Text | str, ...]:
    parts = f" in {layer.kernel_parts} parts" if layer.kernel_parts > 1 else ""
    algorithm = layer.algorithm + (" 2 rows" if layer.paired_rows else "")
    return (short_name(layer.name), algorithm, f"{layer.tile_rows} x {layer.tile_columns}", f"{layer.tiles}",
            f"{layer.block_channels}{parts}", f"{layer.blocks}", layer.loop_order.removesuffix(" outer"),
            f"{layer.predicted_cycles:,}", f"{layer.predicted_bytes:,}", layer.bound, f"{layer.roofline_cycles:,}",
            Text(",\n").join(map(plain, (*layer.fused, *["stays on chip"] * layer.output_on_chip))))
