"""The text of a technology file and of the list of DRAM parts: read, and rejected if it is invalid."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.energy.prices import TechnologyEntry, TechnologyError, number, read_entry, scale_entry
from tilewright.energy.sram import Sram, read_sram
from tilewright.tools.user_text import read_user_text

__all__ = ["DRAM", "FOLDER", "USES", "TechnologyFigures", "dram_part", "dram_parts", "parse_dram", "read_text",
           "technologies", "text_of"]

FOLDER = Path(__file__).parent / "technology"
USES = ("ratios", "absolute", "tables")
"""Uses of a technology: comparing designs, figures by themselves, or published tables only."""
SHARED = ("sram", "dram")
"""Files of the folder that all technologies share."""
DRAM = "lpddr4"
"""The part of main memory unless another is named."""
HEAD = ("name", "node", "voltage", "corner", "clock_mhz", "calibrated", "use", "summary")
SECTIONS = ("price", "block", "leakage", "gating", "gated_price", "scaled", "sram")


def technologies() -> tuple[str, ...]:
    """Return the names of all technologies."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem not in SHARED))


def dram_parts() -> Mapping[str, TechnologyEntry]:
    """Return the parts that can be main memory, by name, in picojoules per byte (``energy/technology/dram.toml``)."""
    return parse_dram((FOLDER / "dram.toml").read_text(encoding="utf-8"))


def parse_dram(text: str) -> Mapping[str, TechnologyEntry]:
    """Return the parts in the text of such a file.

    Raises
    ------
    TechnologyError
        If an entry lacks anything that it must have.
    """
    data = _toml("List of DRAM parts", text)
    if not isinstance(data.get("dram"), dict) or set(data) != {"dram"}:
        raise TechnologyError(f"List of DRAM parts must have entries [dram.PART] and nothing else, "
                              f"not {', '.join(data)}")
    return {name: read_entry(f"dram.{name}", each) for name, each in data["dram"].items()}


def dram_part(part: str) -> TechnologyEntry:
    """Return a part that can be main memory.

    Raises
    ------
    TechnologyError
        If there is no such part.
    """
    parts = dram_parts()
    if part not in parts:
        raise TechnologyError(f"Main memory must be one of {', '.join(parts)}, not {part!r}")
    return parts[part]


def text_of(path: Path) -> str:
    """Return the text of a user's technology file.

    Raises
    ------
    TechnologyError
        If it cannot be read.
    """
    try:
        return read_user_text(path)
    except OSError as error:
        raise TechnologyError(f"Technology file {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TechnologyError(f"Technology file {str(path)!r} must be text in UTF-8: {error.reason}") from error


def _toml(what: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TechnologyError(f"{what} must be TOML: {error}") from error


def _head(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands at the top of a technology file, once it makes sense."""
    for key in HEAD:
        if key not in data:
            raise TechnologyError(f"Technology file must have {', '.join(HEAD)}, but {key} is missing")
        if key not in ("clock_mhz", "calibrated") and (not isinstance(data[key], str) or not data[key].strip()):
            raise TechnologyError(f"Technology file must state its {key} as text, not {data[key]!r}")
    if not isinstance(data["calibrated"], bool):
        raise TechnologyError(f"Technology file must have true or false as calibrated, not {data['calibrated']!r}")
    if data["use"] not in USES:
        raise TechnologyError(f"Technology file must have one of {', '.join(USES)} as use, not {data['use']!r}")
    return {key: data[key] for key in HEAD} | {"clock_mhz": number("Clock of the technology in MHz", data["clock_mhz"])}


@dataclass(frozen=True, slots=True)
class TechnologyFigures:
    """Figures of a technology file: prices by action, the others by block, ``""`` for every block."""

    prices: dict[str, TechnologyEntry]
    leakage: dict[str, TechnologyEntry]
    gating: dict[str, TechnologyEntry]
    gated_prices: dict[str, TechnologyEntry]

    def of(self, event: str) -> dict[str, TechnologyEntry]:
        """Return the figures of which those of an event are a part."""
        return {"remainder": self.gating, "gated_price": self.gated_prices}.get(event, self.prices)


def read_text(text: str) -> tuple[dict[str, Any], TechnologyFigures, Sram]:
    """Return what stands at the top of a technology file by key, its figures, and its memories.

    Raises
    ------
    TechnologyError
        If it lacks a section, a number, its source, its node or its kind, or has more than it may.
    """
    data = _toml("Technology file", text)
    head = _head(data)
    for section in SECTIONS:
        if not isinstance(data.get(section, {}), dict):
            raise TechnologyError(f"Section {section} of technology {head['name']} must be a table, "
                                  f"not {data[section]!r}")
    for section in ("price", "leakage", "sram"):
        if section not in data:
            raise TechnologyError(f"Technology {head['name']} must have sections price, leakage and sram, "
                                  f"but {section} is missing")
    if unknown := sorted(set(data) - {*HEAD, *SECTIONS}):
        raise TechnologyError(f"Technology {head['name']} must have {', '.join((*HEAD, *SECTIONS))} and nothing "
                              f"else, not {', '.join(unknown)}")
    figures = _sections(data)
    _scale(data.get("scaled", {}), figures)
    return head, figures, read_sram(data["sram"])


_KEYS = {"leakage": "per_register_nW", "gating": "remainder", "gated_price": "factor"}
"""Sections that have no price in picojoules, for every block or for one, and the key of their figure."""


def _sections(data: Mapping[str, Any]) -> TechnologyFigures:
    """Return the figures of a technology file: those for every block, and those of single blocks."""
    prices = {event: read_entry(event, each) for event, each in data["price"].items()}
    others: dict[str, dict[str, TechnologyEntry]] = {
        section: {"": _share(read_entry(section, data[section], key))} if section in data else {}
        for section, key in _KEYS.items()}
    for block, events in data.get("block", {}).items():
        if not isinstance(events, dict):
            raise TechnologyError(f"Block {block} must have entries [block.{block}.EVENT], not {events!r}")
        for event, each in events.items():
            name = f"{block}.{event}"
            if event in _KEYS:
                others[event][block] = _share(read_entry(name, each, _KEYS[event]))
            else:
                prices[name] = read_entry(name, each)
    for section in ("gating", "gated_price"):
        if others[section] and "" not in others[section]:
            raise TechnologyError(f"Technology file must have a section {section} for every block if a block has its "
                                  f"own")
    return TechnologyFigures(prices, others["leakage"], others["gating"], others["gated_price"])


def _scale(sections: Mapping[str, Any], figures: TechnologyFigures) -> None:
    """Add to ``figures`` those that are another technology's, times a factor: of one event a section.

    What the file has itself stays. Clock gates' events are ``remainder`` and ``gated_price``.
    """
    for event, data in sections.items():
        name = f"scaled.{event}"
        if not isinstance(data, dict) or data.get("from") not in technologies():
            raise TechnologyError(f"Section {name} must name another technology under from, of "
                                  f"{', '.join(technologies())}, not {data!r}")
        text = _toml("Technology file", (FOLDER / f"{data['from']}.toml").read_text(encoding="utf-8"))
        if "scaled" in text:
            raise TechnologyError(f"Section {name} must be from a technology with figures of its own, not from "
                                  f"{data['from']!r}, which has others'")
        theirs = _sections(text)
        by_block = theirs.of(event) is not theirs.prices
        found = {key: _share(scale_entry(name, each, data)) for key, each in theirs.of(event).items()
                 if by_block or key.rpartition(".")[2] == event}
        if not found:
            raise TechnologyError(f"Section {name} must be of something that {data['from']} has, of remainder, "
                                  f"gated_price or {', '.join(theirs.prices)}")
        ours = figures.of(event)
        ours |= {key: each for key, each in found.items() if key not in ours}


def _share(entry: TechnologyEntry) -> TechnologyEntry:
    """Return an entry if it is no share, or one of at most 1."""
    if entry.unit == "remainder" and entry.value > 1:
        raise TechnologyError(f"Entry remainder of {entry.name} must be a share from 0 to 1, not {entry.value!r}")
    return entry
