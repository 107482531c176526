"""Tables of the findings of ``tilewright check``."""

import shlex
from collections import Counter

from rich.console import Console
from rich.table import Table

from tilewright.cli.tables.core_share_lines import print_core_share
from tilewright.cli.tables.text import plain, short_name
from tilewright.runtime.check.model_check import Check
from tilewright.tools.fitted_table import FittedTable

__all__ = ["check_table", "print_check", "refusal_table", "summary"]


def print_check(check: Check, out: Console) -> None:
    """Print the core's share and the table of the layers, or that of the refusals, then what holds for the model."""
    if check.refusals:
        out.print(refusal_table(check))
    else:
        print_core_share(check.core_share, out)
        out.print(check_table(check))
    for line in summary(check):
        out.print(plain(line), highlight=False, soft_wrap=True)


def check_table(check: Check) -> Table:
    """Return the table of the layers, and their sum."""
    table = FittedTable(title=plain(f"{check.model} for {check.machine}"))
    table.column("layer")
    table.column("with it", goes=1)
    table.column("runs on", least=7)
    table.column("cycles,\npredicted", number=True)
    table.column("share", number=True, goes=2)
    table.column("fused, or why the core", least=20)
    for layer in check.layers:
        detail = layer.reason or ", ".join(layer.fused)
        others = ", ".join(node for node in layer.onnx_nodes if node != layer.name)
        table.add_row(short_name(layer.name), plain(others), layer.runs_on, f"{layer.cycles:,}",
                      f"{100 * layer.share:.1f} %", plain(detail))
    table.add_section()
    if check.tail_cycles:
        table.add_row("after the last layer", "", "", f"{check.tail_cycles:,}", "", "")
    table.add_row("in all", "", "", f"{check.cycles:,}", "", "")
    return table


def refusal_table(check: Check) -> Table:
    """Return the table of all that is not compiled."""
    table = FittedTable(title=plain(f"{check.model} for {check.machine}: not compiled"))
    for head in ("node", "operator", "why", "what to do"):
        table.column(head, least=20 if head in ("why", "what to do") else 8)
    for each in check.refusals:
        table.add_row(plain(each.node or "–"), plain(each.op or "–"), plain(each.reason), plain(each.way_out))
    return table


def summary(check: Check) -> list[str]:
    """Return the facts about the model, one line each."""
    lines = []
    if check.layers:
        counts = Counter(layer.runs_on for layer in check.layers)
        share = sum(layer.share for layer in check.layers if layer.runs_on == "core")
        lines.append(f"{len(check.layers)} layers: " + ", ".join(f"{count} on {what}" for what, count in counts.items())
                     + f"; {100 * (1 - share):.1f} % of the predicted cycles run on the coprocessor")
    if check.memory is not None:
        memory = check.memory
        verdict = "it fits" if memory.fits else "it does NOT fit"
        lines.append(f"main memory: {memory.total:,} bytes, of which {memory.weights:,} are weights and constants and "
                     f"{memory.activations:,} tensors between layers; {memory.limit:,} are available: {verdict}")
    lines += [f"warning: {text}" for text in check.warnings]
    lines += [f"note: {text}" for text in check.notes]
    if check.refusals:
        lines.append(f"{len(check.refusals)} refusal{'s' if len(check.refusals) > 1 else ''}: it cannot be compiled")
        if check.options:
            lines.append(f"what comes before can, with {shlex.join(check.options)}")
    else:
        lines.append("it can be compiled" if check.compiles else "it can be compiled, but does not fit the memory")
    return lines
