"""The OSU standard cells for TSMC 180 nm: a package has the library, so all of it can be reproduced anywhere."""

from pathlib import Path

from tilewright.energy.calibrate.process import LayoutEffects, Process
from tilewright.tools.debian import debian_data
from tilewright.tools.progress import Steps

HEAD = '''\
# Energy per action in the OSU standard cells for TSMC 180 nm, from netlists of our own blocks: good for ratios between
# designs. Written by tilewright calibrate --tech osu018; docs/calibration.md says how, and with which errors.

name = "osu018"
node = "180 nm (OSU standard cells, TSMC)"
voltage = "1.8 V"
corner = "typical, 25 C"
clock_mhz = 50.0
calibrated = true
use = "ratios"
summary = "180 nm, 1.8 V, osu018: blocks at gate level with delays on real layers, no layout; SRAM scaled from CACTI"
'''

SRAM = '''\
[sram]
table = "lstp90"

[sram.energy]
effect = "factor from the table's accesses, at 90 nm and 1.3 V"
scale = 4.53
node = "180 nm, 1.8 V"
kind = "scaled"
source = "CACTI 7 at 90 nm, energy ~ F^1.24 V^2: (180/90)^1.24 x (1.8/1.3)^2"
relative = [
    [0.90, 1.10, "sizes and ports between the table's points"],
]
absolute = [
    [0.85, 1.20, "exponent 1 to 1.5"],
    [0.80, 1.65, "CACTI's other flavours, and Horowitz's table against it at 45 nm (10.1109/ISSCC.2014.6757323)"],
]

[sram.leakage]
effect = "factor from the table's leakage, at 90 nm"
scale = 1.0
node = "180 nm, 1.8 V"
kind = "assumed"
source = "as at 90 nm in the flavour of low standby power"
relative = []
absolute = [
    [0.03, 10.0, "leakage doubles every 10 to 15 degrees; node"],
]

[sram.area]
effect = "factor from the table's areas, at 90 nm"
scale = 4.0
node = "180 nm"
kind = "scaled"
source = "(180/90)^2"
relative = []
absolute = [
    [0.80, 6.10, "OpenRAM's macro in sky130 is 6.1 times the same law"],
]
'''

FIGURES = """\
Before layout: no wires, no clock tree, 25 °C, typical corner, clock {period} ns. Ratios
between designs hold; absolute energies of this library are not those of a commercial process of its node. The event
simulator toggles nets as Icarus Verilog does, and the power agrees with OpenSTA's within 15 % (its doubled internal
energy halved): `tests/energy/gates/test_events.py`."""


def _library(_: Steps) -> Path:
    return debian_data("osu018_stdcells.lib")


OSU018 = Process(
    name="osu018", node="180 nm, 1.8 V", library=_library, gates=True, layout=LayoutEffects(), head=HEAD, tail=SRAM,
    page="calibration.md", layout_text="", figures=FIGURES,
    toggle="one change of a register bit, with the logic behind it that changes with it and its glitches; no wires",
    cycle="clocking one register bit for one cycle: its clock pin and the net to it; no tree",
    instruction="one instruction of the RISC-V core, without its fetch, its data access and the clock; no wires",
    toggle_doubts=[
        [1.0, 1.6, "no wires: 2 to 8 fF for each pin driven, against 9 fF or more of the pins themselves"],
        [0.86, 1.14, "delays and glitches: two delay models differ by 12 to 14 %"]],
    cycle_doubts=[[1.0, 2.0, "no clock tree"]])
