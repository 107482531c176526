"""The technologies' prices, their ranges and their sources as the manual page docs/technologies.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewright.energy.estimate import Technology
from tilewright.energy.prices import KINDS, Range, TechnologyEntry
from tilewright.energy.sram import Sram, SramTable, sram_tables
from tilewright.energy.technology_text import DRAM, dram_parts, technologies
from tilewright.tools.templates import render

__all__ = ["page"]

_TEMPLATE = Path(__file__).with_name("technologies_page.md.j2")

_SAMPLES = ((64, 32), (4096, 8), (8192, 8), (8192, 64), (32768, 64), (131072, 64))
"""Macros, bytes and bits, that stand for all in the page."""


def page() -> str:
    """Return the page's text."""
    return render(_TEMPLATE, technologies=[Technology.load(name) for name in technologies()], kinds=KINDS,
                  default_dram=DRAM, dram_parts=dram_parts(), sram_tables=sram_tables(), prices=_prices,
                  scales=_scales, samples=_samples, named_entries=_named_entries, figure=_figure, between=_between,
                  sizes=_sizes)


def _prices(technology: Technology) -> Iterator[tuple[str, TechnologyEntry, str]]:
    """Yield what each price of a technology is called, its entry, and its unit if that is not the table's."""
    for name, entry in technology.entries.items():
        yield name, entry, ""
    for block, entry in technology.leakage.items():
        yield block or "every block", entry, " nW"
    for entries in (technology.gating, technology.gated_prices):
        for block, entry in entries.items():
            yield block or "every block", entry, ""


def _scales(sram: Sram) -> dict[str, TechnologyEntry]:
    return {"energy": sram.energy, "leakage": sram.leakage, "area": sram.area}


@dataclass(frozen=True, slots=True)
class _Sample:
    """A macro of static RAM, as a technology prices it."""

    size: int
    bits: int
    read_pj: float
    write_pj: float
    leakage_uw: float
    area_um2: float


def _samples(sram: Sram) -> Iterator[_Sample]:
    for size, bits in _SAMPLES:
        leakage = sram.table.macro(size, bits).leakage_uw * sram.leakage.value
        yield _Sample(size, bits, sram.price("read", size, bits).picojoules, sram.price("write", size, bits).picojoules,
                      leakage, sram.area_um2(size, bits))


def _named_entries(technology: Technology) -> dict[str, TechnologyEntry]:
    """Return the entries of a technology by what the list of sources calls them."""
    named = dict(technology.entries)
    for suffix, entries in (("leakage", technology.leakage), ("clock gating", technology.gating),
                            ("toggles with clock gates", technology.gated_prices)):
        named |= {f"{block or 'every block'}, {suffix}": entry for block, entry in entries.items()}
    return named | {f"static RAM, {what}": entry for what, entry in _scales(technology.sram).items()}


def _sizes(table: SramTable) -> list[int]:
    return sorted({size for row in table.points for size in row})


def _between(value: float, range_: Range) -> str:
    return f"{_figure(value * range_.low)} to {_figure(value * range_.high)}" if range_ != Range() else "–"


def _figure(value: float) -> str:
    """Return a number with three digits, without an exponent."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-4 else f"{value:.7f}".rstrip("0")


if __name__ == "__main__":
    print(page(), end="")
