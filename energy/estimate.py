"""Energy of a run: actions times the price of each, with two ranges that come from the prices' stated uncertainties.

    energy = Σ over components Σ over actions count · price

The relative range holds between two designs in one technology, the absolute one for the figure itself; see
energy/prices.py. Between prices uncertainties are taken to be fully correlated: ranges are added, within a component
and over all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tilewright.energy.energies import Amount, EnergyEstimate
from tilewright.energy.prices import Price, Range, TechnologyEntry, TechnologyError
from tilewright.energy.sram import Sram
from tilewright.energy.technology_text import DRAM, FOLDER, dram_part, read_text, technologies, text_of
from tilewright.errors import nearest

PICO_TO_MICRO = 1e-6
PICOJOULES_PER_NANOWATT_NANOSECOND = 1e-6

__all__ = ["Technology", "estimate"]


@dataclass(frozen=True, slots=True)
class Technology:
    """Prices of one process.

    Attributes
    ----------
    node, voltage, corner : str
        Validity of the prices, as text: node with flavour, supply, process corner and temperature.
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
            return cls.parse(text_of(Path(name)), dram)
        if name not in technologies():
            raise TechnologyError(f"Technology must be one of {', '.join(technologies())}, or a file like those of "
                                  f"energy/technology, which ends in .toml, not {name!r}"
                                  f"{nearest(name, technologies())}")
        return cls.parse((FOLDER / f"{name}.toml").read_text(encoding="utf-8"), dram)

    @classmethod
    @cache
    def parse(cls, text: str, dram: str = DRAM) -> "Technology":
        """Read the text of such a file, once; raises as :meth:`load` does."""
        head, figures, memories = read_text(text)
        return cls(**head, entries=figures.prices, leakage=figures.leakage, gating=figures.gating,
                   gated_prices=figures.gated_prices, sram=memories, dram=dram_part(dram))

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

    def of_array(self, array: str) -> "Technology":
        """Return the prices of machines with a kind of array.

        Entries of ``BLOCK@ARRAY`` take the place of those of ``BLOCK``, which hold where there are none.
        """
        mark = f"@{array}"
        prices = {f"{block.removesuffix(mark)}.{event}": entry for name, entry in self.entries.items()
                  for block, dot, event in [name.partition(".")] if dot and block.endswith(mark)}
        return replace(self, entries={**self.entries, **prices}, leakage=_with(self.leakage, mark),
                       gating=_with(self.gating, mark), gated_prices=_with(self.gated_prices, mark))

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
                                  "in it, and lacks them: they were not measured; leave out --gated")


def _with(entries: Mapping[str, TechnologyEntry], mark: str) -> dict[str, TechnologyEntry]:
    """Return entries by block, those of blocks that end in ``mark`` in the place of those without it."""
    return {**entries, **{name.removesuffix(mark): each for name, each in entries.items() if name.endswith(mark)}}


def _of_block(entries: Mapping[str, TechnologyEntry], block: str) -> TechnologyEntry:
    return entries.get(block) or entries[""]


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
