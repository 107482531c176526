"""The technologies' prices, their ranges and their sources as the manual page docs/technologies.md."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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

_EVENTS = ("register_cycle", "register_toggle", "clock gating", "toggles with clock gates")
"""Events that blocks have prices of: two by register, in pJ, and two that are ratios to those."""


def page() -> str:
    """Return the page's text."""
    return render(_TEMPLATE, technologies=[Technology.load(name) for name in technologies()], kinds=KINDS,
                  default_dram=DRAM, dram_parts=dram_parts(), sram_tables=sram_tables(), prices=_prices,
                  by_block=_by_block, events=_EVENTS, scales=_scales, samples=_samples, named_entries=_named_entries,
                  notes=_notes, sourced=_sourced, figure=_figure, between=_between, ranges=_ranges, sizes=_sizes)


def _prices(technology: Technology) -> Iterator[tuple[str, TechnologyEntry, str]]:
    """Yield what each price that is not one of a block is called, its entry, and its unit if that is not the table's.

    What a price is of stands at the first one with the same words.
    """
    by_block = _by_block(technology)
    said: set[str] = set()
    units = ((technology.entries, "", ""), (technology.leakage, ", leakage", " nW"),
             (technology.gating, ", clock gating", ""), (technology.gated_prices, ", toggles with clock gates", ""))
    for entries, suffix, unit in units:
        for name, entry in entries.items():
            if name in by_block or name.endswith((".register_cycle", ".register_toggle")):
                continue
            effect = "" if entry.effect in said else f": {entry.effect}"
            said.add(entry.effect)
            yield f"`{name or 'every block'}`{suffix}{effect}", entry, unit


def _by_block(technology: Technology) -> dict[str, dict[str, TechnologyEntry]]:
    """Return the prices of `_EVENTS` that each block has of its own, by block and then by event."""
    blocks: dict[str, dict[str, TechnologyEntry]] = {}
    for event in _EVENTS[:2]:
        for name, entry in technology.entries.items():
            if name.endswith(f".{event}"):
                blocks.setdefault(name.removesuffix(f".{event}"), {})[event] = entry
    for event, entries in zip(_EVENTS[2:], (technology.gating, technology.gated_prices), strict=True):
        for name, entry in entries.items():
            if name:
                blocks.setdefault(name, {})[event] = entry
    return blocks


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


def _notes(entries: Iterable[TechnologyEntry]) -> dict[str, int]:
    """Return the numbers of the texts that three or more entries share: explanations of sources, reasons of ranges."""
    counted = Counter(text for entry in entries for text in (_explanation(entry), *entry.reasons))
    return {text: number for number, text in enumerate((text for text, count in counted.items() if count > 2), 1)}


def _explanation(entry: TechnologyEntry) -> str:
    """Return the part of a source that other prices may share: what stands behind its figure, or all of it."""
    figure, _, why = entry.source.partition(": ")
    return why or figure


def _sourced(entry: TechnologyEntry, notes: Mapping[str, int]) -> str:
    """Return a figure's source and the reasons of its ranges; a shared text is the number of its note."""
    why = _explanation(entry)
    source = f"{entry.source.removesuffix(why)}note {notes[why]}" if why in notes else entry.source
    told = [reason for reason in entry.reasons if reason not in notes]
    numbers = [str(notes[reason]) for reason in entry.reasons if reason in notes]
    if numbers:
        told.append(f"note{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}")
    return f"{source}." + (f" Ranges: {'; '.join(told)}." if told else "")


def _sizes(table: SramTable) -> list[int]:
    return sorted({size for row in table.points for size in row})


def _between(value: float, range_: Range) -> str:
    return f"{_figure(value * range_.low)} to {_figure(value * range_.high)}" if range_ != Range() else "–"


def _ranges(entry: TechnologyEntry) -> str:
    """Return the relative and the absolute range of a price, one if they are equal, nothing if there is none."""
    both = (entry.relative, entry.absolute)
    shown = dict.fromkeys(_between(entry.value, each) for each in both if both != (Range(), Range()))
    return "; ".join(shown)


def _figure(value: float) -> str:
    """Return a number with three digits, without an exponent."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-4 else f"{value:.7f}".rstrip("0")


if __name__ == "__main__":
    print(page(), end="")
