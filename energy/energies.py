"""Energies of runs and layers: the estimate of each component with its two ranges, and their sums."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Amount", "EnergyEstimate", "sum_energies"]


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


def sum_energies(parts: Iterable[EnergyEstimate]) -> EnergyEstimate:
    """Return the energy of several runs or layers together."""
    components: dict[str, Amount] = {}
    for part in parts:
        for name, each in part.components.items():
            components[name] = components.get(name, Amount()) + each
    return EnergyEstimate(components)
