"""Energy of a network on a core alone, in the same model and technology as that of a run with the coprocessor.

Every instruction is fetched from local memory, the core's registers are clocked in every cycle, and all of it leaks.
Data accesses are not charged, in the baseline's favour. There is no price for PULP's SIMD instructions in any
technology: an instruction of that core is taken to cost ``XPULP_FACTOR`` times one of the host core.
"""

from typing import Protocol

from tilewright.runtime.pricing import DEFAULT, Pricing
from tilewright.sim.actions import core_actions
from tilewright.sim.energy import Energy, estimate
from tilewright.sim.prices import Range
from tilewright.sim.verilator import CoreName

INSTRUCTION = "riscv_core.instruction"

XPULP_FACTOR = 1.25
"""Energy of an instruction of CV32E40P over one of CV32E40X: an assumption."""

XPULP_RANGE = Range(0.8, 1.4)
"""From 1.0, as if the SIMD datapath cost nothing, to 1.75 times."""


class Ran(Protocol):
    """What is known of a baseline's run: the core, its cycles and the instructions it retired."""

    @property
    def core(self) -> CoreName: ...
    @property
    def cycles(self) -> int: ...
    @property
    def instructions(self) -> int: ...


def energy_of_baseline(result: Ran, pricing: Pricing = DEFAULT) -> Energy:
    """Return the energy of a baseline's run.

    Raises
    ------
    InputError
        If there is no such technology.
    """
    technology = pricing.load()
    actions = core_actions(result.cycles, result.instructions, pricing.clock(technology), core=result.core)
    if result.core == "cv32e40x":
        return estimate(actions, technology)
    return estimate(actions | {INSTRUCTION: XPULP_FACTOR * result.instructions}, technology,
                    {INSTRUCTION: XPULP_RANGE})
