"""Energy of a run: actions times the price of each, with two ranges that come from the prices' stated uncertainties.

    energy = Σ over components Σ over actions count · price

The relative range holds between two designs in one technology, the absolute one for the figure itself; see
energy/prices.py. Between prices uncertainties are taken to be fully correlated: ranges are added, within a component
and over all of them.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.energy.prices import Price, Range, TechnologyEntry, TechnologyError, number, read_entry, scale_entry
from tilewright.energy.sram import Sram, read_sram
from tilewright.errors import nearest

FOLDER = Path(__file__).parent / "technology"
PICO_TO_MICRO = 1e-6
PICOJOULES_PER_NANOWATT_NANOSECOND = 1e-6
USES = ("ratios", "absolute", "tables")
"""Uses of a technology: comparing designs, figures by themselves, or published tables only."""
SHARED = ("sram", "dram")
"""Files of the folder that all technologies share."""
DRAM = "lpddr4"
"""The part of main memory unless another is named."""
HEAD = ("name", "node", "voltage", "corner", "clock_mhz", "calibrated", "use", "summary")
SECTIONS = ("price", "block", "leakage", "gating", "gated_price", "scaled", "sram")

__all__ = ["DRAM", "FOLDER", "USES", "Amount", "EnergyEstimate", "Technology", "TechnologyError", "dram_parts",
           "estimate", "sum_energies", "technologies"]


@dataclass(frozen=True, slots=True)
class Technology:
    """Prices of one process.

    Attributes
    ----------
    node, voltage, corner : str
        What the prices hold for, in words: node with flavour, supply, process corner and temperature.
    clock_mhz : float
        The clock at which leakage is charged, in megahertz.
    calibrated : bool
        Whether a netlist of ours was measured in this technology.
    use : str
        One of ``USES``.
    entries : Mapping[str, Entry]
        Prices by name: ``event`` for every block, ``block.event`` where a block has its own; picojoules.
    leakage : Mapping[str, Entry]
        Nanowatts per register with its share of the logic, ``""`` for every block, or by block.
    gating : Mapping[str, Entry]
        With clock gates, the share of an idle block's clock that stays; keys as leakage's.
    gated_prices : Mapping[str, Entry]
        With clock gates, the price of a toggle or an instruction over that without, as a factor: it carries what is
        clocked with it.
    dram : TechnologyEntry
        The part of main memory that was chosen; picojoules per byte.
    """

    name: str
    summary: str
    node: str
    voltage: str
    corner: str
    clock_mhz: float
    calibrated: bool
    use: str
    entries: Mapping[str, TechnologyEntry]
    leakage: Mapping[str, TechnologyEntry]
    gating: Mapping[str, TechnologyEntry]
    gated_prices: Mapping[str, TechnologyEntry]
    sram: Sram
    dram: TechnologyEntry

    @classmethod
    def load(cls, name: str, dram: str = DRAM) -> "Technology":
        """Read ``energy/technology/<name>.toml``, or the file ``name`` if it ends in ``.toml``, with ``dram``.

        Raises
        ------
        TechnologyError
            If there is no such file or part, or it lacks a number, its source, its node or its kind.
        """
        if name.endswith(".toml"):
            return cls.parse(_text_of(Path(name)), dram)
        if name not in technologies():
            raise TechnologyError(f"Technology must be one of {', '.join(technologies())}, or a file like those of "
                                  f"energy/technology, which ends in .toml, not {name!r}"
                                  f"{nearest(name, technologies())}")
        return cls.parse((FOLDER / f"{name}.toml").read_text(encoding="utf-8"), dram)

    @classmethod
    @cache
    def parse(cls, text: str, dram: str = DRAM) -> "Technology":
        """Read the text of such a file, once; raises as :meth:`load` does."""
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
        return cls(**head, entries=figures.prices, leakage=figures.leakage, gating=figures.gating,
                   gated_prices=figures.gated_prices, sram=read_sram(data["sram"]), dram=_dram(dram))

    def price(self, action: str) -> Price:
        """Return the price of ``action``; see energy/actions.py for their names.

        Raises
        ------
        TechnologyError
            If the technology has none: an unpriced action is an error, not a zero.
        """
        block, dot, event = action.partition(".")
        name, at, macro = event.partition("@")
        size, times, bits = macro.partition("x")
        if dot and not at:
            if entry := self.entries.get(action) or self.entries.get(event):
                return entry.price()
            if event == "leakage_ns":
                return _of_block(self.leakage, block).price(PICOJOULES_PER_NANOWATT_NANOSECOND)
            if event == "dram_byte":
                return self.dram.price()
        if dot and name in ("read", "write", "leakage_ns") and times and size.isdecimal() and bits.isdecimal():
            return self.sram.price(name, int(size), int(bits))
        raise TechnologyError(f"Technology {self.name} prices {', '.join(self.entries)}, leakage_ns, dram_byte, and "
                              f"read, write and leakage_ns @<bytes>x<bits>, not {action!r}")

    def ungated(self, block: str) -> float:
        """Return the share of a block's clock that stays with clock gates while nothing changes in it.

        Raises
        ------
        TechnologyError
            If the technology has no figures for clock gating.
        """
        self._require_gates()
        return _of_block(self.gating, block).value

    def with_gates(self, actions: Iterable[str]) -> "Technology":
        """Return the technology with the prices of ``actions``, ``block.event``, as they are with clock gates.

        Raises
        ------
        TechnologyError
            If the technology has no figures for clock gating.
        """
        self._require_gates()
        found = {}
        for action in actions:
            block, _, event = action.partition(".")
            plain = self.entries.get(action) or self.entries[event]
            gated = _of_block(self.gated_prices, block)
            found[action] = replace(plain, value=plain.value * gated.value, relative=gated.relative,
                                    own=plain.own.with_(gated.own))
        return replace(self, entries={**self.entries, **found})

    def _require_gates(self) -> None:
        if not self.gating or not self.gated_prices:
            raise TechnologyError(f"Technology {self.name} must have sections gating and gated_price to gate clocks "
                                  f"in it, and lacks them: it was not measured; leave clocks ungated")


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


def _dram(part: str) -> TechnologyEntry:
    parts = dram_parts()
    if part not in parts:
        raise TechnologyError(f"Main memory must be one of {', '.join(parts)}, not {part!r}")
    return parts[part]


def _text_of(path: Path) -> str:
    """Return the text of a user's technology file."""
    try:
        return path.read_text(encoding="utf-8")
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
            raise TechnologyError(f"Technology file must state its {key} in words, not {data[key]!r}")
    if not isinstance(data["calibrated"], bool):
        raise TechnologyError(f"Technology file must have true or false as calibrated, not {data['calibrated']!r}")
    if data["use"] not in USES:
        raise TechnologyError(f"Technology file must have one of {', '.join(USES)} as use, not {data['use']!r}")
    return {key: data[key] for key in HEAD} | {"clock_mhz": number("Clock of the technology in MHz", data["clock_mhz"])}


@dataclass(frozen=True, slots=True)
class _Figures:
    """Figures of a technology file: prices by action, the others by block, ``""`` for every block."""

    prices: dict[str, TechnologyEntry]
    leakage: dict[str, TechnologyEntry]
    gating: dict[str, TechnologyEntry]
    gated_prices: dict[str, TechnologyEntry]

    def of(self, event: str) -> dict[str, TechnologyEntry]:
        """Return the figures of which those of an event are a part."""
        return {"remainder": self.gating, "gated_price": self.gated_prices}.get(event, self.prices)


_KEYS = {"leakage": "per_register_nW", "gating": "remainder", "gated_price": "factor"}
"""Sections that have no price in picojoules, for every block or for one, and the key of their figure."""


def _sections(data: Mapping[str, Any]) -> _Figures:
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
    return _Figures(prices, others["leakage"], others["gating"], others["gated_price"])


def _scale(sections: Mapping[str, Any], figures: _Figures) -> None:
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


def _of_block(entries: Mapping[str, TechnologyEntry], block: str) -> TechnologyEntry:
    return entries.get(block) or entries[""]


@dataclass(frozen=True, slots=True)
class Amount:
    """Energy in microjoules: the estimate, and its two ranges; the absolute one includes the relative one."""

    uj: float = 0.0
    relative_low_uj: float = 0.0
    relative_high_uj: float = 0.0
    absolute_low_uj: float = 0.0
    absolute_high_uj: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.uj + other.uj,
                      self.relative_low_uj + other.relative_low_uj, self.relative_high_uj + other.relative_high_uj,
                      self.absolute_low_uj + other.absolute_low_uj, self.absolute_high_uj + other.absolute_high_uj)


@dataclass(frozen=True, slots=True)
class EnergyEstimate:
    """Energy of each component, and of all."""

    components: Mapping[str, Amount]

    @property
    def total(self) -> Amount:
        """Energy of all components, with both ranges."""
        return sum(self.components.values(), Amount())

    @property
    def total_uj(self) -> float:
        """The estimate in microjoules."""
        return self.total.uj

    @property
    def low_uj(self) -> float:
        """The low end of the absolute range in microjoules."""
        return self.total.absolute_low_uj

    @property
    def high_uj(self) -> float:
        """The high end of the absolute range in microjoules."""
        return self.total.absolute_high_uj

    @property
    def by_component(self) -> dict[str, float]:
        """The estimate of each component in microjoules."""
        return {name: each.uj for name, each in self.components.items()}


CERTAIN = Range()
"""The doubt about a count that is one."""


def estimate(actions: Mapping[str, int | float], technology: Technology,
             doubts: Mapping[str, Range] | None = None) -> EnergyEstimate:
    """Return the energy of ``actions`` (counts by name, as energy/actions.py makes them).

    ``doubts`` are by the same names how far a count may be off, where it is an estimate itself; they count as relative
    uncertainties.

    Raises
    ------
    TechnologyError
        If an action has no price.
    """
    components: dict[str, Amount] = {}
    for action, count in actions.items():
        price = technology.price(action)
        doubt = (doubts or {}).get(action, CERTAIN)
        relative, absolute = price.relative.with_(doubt), price.absolute.with_(doubt)
        energy = count * price.picojoules * PICO_TO_MICRO
        component = action.partition(".")[0]
        components[component] = components.get(component, Amount()) + Amount(
            energy, energy * relative.low, energy * relative.high, energy * absolute.low, energy * absolute.high)
    return EnergyEstimate(components)


def sum_energies(parts: Iterable[EnergyEstimate]) -> EnergyEstimate:
    """Return the energy of several runs or layers together."""
    components: dict[str, Amount] = {}
    for part in parts:
        for name, each in part.components.items():
            components[name] = components.get(name, Amount()) + each
    return EnergyEstimate(components)
