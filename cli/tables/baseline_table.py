"""A baseline's layers as a table for a person."""

from rich.table import Table

from tilewright.cli.tables.text import plain, short_name
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE
from tilewright.runtime.baseline.core_alone import BaselineResult
from tilewright.tools.fitted_table import FittedTable

__all__ = ["baseline_table"]


def baseline_table(model: str, result: BaselineResult) -> Table:
    """Return the table of a baseline's layers, and their sum."""
    program = {HOST_CORE: "plain C -O3 on CV32E40X", XPULP_CORE: "C -O3 with XPULP SIMD on CV32E40P"}[result.core]
    table = FittedTable(title=plain(f"{model} in {program} alone, zero-wait memory"))
    in_parts = any(layer.origin != "whole" for layer in result.layers)
    for head in ("layer", "MACs", "cycles", "cycles per MAC", *(["from"] if in_parts else [])):
        table.column(head, number=head not in ("layer", "from"), goes={"from": 1, "MACs": 2}.get(head, 0))
    for layer in result.layers:
        origin = {"whole": "measured", "slices": "scaled", "same shape": "layer of this shape"}[layer.origin]
        table.add_row(short_name(layer.name), f"{layer.macs:,}", f"{layer.cycles:,}",
                      _per_mac(layer.cycles, layer.macs), *([origin] if in_parts else []))
    table.add_section()
    macs = sum(layer.macs for layer in result.layers)
    table.add_row("in all", f"{macs:,}", f"{result.cycles:,}", _per_mac(result.cycles, macs))
    return table


def _per_mac(cycles: int, macs: int) -> str:
    return f"{cycles / macs:.2f}" if macs else "–"
