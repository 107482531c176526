"""Entries of a technology file: the cost of one action, where the figure comes from, and how far it may be off.

Two uncertainties are kept apart. The *relative* one does not cancel between two designs in the same technology: what
the calibration leaves unexplained, dependence on data. The *absolute* one is shared by all designs in it: wires, cell
library, node, published tables. Independent reasons combine in the log domain, low = exp(-√Σ ln² lowᵢ) and likewise
high; the absolute range includes the relative one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import InputError

__all__ = [
    "KINDS", "SCALED", "Price", "Range", "TechnologyEntry", "TechnologyError", "number", "read_entry", "scale_entry",
]

KINDS = {
    "measured": "simulated by us at gate or transistor level, before layout",
    "cacti": "CACTI's model",
    "table": "a published figure",
    "scaled": "a figure for another node or block, times a stated factor",
    "assumed": "judgement",
}
"""Where a figure can come from."""

_REQUIRED = ("node", "kind", "source", "effect", "relative", "absolute")
"""Keys that every entry must have beside its figure."""

SCALED = ("from", "factor", "node", "source", "effect", "relative", "absolute")
"""Keys of a section that takes another technology's prices of one event, times a factor."""


class TechnologyError(InputError):
    """A technology cannot be read, or has no price for an action."""


@dataclass(frozen=True, slots=True)
class Range:
    """Factors from an estimate to its low and its high bound."""

    low: float = 1.0
    high: float = 1.0

    def with_(self, other: "Range") -> "Range":
        """Return the range of two independent uncertainties together."""
        return Range(math.exp(-math.hypot(math.log(self.low), math.log(other.low))),
                     math.exp(math.hypot(math.log(self.high), math.log(other.high))))


@dataclass(frozen=True, slots=True)
class Price:
    """Energy of one action in picojoules; ``relative`` and ``absolute`` as in the file's first lines."""

    picojoules: float
    relative: Range
    absolute: Range


@dataclass(frozen=True, slots=True)
class TechnologyEntry:
    """One figure of a technology file with all that is said about it, in the unit of its key.

    Attributes
    ----------
    value : float
        In picojoules, or in ``unit``.
    own : Range
        The absolute uncertainty alone, without the relative one.
    reasons : tuple[str, ...]
        Meaning of each pair of factors, with the factors.
    """

    name: str
    value: float
    unit: str
    node: str
    kind: str
    source: str
    effect: str
    relative: Range
    own: Range
    reasons: tuple[str, ...] = ()

    @property
    def absolute(self) -> Range:
        """Both uncertainties together."""
        return self.relative.with_(self.own)

    def price(self, factor: float = 1.0) -> Price:
        """Return the price of ``factor`` times this figure, which must be in picojoules then."""
        return Price(self.value * factor, self.relative, self.absolute)


def read_entry(name: str, data: Mapping[str, Any], key: str = "pJ") -> TechnologyEntry:
    """Return the entry called ``name``, whose figure stands under ``key``.

    Raises
    ------
    TechnologyError
        If the figure, or anything that must be said about it, is missing or makes no sense.
    """
    if not isinstance(data, Mapping):
        raise TechnologyError(f"Entry {name} must be a table with {key}, {', '.join(_REQUIRED)}, not {data!r}")
    for each in (key, *_REQUIRED):
        if each not in data:
            raise TechnologyError(f"Entry {name} must have {key}, {', '.join(_REQUIRED)}, but {each} is missing")
    if unknown := sorted(set(data) - {key, *_REQUIRED}):
        raise TechnologyError(f"Entry {name} must have {key}, {', '.join(_REQUIRED)} and nothing else, "
                              f"not {', '.join(unknown)}")
    for each in ("node", "kind", "source", "effect"):
        if not isinstance(data[each], str) or not data[each].strip():
            raise TechnologyError(f"Entry {name} must state its {each} in words, not {data[each]!r}")
    if data["kind"] not in KINDS:
        raise TechnologyError(f"Kind of {name} must be one of {', '.join(KINDS)}, not {data['kind']!r}")
    # A fit that may not be negative can find that an action costs nothing.
    value = number(f"{key} of {name}", data[key], zero=data["kind"] == "measured")
    reasons = tuple(_sentence(name, which, each) for which in ("relative", "absolute")
                    for each in _factors(name, which, data[which]))
    return TechnologyEntry(name, value, key, data["node"], data["kind"], data["source"], data["effect"],
                           _range(name, "relative", data), _range(name, "absolute", data), reasons)


def scale_entry(name: str, entry: TechnologyEntry, data: Mapping[str, Any]) -> TechnologyEntry:
    """Return another technology's ``entry`` as the section ``data``, with the keys ``SCALED``, makes it ours.

    Its relative range goes on, as the blocks are the same; what is absolute in the other technology is not in ours.

    Raises
    ------
    TechnologyError
        If anything that the section must say is missing or makes no sense.
    """
    for each in SCALED:
        if each not in data:
            raise TechnologyError(f"Section {name} must have {', '.join(SCALED)}, but {each} is missing")
    if unknown := sorted(set(data) - set(SCALED)):
        raise TechnologyError(f"Section {name} must have {', '.join(SCALED)} and nothing else, "
                              f"not {', '.join(unknown)}")
    factor = number(f"factor of {name}", data["factor"])
    text = f"{entry.value:.4g} {entry.unit + ' ' if entry.unit == 'pJ' else ''}in {data['from']} x {factor:g}"
    ours = read_entry(name, {key: each for key, each in data.items() if key not in ("from", "factor")} | {
        entry.unit: entry.value * factor, "kind": "scaled", "source": f"{text}: {data['source']}"}, entry.unit)
    theirs = tuple(reason for reason in entry.reasons if reason.startswith("relative "))
    return replace(ours, name=entry.name, relative=ours.relative.with_(entry.relative),
                   reasons=(*theirs, *ours.reasons))


def number(name: str, value: Any, *, zero: bool = False) -> float:
    """Return ``value`` if it is a positive, finite number, or zero where that is allowed.

    Raises
    ------
    TechnologyError
        Otherwise.
    """
    sensible = isinstance(value, int | float) and not isinstance(value, bool)
    if not sensible or not (0 < value < math.inf or (zero and value == 0)):
        raise TechnologyError(f"{name} must be a {'number, not negative' if zero else 'positive number'} "
                              f"and finite, not {value!r}")
    return float(value)


def _factors(name: str, which: str, pairs: Any) -> list[Any]:
    if not isinstance(pairs, list):
        raise TechnologyError(f"Factors {which} of {name} must be a list of [low, high, reason], not {pairs!r}")
    for each in pairs:
        if (not isinstance(each, list) or len(each) != 3 or not isinstance(each[2], str) or not each[2].strip()
                or any(isinstance(factor, bool) or not isinstance(factor, int | float) for factor in each[:2])
                or not 0 < each[0] <= 1 <= each[1] < math.inf):
            raise TechnologyError(f"Factors {which} of {name} must be [at most 1, at least 1, reason], not {each!r}")
    return pairs


def _range(name: str, which: str, data: Mapping[str, Any]) -> Range:
    combined = Range()
    for low, high, _ in _factors(name, which, data[which]):
        combined = combined.with_(Range(low, high))
    return combined


def _sentence(name: str, which: str, factors: Any) -> str:
    low, high, reason = factors
    return f"{which} {low:g} to {high:g}: {reason}"
