"""Energy of a run: actions times the price of each, with a range that comes from the prices' stated uncertainties.

    energy = Σ over components Σ over actions count · price

Independent uncertainties of one price combine in the log domain, low = price · exp(-√Σ ln² lowᵢ) and likewise high.
Between prices they are taken to be fully correlated: ranges are added, within a component and over all of them.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "technology"
PICO_TO_MICRO = 1e-6
KINDS = ("measured", "cacti", "table", "assumed")


class TechnologyError(ValueError):
    """A technology cannot be read, or has no price for an action."""


@dataclass(frozen=True, slots=True)
class Price:
    """Energy of one action in picojoules, and the factors to its low and high bound."""

    picojoules: float
    low_factor: float
    high_factor: float


@dataclass(frozen=True, slots=True)
class Sram:
    """Prices of static RAM by size: the points of a table, for a port of ``port_bits``."""

    port_bits: int
    sizes: tuple[int, ...]
    read_picojoules: tuple[float, ...]
    write_picojoules: tuple[float, ...]
    width_exponent: float
    low_factor: float
    high_factor: float

    def price(self, event: str, size: int, bits: int) -> Price:
        """Return the price of an access: a power law between neighbouring sizes, and in the width of the port.

        Outside the table the nearest two sizes are extended.
        """
        table = self.read_picojoules if event == "read" else self.write_picojoules
        upper = next((i for i, each in enumerate(self.sizes) if each >= size), len(self.sizes) - 1)
        upper = max(1, upper)
        here, there = (math.log(self.sizes[upper - 1]), math.log(table[upper - 1])), (
            math.log(self.sizes[upper]), math.log(table[upper]))
        slope = (there[1] - here[1]) / (there[0] - here[0])
        energy = math.exp(here[1] + slope * (math.log(size) - here[0]))
        return Price(energy * (bits / self.port_bits) ** self.width_exponent, self.low_factor, self.high_factor)


@dataclass(frozen=True, slots=True)
class Technology:
    """Prices of one process; ``calibrated`` says whether a layout or silicon stands behind them."""

    name: str
    summary: str
    calibrated: bool
    prices: Mapping[str, Price]
    sram: Sram

    @classmethod
    def load(cls, name: str) -> "Technology":
        """Read ``sim/technology/<name>.toml``.

        Raises
        ------
        TechnologyError
            If there is no such file, or it lacks a number, its source, its node or its kind.
        """
        known = sorted(path.stem for path in FOLDER.glob("*.toml"))
        if name not in known:
            raise TechnologyError(f"Technology must be one of {', '.join(known)}, not {name!r}")
        return cls.parse((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str) -> "Technology":
        """Read the text of such a file; raises as :meth:`load` does."""
        try:
            data = tomllib.loads(text)
            prices = {event: Price(_positive(event, entry["pJ"]), *_factors(event, entry))
                      for event, entry in data["price"].items()}
            return cls(data["name"], data["summary"], data["calibrated"], prices, _sram(data["sram"]))
        except KeyError as error:
            raise TechnologyError(f"Technology file must have the key {error.args[0]!r} in every entry "
                                  f"that needs it") from error
        except (TypeError, AttributeError, tomllib.TOMLDecodeError) as error:
            raise TechnologyError(f"Technology file must have the form of generic45.toml: {error}") from error

    def price(self, action: str) -> Price:
        """Return the price of ``action``; see sim/actions.py for their names.

        Raises
        ------
        TechnologyError
            If the technology has none: an unpriced action is an error, not a zero.
        """
        _, dot, event = action.partition(".")
        name, at, macro = event.partition("@")
        size, times, bits = macro.partition("x")
        if dot and not at and event in self.prices:
            return self.prices[event]
        if dot and name in ("read", "write") and times and size.isdecimal() and bits.isdecimal():
            return self.sram.price(name, int(size), int(bits))
        raise TechnologyError(f"Technology {self.name} prices {', '.join(self.prices)}, and read and write "
                              f"@<bytes>x<bits>, not {action!r}")


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TechnologyError(f"Price of {name} must be a positive number, not {value!r}")
    return float(value)


def _factors(name: str, entry: Mapping[str, Any]) -> tuple[float, float]:
    """Return the combined low and high factor of an entry, once it says where its number comes from."""
    for key in ("source", "node"):
        if not entry[key]:
            raise TechnologyError(f"Price of {name} must state its {key}, not {entry[key]!r}")
    if entry["kind"] not in KINDS:
        raise TechnologyError(f"Kind of the price of {name} must be one of {', '.join(KINDS)}, not {entry['kind']!r}")
    low = high = 0.0
    for low_factor, high_factor, reason in entry["factors"]:
        if not 0 < low_factor <= 1 <= high_factor or not reason:
            raise TechnologyError(f"Factors of {name} must be [at most 1, at least 1, reason], "
                                  f"not {[low_factor, high_factor, reason]!r}")
        low += math.log(low_factor) ** 2
        high += math.log(high_factor) ** 2
    return math.exp(-math.sqrt(low)), math.exp(math.sqrt(high))


def _sram(entry: Mapping[str, Any]) -> Sram:
    sizes, reads, writes = (tuple(entry[key]) for key in ("bytes", "read_pJ", "write_pJ"))
    if not 2 <= len(sizes) == len(reads) == len(writes) or list(sizes) != sorted(set(sizes)):
        raise TechnologyError(f"Table sram must have two sizes or more, ascending, with a price each, not {sizes!r}")
    for each in (*sizes, *reads, *writes, entry["port_bits"]):
        _positive("sram", each)
    return Sram(entry["port_bits"], sizes, reads, writes, entry["width_exponent"], *_factors("sram", entry))


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy in microjoules: the estimate, its range, and the estimate of each component."""

    total_uj: float
    low_uj: float
    high_uj: float
    by_component: dict[str, float]


def estimate(actions: Mapping[str, int], technology: Technology) -> Energy:
    """Return the energy of ``actions`` (counts by name, as sim/actions.py makes them).

    Raises
    ------
    TechnologyError
        If an action has no price.
    """
    by_component: dict[str, float] = {}
    low = high = 0.0
    for action, count in actions.items():
        price = technology.price(action)
        energy = count * price.picojoules * PICO_TO_MICRO
        component = action.partition(".")[0]
        by_component[component] = by_component.get(component, 0.0) + energy
        low += energy * price.low_factor
        high += energy * price.high_factor
    return Energy(sum(by_component.values()), low, high, by_component)
