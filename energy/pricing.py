"""The prices of a run: technology, main memory, and whether clocks are gated."""

from dataclasses import dataclass

from tilewright.energy.actions import CORE_COMPONENTS, Clock
from tilewright.energy.estimate import Technology
from tilewright.energy.technology_text import DRAM
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

__all__ = ["DEFAULT", "TECHNOLOGY", "Pricing"]

TECHNOLOGY = "generic45"

_CORES = tuple(CORE_COMPONENTS.values())
_GATED_ACTIONS = (*(f"{block}.register_toggle" for block in ENERGY_BLOCKS), *(f"{core}.instruction" for core in _CORES))
"""Actions that have another price with clock gates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """The choice of a run's prices.

    Attributes
    ----------
    technology : str
        A file of energy/technology, or the path of one like them, which ends in ``.toml``.
    dram : str
        The part that main memory is.
    gated : bool
        Whether clock gates stop the clock of registers that keep their values.
    clock_mhz : float or None
        The clock's frequency; None for the technology's.
    """

    technology: str = TECHNOLOGY
    dram: str = DRAM
    gated: bool = False
    clock_mhz: float | None = None

    def load(self, array: str | None = None) -> Technology:
        """Return the prices, of machines with a kind of array if it is given.

        Raises
        ------
        InputError
            If there is no such technology or part, or if clocks shall be gated and it does not say what that takes.
        """
        technology = Technology.load(self.technology, self.dram)
        if array is not None:
            technology = technology.of_array(array)
        return technology.with_gates(_GATED_ACTIONS) if self.gated else technology

    def clock(self, technology: Technology) -> Clock:
        """Return the clock of a run in ``technology``.

        Raises
        ------
        InputError
            If clocks shall be gated, and the technology does not say what that leaves running.
        """
        ungated = {part: technology.ungated(part) for part in (*ENERGY_BLOCKS, *_CORES)} if self.gated else None
        return Clock(self.clock_mhz or technology.clock_mhz, ungated)

    def describe(self, technology: Technology) -> str:
        """Return a description of the prices, for a report."""
        calibrated = "calibrated" if technology.calibrated else "not calibrated"
        return f"{technology.name}, {calibrated}{', clocks gated' if self.gated else ''}"


DEFAULT = Pricing()
