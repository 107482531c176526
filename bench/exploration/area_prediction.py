"""The predicted area of a machine, by resource and as one figure, for objectives and limits."""

from dataclasses import dataclass
from typing import Any

from tilewright.hardware.area_model.predicted_area import predict_area
from tilewright.hardware.synthesis.families.fpga_family import Fpga
from tilewright.hardware.synthesis.targets import target_named
from tilewright.isa.machine import Machine

__all__ = ["AREA_MEASURES", "AreaTarget"]

AREA_MEASURES = {
    "ecp5-25k": ("lut4", "mult18", "bram"), "ecp5-85k": ("lut4", "mult18", "bram"),
    "sky130": ("cells_mm2", "macros_mm2", "mm2"), "osu018": ("cells_mm2", "macros_mm2", "mm2"),
}
"""Resources that are predicted on each target for which anything is."""

_CAPACITIES = {"lut4": "LUT", "mult18": "DSP", "bram": "BRAM"}


@dataclass(frozen=True, slots=True)
class AreaTarget:
    """The FPGA, or the library of cells, that a machine's area is predicted for.

    Attributes
    ----------
    name : str
        A key of ``AREA_MEASURES``.
    """

    name: str

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what is predicted, ``area`` apart."""
        return AREA_MEASURES[self.name]

    @property
    def unit(self) -> str:
        """Unit of ``area``."""
        return "sum of the device's shares" if self._capacity() else "mm²"

    def predict(self, machine: Machine) -> dict[str, float]:
        """Return how much of each resource a machine takes, and ``area``, one figure of all.

        On an FPGA that is the sum of the device's shares of LUTs, multipliers and block RAMs, which becomes less if any
        of them does; in standard cells, mm² of cells and macros.
        """
        return self.measured(predict_area(machine, self.name).totals())

    def measured(self, total: dict[str, float]) -> dict[str, float]:
        """Return the same of a synthesis report's totals."""
        has = self._capacity()
        if has:
            found = {name: total[each] for name, each in _CAPACITIES.items()}
            return found | {"area": sum(found[name] / has[each] for name, each in _CAPACITIES.items())}
        cells, macros = total["area"] / 1e6, total.get("memory", 0.0) / 1e6
        return {"cells_mm2": cells, "macros_mm2": macros, "mm2": cells + macros, "area": cells + macros}

    def _capacity(self) -> dict[str, Any]:
        target = target_named(self.name)
        return dict(next(iter(target.capacity.values()))) if isinstance(target, Fpga) else {}
