"""The processes that can be calibrated: OSU's cells for TSMC 180 nm, and SkyWater's 130 nm.

A package has the former's library, so all of it can be reproduced anywhere. The latter's cells are those that
`hardware.gates.cells` simulates, a layout's share by stated factors: of one design of multipliers against the foundry's
own library, which is in no package; docs/decisions/energy.md, "sky130's cells are simulated …", has the figures.
"""

from pathlib import Path

from tilewright.hardware.calibration.process import Doubt, LayoutEffects, PricedEvent, Process
from tilewright.hardware.gates.cells.library import sky130_library
from tilewright.tools.debian import debian_data
from tilewright.tools.progress import Steps

__all__ = ["PROCESSES"]

_CELLS = 1.41
"""Foundry's library against cells without parasitics, logic on one netlist: 1.40 to 1.42 over three stimuli."""

_CLOCK = 2.2 * 1.3
"""The same of a register's clock, 0.0461 against 0.0210 pJ; then a tree's wires and buffers."""

_WIRE = 0.003
"""pF: 24 to 47 µm of the lowest metal, at 0.085 fF/µm (technology LEF), are 2 to 4 fF."""

_DELAYS = "delays and glitches: two delay models differ by 12 to 14 %"


def _osu018_library(_: Steps) -> Path:
    return debian_data("osu018_stdcells.lib")


def _sky130_library(steps: Steps) -> Path:
    with steps.step("Characterising sky130's cells") as show:
        return sky130_library(lambda name, done, total: show(f"{name}, {done} of {total}"))


_OSU018_LOGIC = (
    Doubt(1.0, 1.6, "no wires: 2 to 8 fF for each pin driven, against 9 fF or more of the pins themselves; "
           "a lane placed: 8.7"),
    Doubt(0.86, 1.14, _DELAYS))

_SKY130_LOGIC = (
    Doubt(0.89, 1.11, "wires of 2 to 4 fF a pin; a lane placed: 2.3"),
    Doubt(0.87, 1.14, _DELAYS),
    Doubt(0.84, 1.0, "by the foundry's library against osu018 on an array of multipliers the array's is 0.55 pJ"))

_OSU018 = Process(
    name="osu018", node="180 nm, 1.8 V", library=_osu018_library, gates=True, layout=LayoutEffects(), layout_text="",
    page="calibration.md",
    events={
        "register_cycle": PricedEvent("clocking one register bit for one cycle: its clock pin and the net to it; no "
                                      "tree", (Doubt(1.0, 2.0, "no clock tree"),)),
        "register_toggle": PricedEvent("one change of a register bit, with the logic behind it that changes with it "
                                       "and its glitches; no wires", _OSU018_LOGIC),
        "instruction": PricedEvent("one instruction of the RISC-V core, without its fetch, its data access and the "
                                   "clock; no wires", _OSU018_LOGIC)})

_SKY130 = Process(
    name="sky130", node="130 nm, 1.8 V", library=_sky130_library, gates=False,
    layout=LayoutEffects(_WIRE, _CELLS, _CLOCK),
    layout_text="; parasitics of logic x 1.41, of clocks x 2.2, wires of 3 fF a pin, clock tree x 1.3",
    page="calibration-sky130.md",
    events={
        "register_cycle": PricedEvent("clocking one register bit for one cycle, with its share of the clock tree",
                                      (Doubt(0.77, 1.5, "clock tree: none to twice the registers' own"),)),
        "register_toggle": PricedEvent("one change of a register bit, with the logic behind it that changes with it, "
                                       "its wires and its glitches", _SKY130_LOGIC),
        "instruction": PricedEvent("one instruction of the RISC-V core, without its fetch, its data access and the "
                                   "clock", _SKY130_LOGIC)})

PROCESSES = {each.name: each for each in (_OSU018, _SKY130)}
"""By name; the prose of each stands in its templates beside this file."""
