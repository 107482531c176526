"""Write what a calibration has found: the technology file, the table of errors, and both as JSON.

Prices are per register as elaborated, which is what `energy.registers` counts: a synthesiser merges some of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.energy.actions import CORE_COMPONENTS
from tilewright.energy.calibrate.calibration import PROCESSES, BlockResult, PriceCalibration
from tilewright.energy.calibrate.clock_gates import Gated
from tilewright.energy.calibrate.cores import CoreResult
from tilewright.energy.calibrate.process import Factors, Process
from tilewright.energy.gates.measure import Measurement
from tilewright.energy.registers import CORE_REGISTERS, registers_of
from tilewright.isa.cores import HOST_CORE, CoreName

REMAINDER = "energy of an idle block's clock with clock gates, of that without"
GATED = "price with clock gates of {event}, with the clock of the registers that it enables, of the price without"
EVENTS = {"register_toggle": "a toggle", "instruction": "an instruction"}


MERGED: Factors = [[0.98, 1.02, "registers that synthesis merges"]]
LEAKAGE: Factors = [[0.3, 10.0, "leakage doubles every 10 to 15 degrees; slow and fast corners"]]


def technology_text(found: Mapping[str, Any]) -> str:
    """Return the technology file for figures as :func:`to_json` has them."""
    process = PROCESSES[found["technology"]]
    entry = _Entries(process, f"netlists of machine {found['machine']} in {process.name}, {len(found['workloads'])} "
                              f"windows of layers{process.layout_text}; docs/{process.page}")
    parts = [process.head, *_defaults(found["blocks"], entry)]
    for name, core in found["cores"].items():
        parts += _core(name, core, process)
    for name, block in found["blocks"].items():
        ratios = [1 / (1 + error) for error in block["held_out"].values()]
        why = f"largest errors with a window left out, of {len(ratios)}"
        parts.append(entry.cycle(f"block.{name}", _cycle(block), MERGED))
        parts.append(entry.toggle(f"block.{name}", block["prices_pJ"]["register_toggle"],
                                  [[min(1.0, *ratios), max(1.0, *ratios), why]]))
        if block["gated"]:
            parts += entry.gating(f"block.{name}.", [block])
    parts.append(process.tail)
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Writes entries of a process, whose source is ``run``."""

    process: Process
    run: str

    def cycle(self, section: str, value: float, relative: Factors, before: str = "") -> str:
        """Return the entry of a register's clock; ``before`` its source: of which blocks it is a mean."""
        return self._entry(f"{section}.register_cycle", "pJ", value, before, self.process.cycle, relative,
                           self.process.cycle_doubts)

    def toggle(self, section: str, value: float, relative: Factors, before: str = "") -> str:
        """Return the entry of a register's toggles; ``before`` as above."""
        return self._entry(f"{section}.register_toggle", "pJ", value, before, self.process.toggle, relative,
                           self.process.toggle_doubts)

    def instruction(self, section: str, value: float, relative: Factors) -> str:
        """Return the entry of an instruction of a core."""
        return self._entry(f"{section}.instruction", "pJ", value, "", self.process.instruction, relative,
                           self.process.toggle_doubts)

    def leakage(self, value: float) -> str:
        """Return the entry of leakage."""
        return self._entry("leakage", "per_register_nW", value, "",
                           "leakage of one register with its share of the logic",
                           [[0.5, 2.0, "how much logic stands behind one"]], LEAKAGE)

    def gating(self, prefix: str, blocks: Sequence[Mapping[str, Any]], event: str = "register_toggle") -> list[str]:
        """Return the entries of what clock gates leave and of ``event`` with them, in the mean over ``blocks``."""
        shares = [block["idle_clock_gated_pJ_per_cycle"] / block["idle_clock_pJ_per_cycle"] for block in blocks]
        factors = [block["gated_price"]["pJ"] / block["prices_pJ"][event] for block in blocks]
        share, factor = sum(shares) / len(shares), sum(factors) / len(factors)
        effect = GATED.format(event=EVENTS[event])
        if prefix:
            ratios = [1 / (1 + error) for error in blocks[0]["gated_price"]["held_out"].values()]
            why = f"largest errors with a window left out, of {len(ratios)}"
            return [self._entry(f"{prefix}gating", "remainder", share, "", REMAINDER, [], []),
                    self._entry(f"{prefix}gated_price", "factor", factor, "", effect,
                                [[min(1.0, *ratios), max(1.0, *ratios), why]], [])]
        # For blocks that were not measured: anything between the extremes, and at most all that there is.
        low, high = min(*shares, share / 2), min(1.0, max(*shares, 2 * share))
        why, mean = f"blocks differ; {len(shares)} measured", "mean of the blocks measured: "
        return [self._entry("gating", "remainder", share, mean, REMAINDER, [[low / share, high / share, why]], []),
                self._entry("gated_price", "factor", factor, mean, effect,
                            [[min(factors) / factor, max(factors) / factor, why]], [])]

    def _entry(self, section: str, key: str, value: float, before: str, effect: str, relative: Factors,
               absolute: Factors) -> str:
        lines = [f"[{section}]", f'effect = "{effect}"', f"{key} = {value:.4g}", f'node = "{self.process.node}"',
                 f'kind = "{"scaled" if before else "measured"}"', f'source = "{before}{self.run}"']
        for name, factors in (("relative", relative), ("absolute", absolute)):
            lines.append(f"{name} = [" + ("" if factors else "]"))
            lines += [f'    [{low:.3g}, {high:.3g}, "{reason}"],' for low, high, reason in factors]
            if factors:
                lines.append("]")
        return "\n".join([*lines, ""])


def _defaults(blocks: Mapping[str, Any], entry: _Entries) -> list[str]:
    """Return the entries that hold for blocks without their own."""
    cycles = [_cycle(block) for block in blocks.values()]
    toggles = [block["prices_pJ"]["register_toggle"] for block in blocks.values()]
    cycle = sum(cycles) / len(cycles)
    # The geometric mean lies as far from the lowest as from the highest.
    toggle = (min(toggles) * max(toggles)) ** 0.5
    differ = "blocks differ by as much"
    parts = [
        entry.cycle("price", cycle, [[min(cycles) / cycle, max(cycles) / cycle, differ]],
                    "mean of the blocks measured: "),
        entry.toggle("price", toggle, [[min(toggles) / toggle, max(toggles) / toggle, differ]],
                     "between the blocks measured: "),
        entry.leakage(sum(block["leakage_nW"] for block in blocks.values())
                      / sum(block["elaborated_registers"] for block in blocks.values())),
    ]
    gated = [block for block in blocks.values() if block["gated"]]
    return [*parts, *entry.gating("", gated)] if gated else parts


def _core(name: CoreName, core: Mapping[str, Any], process: Process) -> list[str]:
    """Return the entries of a RISC-V core; the instructions of CV32E40X are those of every core without its own."""
    windows = core["windows"].values()
    entry = _Entries(process, f"netlist of {name.upper()} in {process.name}, {len(windows)} windows of programs"
                              f"{process.layout_text}; docs/{process.page}")
    cycle = sum(each["clock_pJ_per_cycle"] for each in windows) / len(windows) / core["elaborated_registers"]
    why = f"programs differ: extremes of {len(windows)} windows, each held out"
    section = "price" if name == HOST_CORE else f"block.{CORE_COMPONENTS[name]}"
    return [entry.instruction(section, core["prices_pJ"]["instruction"], [[*instruction_range(core), why]]),
            entry.cycle(f"block.{CORE_COMPONENTS[name]}", cycle, MERGED),
            *(entry.gating(f"block.{CORE_COMPONENTS[name]}.", [core], "instruction") if core["gated"] else [])]


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


def _cycle(block: Mapping[str, Any]) -> float:
    """Return the clock's energy in pJ per register, as elaborated, and cycle."""
    clocks = [each["clock_pJ_per_cycle"] for each in block["measured"].values()]
    return sum(clocks) / len(clocks) / block["elaborated_registers"]


def to_json(calibration: PriceCalibration) -> dict[str, Any]:
    """Return everything measured, and the errors, for a file."""
    registers = registers_of(calibration.machine)
    return {
        "technology": calibration.technology,
        "machine": calibration.machine.name,
        "rtl": calibration.rtl,
        "workloads": {each.name: {"model": each.model, "layer": each.layer, "where": each.where, "what": each.what}
                      for each in calibration.workloads},
        "blocks": {name: _block_json(block, registers[name]) for name, block in calibration.blocks.items()},
        "sum_of_blocks": {"held_out": dict(calibration.sum_errors),
                          "held_out_gated": dict(calibration.sum_errors_gated)},
        "cores": {name: core_json(core) for name, core in calibration.cores.items()},
    }


def core_json(core: CoreResult) -> dict[str, Any]:
    """Return a core's part of that."""
    one = next(iter(core.measured.values()))
    prices = core.prices
    clocks = [each.clock / each.cycles for each in core.measured.values()]
    return {
        "verilog": core.verilog, "prices_pJ": dict(prices.prices), "held_out": dict(prices.held_out),
        "rms": prices.rms, "largest": prices.largest,
        "another_price": {event: {"pJ": each.prices[event], "rms": each.rms, "largest": each.largest}
                          for event, each in (("data_access", core.with_accesses), ("stall", core.with_stalls))},
        "registers": one.registers, "elaborated_registers": CORE_REGISTERS[core.core], "cells": one.cells,
        "area_um2": one.area, "leakage_nW": one.leakage,
        "idle_clock_pJ_per_cycle": sum(clocks) / len(clocks), **_gates_json(core.gated, "instruction"),
        "windows": {each.name: {
            "model": each.model, "layer": each.layer, "where": each.where, "what": each.what,
            "cycles": core.measured[each.name].cycles, "retired": core.counts[each.name].retired,
            "data_accesses": core.counts[each.name].accesses,
            "register_toggles": core.measured[each.name].register_toggles,
            "pJ_per_cycle": core.measured[each.name].energy / core.measured[each.name].cycles,
            "clock_pJ_per_cycle": core.measured[each.name].clock / core.measured[each.name].cycles,
        } for each in core.workloads}}


def _block_json(block: BlockResult, elaborated: int) -> dict[str, Any]:
    one = next(iter(block.measured.values()))
    return {"prices_pJ": dict(block.prices.prices), "held_out": dict(block.prices.held_out),
            "rms": block.prices.rms, "largest": block.prices.largest, "registers": one.registers,
            "elaborated_registers": elaborated, "cells": one.cells,
            "area_um2": one.area, "leakage_nW": one.leakage, "idle_clock_pJ_per_cycle": block.idle,
            **_gates_json(block.gated, "register_toggle"), "measured": _rows(block.measured)}


def _gates_json(gates: Gated | None, event: str) -> dict[str, Any]:
    """Return the part with clock gates; empty and None where there are none."""
    if gates is None:
        return {"idle_clock_gated_pJ_per_cycle": None, "gated_area_um2": None, "gated": {}, "gated_price": None}
    return {"idle_clock_gated_pJ_per_cycle": gates.idle,
            "gated_area_um2": next(iter(gates.measured.values())).area, "gated": _rows(gates.measured),
            "gated_price": {"pJ": gates.prices.prices[event], "held_out": dict(gates.prices.held_out),
                            "rms": gates.prices.rms, "largest": gates.prices.largest}}


def _rows(found: Mapping[str, Measurement]) -> dict[str, Any]:
    return {name: {"pJ_per_cycle": each.energy / each.cycles, "clock_pJ_per_cycle": each.clock / each.cycles,
                   "register_toggles_per_cycle": each.register_toggles / each.cycles,
                   "clocked_registers": each.register_cycles / each.cycles} for name, each in found.items()}
