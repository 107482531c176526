"""The page docs/toolchains.md: the factor of each cell, and what is above its limit, with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.bench.toolchains.tool_cells import ToolCell
from tilewright.bench.toolchains.tool_list import LIMITS, QuantiserTool, WrittenForm
from tilewright.bench.toolchains.writers.networks import ATTENTION
from tilewright.isa.machine import DEFAULT_MACHINE
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
    there = [each for each in found if not each.missing]
    judged = [_Judged(each.tool, form, network, each.cells[form.name, network], plain[network]) for each in there
              for form in each.tool.forms for network in networks]
    counted = [each for each in judged if each.network not in ATTENTION]
    aside = [each for each in judged if each.network in ATTENTION]
    static = [each.static for each in counted if each.static is not None]
    together = _score([each.static or each for each in counted])["within"]
    return render(_TEMPLATE, tools=[_section(each, networks, judged) for each in there],
                  missing=[each for each in found if each.missing], names=", ".join(networks),
                  score=_score(counted), static=_score(static), together=together,
                  aside=_score(aside) if aside else None,
                  apart=" and ".join(name for name in networks if name in ATTENTION),
                  over=_grouped(counted), over_aside=_grouped(aside), over_static=_grouped(static), limits=LIMITS,
                  machine=DEFAULT_MACHINE,
                  plain=table(("network", *networks), [("cycles", *(digits(plain[name]) for name in networks))]),
                  unwritten=_unwritten(judged))


@dataclass(frozen=True, slots=True)
class _Judged:
    """A cell in its place, beside the cycles of the plain file."""

    tool: QuantiserTool
    form: WrittenForm
    network: str
    cell: ToolCell
    plain: int

    @property
    def kept(self) -> bool | None:
        return self.cell.keeps(self.form, self.plain)

    @property
    def factor(self) -> str:
        if self.cell.cycles:
            return f"{self.cell.cycles / self.plain:,.2f}" + ("ᶜ" if self.cell.calibrated else "")
        return "refused" if self.cell.refused else "crash"

    @property
    def static(self) -> "_Judged | None":
        """The same file with ``--calibrate``, if it is quantised at run time."""
        return None if self.cell.static is None else replace(self, cell=self.cell.static)

    @property
    def reason(self) -> str:
        cell = self.cell
        if not cell.cycles:
            return cell.refused or cell.crashed
        return cell.why or f"No layer of weight is on the core; {cell.layers} layers"


def _score(judged: Sequence[_Judged]) -> dict[str, int]:
    """Return how many files have a limit, are within it, and of those are so with ``--calibrate`` alone."""
    limited = [each for each in judged if each.kept is not None]
    return {"limited": len(limited), "within": sum(bool(each.kept) for each in limited),
            "calibrated": sum(bool(each.kept) and each.cell.calibrated and each.form.limit == "int8"
                              for each in limited)}


def _section(each: ToolFigures, networks: Sequence[str], judged: Sequence[_Judged]) -> dict[str, str]:
    cells = {(one.form.name, one.network): _shown(one) for one in judged if one.tool is each.tool}
    alike: dict[tuple[str, ...], list[str]] = {}
    for form in each.tool.forms:
        alike.setdefault((form.limit, *(cells[form.name, name] for name in networks)), []).append(form.name)
    rows = [("; ".join(forms), *row) for row, forms in alike.items()]
    return {"name": each.tool.name, "packages": ", ".join(f"`{name}`" for name in each.tool.packages),
            "table": table(("forms", "limit", *networks), rows)}


def _shown(each: _Judged) -> str:
    if not each.cell.counts:
        return "–"
    shown = f"**{each.factor}**" if each.kept is False else each.factor
    return shown if each.static is None else f"{shown}, {_shown(each.static)}"


def _grouped(judged: Sequence[_Judged]) -> list[dict[str, str]]:
    """Return the cells above their limit, those of one tool, network and reason together."""
    groups: dict[tuple[str, str, str], list[_Judged]] = {}
    for each in judged:
        if each.kept is False:
            groups.setdefault((each.tool.name, each.network, each.reason), []).append(each)
    return [{"tool": tool, "network": network, "why": why.rstrip("."),
             "forms": "; ".join(f"{each.form.name} **{each.factor}**" for each in cells)}
            for (tool, network, why), cells in groups.items()]


def _unwritten(judged: Sequence[_Judged]) -> list[dict[str, str]]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in judged:
        if not each.cell.counts:
            key = (each.tool.name, each.form.name, each.cell.unwritten or each.cell.invalid)
            groups.setdefault(key, []).append(each.network)
    forms: dict[tuple[str, str, str], list[str]] = {}
    for (tool, form, why), networks in groups.items():
        forms.setdefault((tool, ", ".join(networks), why), []).append(form)
    return [{"tool": tool, "form": "; ".join(names), "networks": networks, "why": why}
            for (tool, networks, why), names in forms.items()]
