"""The page docs/toolchains.md: the factor of each cell, and what is above its limit, with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.bench.toolchains.tool_cells import ToolCell
from tilewright.bench.toolchains.tool_list import LIMITS, QuantiserTool, WrittenForm
from tilewright.tools.markdown import digits, table
from tilewright.tools.templates import render

__all__ = ["ToolFigures", "toolchains_page"]

_TEMPLATE = Path(__file__).with_name("toolchains_page.md.j2")


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """A tool with its cells, by form and network; ``missing`` says why it could not be installed."""

    tool: QuantiserTool
    cells: Mapping[tuple[str, str], ToolCell]
    missing: str = ""


def toolchains_page(found: Sequence[ToolFigures], networks: Sequence[str], plain: Mapping[str, int]) -> str:
    """Return the page; ``plain`` are the cycles of each network from plain quantize_static."""
    judged = [(each, form, network, each.cells[form.name, network]) for each in found if not each.missing
              for form in each.tool.forms for network in networks]
    limited = [cell.keeps(form, plain[network]) for _, form, network, cell in judged]
    over = [_over(each.tool, form, network, cell, plain) for each, form, network, cell in judged
            if cell.keeps(form, plain[network]) is False]
    return render(_TEMPLATE, tools=[_section(each, networks, plain) for each in found if not each.missing],
                  missing=[each for each in found if each.missing], over=over, names=", ".join(networks),
                  within=limited.count(True), limited=len(limited) - limited.count(None), limits=LIMITS,
                  plain=table(("network", *networks), [("cycles", *(digits(plain[name]) for name in networks))]),
                  unwritten=[(each.tool.name, form.name, network, cell.unwritten or cell.invalid)
                             for each, form, network, cell in judged if not cell.counts])


def _section(each: ToolFigures, networks: Sequence[str], plain: Mapping[str, int]) -> dict[str, str]:
    rows = [(form.name, form.limit, *(_shown(each.cells[form.name, name], form, plain[name]) for name in networks))
            for form in each.tool.forms]
    return {"name": each.tool.name, "packages": ", ".join(f"`{name}`" for name in each.tool.packages),
            "table": table(("form", "limit", *networks), rows)}


def _shown(cell: ToolCell, form: WrittenForm, plain: int) -> str:
    if not cell.counts:
        return "–"
    if not cell.cycles:
        return "**refused**" if cell.refused else "**crash**"
    text = f"{cell.cycles / plain:,.2f}"
    return f"**{text}**" if cell.keeps(form, plain) is False else text


def _over(tool: QuantiserTool, form: WrittenForm, network: str, cell: ToolCell,
          plain: Mapping[str, int]) -> dict[str, str]:
    if not cell.cycles:
        why = cell.refused or cell.crashed
        factor = "refused" if cell.refused else "crash"
    else:
        factor = f"{cell.cycles / plain[network]:,.2f}"
        why = cell.why or f"no layer of weight is on the core; {cell.layers} layers"
    return {"tool": tool.name, "form": form.name, "network": network, "factor": factor, "why": why}
