"""SkyWater's 130 nm with the cells that `energy.gates.cells` simulates; a layout's share by stated factors.

The factors are of one design of multipliers against the foundry's own library, which is in no package; see the figures
in docs/decisions.md, "Prices keep two uncertainties apart".
"""

from pathlib import Path

from tilewright.energy.calibrate.process import LayoutEffects, Process
from tilewright.energy.gates.cells.library import sky130_library
from tilewright.tools.progress import Steps

CELLS = 1.41
"""Foundry's library against cells without parasitics, logic on one netlist: 1.40 to 1.42 over three stimuli."""

CLOCK = 2.2 * 1.3
"""The same of a register's clock, 0.0461 against 0.0210 pJ; then a tree's wires and buffers."""

WIRE = 0.003
"""pF: 24 to 47 µm of the lowest metal, at 0.085 fF/µm (technology LEF), are 2 to 4 fF."""

HEAD = '''\
# Energy per action in SkyWater 130 nm, high density cells: for absolute figures. Gate level, before layout. Written by
# tilewright calibrate --tech sky130; docs/calibration-sky130.md says how, and with which errors.

name = "sky130"
node = "130 nm (SkyWater sky130_fd_sc_hd)"
voltage = "1.8 V"
corner = "typical, 25 C"
clock_mhz = 50.0
calibrated = true
use = "absolute"
summary = """SkyWater 130 nm, 1.8 V: blocks and core at gate level on real layers, wires of 3 fF a pin, parasitics by \\
stated factors, SRAM scaled from CACTI"""
'''

TAIL = '''\
[scaled.remainder]
effect = "energy of an idle block's clock with clock gates, of that without"
from = "osu018"
factor = 1.0
node = "130 nm, 1.8 V"
source = "a share, as measured there"
relative = [
    [0.7, 1.4, "another library"],
]
absolute = []

[scaled.gated_price]
effect = "price with clock gates of what happens, with the clock of registers that it enables, of the price without"
from = "osu018"
factor = 1.0
node = "130 nm, 1.8 V"
source = "a ratio, as measured there"
relative = [
    [0.8, 1.25, "another library"],
]
absolute = []

[sram]
table = "lstp90"

[sram.energy]
effect = "factor from the table's accesses, at 90 nm and 1.3 V"
scale = 3.02
node = "130 nm, 1.8 V"
kind = "scaled"
source = """CACTI 7 at 90 nm, energy ~ F^1.24 V^2: (130/90)^1.24 x (1.8/1.3)^2; the exponent is that of the \\
table's own 45 nm (1.1 V) and 90 nm (1.3 V)"""
relative = [
    [0.90, 1.10, "sizes and ports between the table's points"],
]
absolute = [
    [0.92, 1.10, "exponent 1 to 1.5; the latter is that between 65 and 90 nm"],
    [0.80, 1.65, "CACTI's other flavours, and Horowitz's table against it at 45 nm (10.1109/ISSCC.2014.6757323)"],
]

[sram.leakage]
effect = "factor from the table's leakage, at 90 nm"
scale = 1.0
node = "130 nm, 1.8 V"
kind = "assumed"
source = """as at 90 nm in the flavour of low standby power: an older node leaks less per transistor, a higher \\
voltage more"""
relative = []
absolute = [
    [0.05, 10.0, "leakage doubles every 10 to 15 degrees; node"],
]

[sram.area]
effect = "factor from the table's areas, at 90 nm"
scale = 2.09
node = "130 nm"
kind = "scaled"
source = "(130/90)^2; the table's own areas grow by 3.8 from 45 to 90 nm, nearly the square of 2"
relative = []
absolute = [
    [0.80, 6.10, """OpenRAM's macro of 1 KiB with a second port, sky130_sram_1kbyte_1rw1r_32x256_8, is 479.78 x \\
397.5 um (OpenLane's documentation), 6.1 times this"""],
]
'''

FIGURES = """\
Before layout: 25 °C, typical corner, clock {period} ns. The cells are simulated from the
foundry's transistor netlists (ngspice, `energy/gates/cells/`), which lack the layout's parasitics; so what logic
takes is
multiplied by 1.41 and a register's clock by 2.2, the ratios of the foundry's own library to such cells on one design.
Wires are 3 fF for each pin driven, simulated: each window runs without and with them. A clock tree is 1.3 times the
registers' own clock. All figures below have that in them. That library is in no package: the factors are measured
figures from outside this repo, everything else is made by the command."""


def _library(steps: Steps) -> Path:
    with steps.step("Characterising sky130's cells") as show:
        return sky130_library(lambda name, done, total: show(f"{name}, {done} of {total}"))


SKY130 = Process(
    name="sky130", node="130 nm, 1.8 V", library=_library, gates=False,
    layout=LayoutEffects(WIRE, CELLS, CLOCK), head=HEAD, tail=TAIL, page="calibration-sky130.md",
    layout_text="; parasitics of logic x 1.41, of clocks x 2.2, wires of 3 fF a pin, clock tree x 1.3",
    figures=FIGURES,
    toggle="one change of a register bit, with the logic behind it that changes with it, its wires and its glitches",
    cycle="clocking one register bit for one cycle, with its share of the clock tree",
    instruction="one instruction of the RISC-V core, without its fetch, its data access and the clock",
    toggle_doubts=[
        [0.89, 1.11, "wires of 2 to 4 fF a pin"],
        [0.87, 1.14, "delays and glitches: two delay models differ by 12 to 14 %"],
        [0.84, 1.0, "by the foundry's library against osu018 on an array of multipliers the array's is 0.55 pJ"]],
    cycle_doubts=[[0.77, 1.5, "clock tree: none to twice the registers' own"]])
