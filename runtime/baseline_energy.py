"""Energy of a network on a core alone, in the same model and technology as that of a run with the coprocessor.

Every instruction is fetched from local memory, the core's registers are clocked in every cycle, and all of it leaks.
Data accesses are not charged, in the baseline's favour. There is no price for PULP's SIMD instructions in any
technology: an instruction of that core is taken to cost ``XPULP_FACTOR`` times one of the host core.
"""

from tilewright.runtime.baseline import BaselineResult
from tilewright.runtime.pricing import DEFAULT, Pricing
from tilewright.sim.actions import core_actions
from tilewright.sim.energy import PICO_TO_MICRO, Amount, Energy, estimate
from tilewright.sim.prices import Range

INSTRUCTION = "riscv_core.instruction"

XPULP_FACTOR = 1.25
"""Energy of an instruction of CV32E40P over one of CV32E40X: an assumption."""

XPULP_RANGE = Range(0.8, 1.4)
"""From 1.0, as if the SIMD datapath cost nothing, to 1.75 times."""


def energy_of_baseline(result: BaselineResult, pricing: Pricing = DEFAULT) -> Energy:
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
    instructions = actions.pop(INSTRUCTION)
    price = technology.price(INSTRUCTION)
    energy = instructions * XPULP_FACTOR * price.picojoules * PICO_TO_MICRO
    relative, absolute = price.relative.with_(XPULP_RANGE), price.absolute.with_(XPULP_RANGE)
    own = Amount(energy, energy * relative.low, energy * relative.high, energy * absolute.low, energy * absolute.high)
    rest = estimate(actions, technology).components
    return Energy({name: each + own if name == "riscv_core" else each for name, each in rest.items()})
