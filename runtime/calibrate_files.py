"""Write what a calibration has found: the technology file, the table of errors, and both as JSON.

Prices are per register as elaborated, which is what `sim.registers` counts: a synthesiser merges some of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.runtime.calibrate import BlockResult, Calibration
from tilewright.runtime.calibrate_core import CoreResult
from tilewright.sim.gates.measure import Measurement
from tilewright.sim.registers import CORE_REGISTERS, registers_of

NODE = "180 nm, 1.8 V"
TOGGLE = "one change of a register bit, with the logic behind it that changes with it and its glitches; no wires"
REMAINDER = "energy of an idle block's clock with clock gates, of that without"
CYCLE = "clocking one register bit for one cycle: its clock pin and the net to it; no tree"

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

INSTRUCTION = "one instruction of the RISC-V core, without its fetch, its data access and the clock; no wires"

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

WIRES: list[Any] = [1.0, 1.6, "no wires: 2 to 8 fF for each pin driven, against 9 fF or more of the pins themselves"]
TREE: list[Any] = [1.0, 2.0, "no clock tree"]
DELAYS: list[Any] = [0.86, 1.14, "delays and glitches: two delay models differ by 12 to 14 %"]

Factors = list[list[Any]]


def technology_text(found: Mapping[str, Any]) -> str:
    """Return the technology file for figures as :func:`to_json` has them."""
    blocks = found["blocks"]
    cycles = {name: _cycle(block) for name, block in blocks.items()}
    toggles = {name: block["prices_pJ"]["register_toggle"] for name, block in blocks.items()}
    run = _run(found)
    parts = [HEAD, *_defaults(blocks, cycles, toggles, run), *_core(found["core"])]
    for name, block in blocks.items():
        ratios = [1 / (1 + error) for error in block["held_out"].values()]
        why = f"largest errors with a window left out, of {len(ratios)}"
        parts.append(_entry(f"block.{name}.register_cycle", "pJ", cycles[name], "measured", run, CYCLE,
                            [[0.98, 1.02, "registers that synthesis merges"]], [TREE]))
        parts.append(_entry(f"block.{name}.register_toggle", "pJ", toggles[name], "measured", run, TOGGLE,
                            [[min(1.0, *ratios), max(1.0, *ratios), why]], [WIRES, DELAYS]))
        if block["gated"]:
            parts.append(_gating(f"block.{name}.gating", [block], run))
    parts.append(SRAM)
    return "\n".join(parts)


def _defaults(blocks: Mapping[str, Any], cycles: Mapping[str, float], toggles: Mapping[str, float],
              run: str) -> list[str]:
    """Return the entries that hold for blocks without their own."""
    cycle = sum(cycles.values()) / len(cycles)
    low, high = min(toggles.values()), max(toggles.values())
    # The geometric mean lies as far from the lowest as from the highest.
    toggle = (low * high) ** 0.5
    leakage = (sum(block["leakage_nW"] for block in blocks.values())
               / sum(block["elaborated_registers"] for block in blocks.values()))
    parts = [
        _entry("price.register_cycle", "pJ", cycle, "scaled", f"mean of the blocks measured: {run}", CYCLE,
               [[min(cycles.values()) / cycle, max(cycles.values()) / cycle, "blocks differ by as much"]], [TREE]),
        _entry("price.register_toggle", "pJ", toggle, "scaled", f"between the blocks measured: {run}", TOGGLE,
               [[low / toggle, high / toggle, "blocks differ by as much"]], [WIRES, DELAYS]),
        _entry("leakage", "per_register_nW", leakage, "measured", run,
               "leakage of one register with its share of the logic", [[0.5, 2.0, "how much logic stands behind one"]],
               [[0.3, 10.0, "leakage doubles every 10 to 15 degrees; slow and fast corners"]]),
    ]
    gated = [block for block in blocks.values() if block["gated"]]
    return [*parts, _gating("gating", gated, run)] if gated else parts


def _core(core: Mapping[str, Any]) -> list[str]:
    """Return the entries of the RISC-V core."""
    windows = core["windows"].values()
    run = f"netlist of CV32E40X in osu018, {len(windows)} windows of programs; docs/calibration.md"
    cycle = sum(each["clock_pJ_per_cycle"] for each in windows) / len(windows) / core["elaborated_registers"]
    return [
        _entry("price.instruction", "pJ", core["prices_pJ"]["instruction"], "measured", run, INSTRUCTION,
               [[*instruction_range(core), f"programs differ: extremes of {len(windows)} windows, each held out"]],
               [WIRES, DELAYS]),
        _entry("block.riscv_core.register_cycle", "pJ", cycle, "measured", run, CYCLE,
               [[0.98, 1.02, "registers that synthesis merges"]], [TREE]),
    ]


def instruction_range(core: Mapping[str, Any]) -> tuple[float, float]:
    """Return factors from the price of an instruction to what it is in single windows, the least and the greatest.

    What the clock takes is known, so all of a window's error is the instructions': the factors are of what is left of
    its energy, measured over modelled with prices of the other windows.
    """
    factors = []
    for name, each in core["windows"].items():
        modelled = each["pJ_per_cycle"] * (1 + core["held_out"][name])
        factors.append((each["pJ_per_cycle"] - each["clock_pJ_per_cycle"]) / (modelled - each["clock_pJ_per_cycle"]))
    return min(1.0, *factors), max(1.0, *factors)


def _gating(section: str, blocks: Sequence[Mapping[str, Any]], run: str) -> str:
    shares = [block["idle_clock_gated_pJ_per_cycle"] / block["idle_clock_pJ_per_cycle"] for block in blocks]
    share = sum(shares) / len(shares)
    if section != "gating":
        return _entry(section, "remainder", share, "measured", run, REMAINDER, [], [])
    # For blocks that were not measured: anything between the extremes, and at most all that there is.
    low, high = min(*shares, share / 2), min(1.0, max(*shares, 2 * share))
    return _entry(section, "remainder", share, "scaled", f"mean of the blocks measured: {run}", REMAINDER,
                  [[low / share, high / share, f"blocks differ; {len(shares)} measured"]], [])


def _cycle(block: Mapping[str, Any]) -> float:
    """Return the clock's energy in pJ per register, as elaborated, and cycle."""
    clocks = [each["clock_pJ_per_cycle"] for each in block["measured"].values()]
    return sum(clocks) / len(clocks) / block["elaborated_registers"]


def _run(found: Mapping[str, Any]) -> str:
    return (f"netlists of machine {found['machine']} in osu018, {len(found['workloads'])} windows of layers; "
            f"docs/calibration.md")


def _entry(section: str, key: str, value: float, kind: str, source: str, effect: str, relative: Factors,
           absolute: Factors) -> str:
    lines = [f"[{section}]", f'effect = "{effect}"', f"{key} = {value:.4g}", f'node = "{NODE}"', f'kind = "{kind}"',
             f'source = "{source}"']
    for name, factors in (("relative", relative), ("absolute", absolute)):
        lines.append(f"{name} = [" + ("" if factors else "]"))
        lines += [f'    [{low:.3g}, {high:.3g}, "{reason}"],' for low, high, reason in factors]
        if factors:
            lines.append("]")
    return "\n".join([*lines, ""])


def to_json(calibration: Calibration) -> dict[str, Any]:
    """Return everything measured, and the errors, for a file."""
    registers = registers_of(calibration.machine)
    return {
        "technology": calibration.technology,
        "machine": calibration.machine.name,
        "rtl": calibration.rtl,
        "workloads": {each.name: {"model": each.model, "layer": each.layer, "where": each.where, "what": each.what}
                      for each in calibration.workloads},
        "blocks": {name: _block_json(block, registers[name]) for name, block in calibration.blocks.items()},
        "sum_of_blocks": {"held_out": dict(calibration.sum_errors)},
        "core": core_json(calibration.core),
    }


def core_json(core: CoreResult) -> dict[str, Any]:
    """Return the core's part of that."""
    one = next(iter(core.measured.values()))
    prices = core.prices
    return {
        "verilog": core.verilog, "prices_pJ": dict(prices.prices), "held_out": dict(prices.held_out),
        "rms": prices.rms, "largest": prices.largest,
        "another_price": {event: {"pJ": each.prices[event], "rms": each.rms, "largest": each.largest}
                          for event, each in (("data_access", core.with_accesses), ("stall", core.with_stalls))},
        "registers": one.registers, "elaborated_registers": CORE_REGISTERS["cv32e40x"], "cells": one.cells,
        "area_um2": one.area, "leakage_nW": one.leakage,
        "windows": {each.name: {
            "model": each.model, "layer": each.layer, "where": each.where, "what": each.what,
            "cycles": core.measured[each.name].cycles, "retired": core.counts[each.name].retired,
            "data_accesses": core.counts[each.name].accesses,
            "register_toggles": core.measured[each.name].register_toggles,
            "pJ_per_cycle": core.measured[each.name].energy / core.measured[each.name].cycles,
            "clock_pJ_per_cycle": core.measured[each.name].clock / core.measured[each.name].cycles,
        } for each in core.workloads}}


def _block_json(block: BlockResult, elaborated: int) -> dict[str, Any]:
    def rows(found: Mapping[str, Measurement]) -> dict[str, Any]:
        return {name: {"pJ_per_cycle": each.energy / each.cycles, "clock_pJ_per_cycle": each.clock / each.cycles,
                       "register_toggles_per_cycle": each.register_toggles / each.cycles,
                       "clocked_registers": each.register_cycles / each.cycles} for name, each in found.items()}

    one = next(iter(block.measured.values()))
    return {"prices_pJ": dict(block.prices.prices), "held_out": dict(block.prices.held_out),
            "rms": block.prices.rms, "largest": block.prices.largest, "registers": one.registers,
            "elaborated_registers": elaborated, "cells": one.cells,
            "area_um2": one.area, "leakage_nW": one.leakage, "idle_clock_pJ_per_cycle": block.idle,
            "idle_clock_gated_pJ_per_cycle": block.idle_gated, "measured": rows(block.measured),
            "gated": rows(block.gated)}
