"""Energy of a network on a core alone, in the same model and technology as that of a run with the coprocessor.

Every instruction is fetched from local memory, the core's registers are clocked in every cycle, and all of it leaks.
Data accesses are not charged, in the baseline's favour. The core with PULP's SIMD instructions has prices of its own.
"""

from typing import Protocol

from tilewright.energy.actions import core_actions
from tilewright.energy.energies import EnergyEstimate
from tilewright.energy.estimate import estimate
from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.isa.core_names import CoreName

__all__ = ["Ran", "energy_of_baseline"]


class Ran(Protocol):
    """A baseline's run: the core, its cycles and the instructions it retired."""

    @property
    def core(self) -> CoreName: ...
    @property
    def cycles(self) -> int: ...
    @property
    def instructions(self) -> int: ...


def energy_of_baseline(result: Ran, pricing: Pricing = DEFAULT) -> EnergyEstimate:
    """Return the energy of a baseline's run.

    Raises
    ------
    InputError
        If there is no such technology.
    """
    technology = pricing.load()
    actions = core_actions(result.cycles, result.instructions, pricing.clock(technology), core=result.core)
    return estimate(actions, technology)
