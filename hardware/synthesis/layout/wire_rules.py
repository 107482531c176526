"""Where a technology's cells and layers are described, and what a µm of its wires has.

A LEF file gives a layer's capacitance to what is below and above it; neighbours on the same layer couple beside that.
The factor for them is `COUPLING`: OpenROAD-flow-scripts states, from routed designs, 0.172 fF/µm for sky130's met1 and
0.136 fF/µm for met2 (flow/platforms/sky130hd/setRC.tcl), 2.03 and 1.75 times the technology LEF's.
"""

from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.gates.cells.sky130_cells import LIBRARY, sources
from tilewright.hardware.synthesis.layout.lef import CellOutline, LayerWire, LefError, cell_outlines, layer_wires
from tilewright.tools.debian import debian_data

__all__ = ["COUPLING", "COUPLING_RANGE", "WireRules", "lef_inputs", "read_lef"]

COUPLING = 1.9
"""Capacitance with neighbours against a LEF's: the mean of sky130's two lowest metals, taken for osu018 as well."""

COUPLING_RANGE = 1.0, 2.1
"""Nothing beside a wire, and a little more than met1 as OpenROAD has it."""

_LAYERS = {"osu018": ("metal3", "metal2"), "sky130": ("met1", "met2")}
"""The two lowest layers that are not the cells' own: across, and up."""

_LAYERS_FILE, _CELLS_FILE = "layers.lef", "cells.lef"


@dataclass(frozen=True, slots=True)
class WireRules:
    """A µm of wire across and one up, without neighbours; ``coupling`` is the factor for them."""

    across: LayerWire
    up: LayerWire
    coupling: float = COUPLING

    def capacitance(self, across: float, up: float) -> float:
        """Return pF of a wire of so many µm."""
        return self.coupling * (across * self.across.capacitance + up * self.up.capacitance)

    def resistance(self, across: float, up: float) -> float:
        """Return Ω of a wire of so many µm; vias are not in it."""
        return across * self.across.resistance + up * self.up.resistance


def lef_inputs(technology: str) -> dict[str, str | Path]:
    """Return a technology's LEF, as inputs of a step: ``layers.lef`` and ``cells.lef``.

    Raises
    ------
    ToolMissingError
        If the package they are in cannot be fetched.
    """
    if technology == "osu018":
        both = debian_data("osu018_stdcells.lef")
        return {_LAYERS_FILE: both, _CELLS_FILE: both}
    folder = sources() / LIBRARY
    cells = (path for path in sorted(folder.glob("cells/*/*.lef")) if not path.name.endswith(".magic.lef"))
    return {_LAYERS_FILE: folder / "tech" / f"{LIBRARY}__nom.tlef",
            _CELLS_FILE: "".join(path.read_text(encoding="utf-8") for path in cells)}


def read_lef(technology: str, folder: Path) -> tuple[dict[str, CellOutline], WireRules]:
    """Return the cells and the rules of a technology from its LEF in a folder.

    Raises
    ------
    LefError
        If a layer or a cell's size is missing.
    """
    layers = layer_wires((folder / _LAYERS_FILE).read_text(encoding="utf-8"))
    if missing := [name for name in _LAYERS[technology] if name not in layers]:
        raise LefError(f"LEF of {technology} must state capacitance and resistance of {' and '.join(missing)}")
    across, up = (layers[name] for name in _LAYERS[technology])
    return cell_outlines((folder / _CELLS_FILE).read_text(encoding="utf-8")), WireRules(across, up)
