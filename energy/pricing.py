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
    """Choice of the prices for a run.

    Attributes
    ----------
    technology : str
        A name from energy/technology, or the path of a file of the same form, which ends in ``.toml``.
    dram : str
        DRAM part of main memory.
    gated : bool
        Whether clock gates stop the clock of registers that keep their values.
    clock_mhz : float or None
        Clock frequency; None for that of the technology.
    """

    technology: str = TECHNOLOGY
    dram: str = DRAM
    gated: bool = False
    clock_mhz: float | None = None

    def load(self, array: str | None = None) -> Technology:
        """Return the prices; those for a kind of array if it is given.

        Raises
        ------
        InputError
            If the technology or part is unknown, or clocks are to be gated and the technology has no figures for that.
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
            If clocks are to be gated and the technology has no figures for that.
        """
        ungated = {part: technology.ungated(part) for part in (*ENERGY_BLOCKS, *_CORES)} if self.gated else None
        return Clock(self.clock_mhz or technology.clock_mhz, ungated)

    def describe(self, technology: Technology) -> str:
        """Return a description of the prices, for a report."""
        calibrated = "calibrated" if technology.calibrated else "not calibrated"
        return f"{technology.name}, {calibrated}{', clocks gated' if self.gated else ''}"


DEFAULT = Pricing()
