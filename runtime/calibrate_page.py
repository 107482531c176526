"""docs/calibration.md from the figures of a calibration: tables of prices, errors, clock gating and workloads."""

from collections.abc import Mapping
from typing import Any

from tilewright.runtime.calibrate_core_page import core_section
from tilewright.runtime.calibrate_tables import percent, table

TEXT = """\
# Calibration at gate level: {technology}

Written by `tilewright calibrate --tech {technology}` (`make calibrate`); figures as JSON are beside it when it runs.

**How.** Each block of machine `{machine}` is mapped by Yosys to the library's cells, memories cut out. {count} windows
of {cycles} cycles out of real layers run in RTL; what happened at a block's borders drives its netlist in an event
simulation with load-dependent delays (`sim/gates/events.cpp`), and every output bit is compared with the RTL's in every
cycle. Toggles times the library's energies give the block's energy (`sim/gates/power.py`). Two prices explain it:

    energy = register_cycle · clocked register-cycles + register_toggle · register-bit toggles

The first is the clock's energy itself; the second is fitted, non-negative, relative errors least. *Held out* is the
error of a window with prices fitted to all others.

**What the figures are.** Before layout: no wires, no clock tree, 25 °C, typical corner, clock {period} ns. Ratios
between designs hold; absolute energies of this library are not those of a commercial process of its node. The event
simulator toggles nets as Icarus Verilog does, and the power agrees with OpenSTA's within 15 % (its doubled internal
energy halved): `tests/sim/test_gates_events.py`.

## Prices and errors

{prices}

{sums}

Measured on the Verilog whose SHA-256 begins with `{rtl}`. Prices are per register and toggle: registers that the RTL
has been given since are counted by `sim/registers.toml`, and need no new calibration unless the logic between registers
changes in kind. Prices of blocks that are not in the table are means of those that are, and marked `scaled`.

## Error by window, held out

{errors}

{core}
## Clock gating

Registers that share an enable and have no reset, {least} or more, behind a latch and an AND. *Saved* is of the block's
whole energy over the same windows; *idle* is the clock's energy in a cycle in which the block has nothing to do; *left*
is what of that stays with gates. With gates each netlist still gave every bit of the RTL.

{gating}

{verdict}

## Windows

{workloads}
"""


def page(found: Mapping[str, Any]) -> str:
    """Return the page for figures as `calibrate_files.to_json` has them."""
    from tilewright.runtime.calibrate_workloads import CYCLES
    from tilewright.sim.gates.events import PERIOD
    from tilewright.sim.gates.mapping import GATED_REGISTERS

    blocks = found["blocks"]
    return TEXT.format(
        technology=found["technology"], rtl=found["rtl"], machine=found["machine"], count=len(found["workloads"]),
        cycles=CYCLES, period=f"{PERIOD:g}", least=GATED_REGISTERS, prices=_prices(blocks), sums=_sums(found),
        errors=_errors(found), core=core_section(found["core"]),
        gating=_gating(blocks), verdict=_verdict(blocks), workloads=_workloads(found["workloads"]))


def _prices(blocks: Mapping[str, Any]) -> str:
    rows = []
    for name, block in blocks.items():
        energies = [each["pJ_per_cycle"] for each in block["measured"].values()]
        clocks = [each["clock_pJ_per_cycle"] for each in block["measured"].values()]
        rows.append((name, f"{block['cells']:,}", f"{block['registers']:,}", f"{block['area_um2'] / 1e6:.2f}",
                     f"{block['prices_pJ']['register_cycle']:.3f}", f"{block['prices_pJ']['register_toggle']:.2f}",
                     f"{min(energies):,.0f} to {max(energies):,.0f}", percent(sum(clocks) / sum(energies)),
                     percent(block["rms"], 1), percent(block["largest"], 1)))
    return table(("block", "cells", "registers", "mm²", "pJ per register and cycle", "pJ per toggle", "pJ per cycle",
                   "of it clock", "error held out, rms", "largest"), rows)


def _sums(found: Mapping[str, Any]) -> str:
    errors = list(found["sum_of_blocks"]["held_out"].values())
    rms = (sum(error**2 for error in errors) / len(errors)) ** 0.5
    whole = [name for name, block in found["blocks"].items() if len(block["measured"]) == len(errors)]
    return (f"The blocks that were measured on every window ({', '.join(whole)}) together, each window held out: "
            f"{percent(rms, 1)} rms, at most {percent(max(map(abs, errors)), 1)} over {len(errors)} windows.")


def _errors(found: Mapping[str, Any]) -> str:
    blocks = found["blocks"]
    rows = [(name, *(_error(block, name) for block in blocks.values()),
             f"{100 * found['sum_of_blocks']['held_out'][name]:+.1f}") for name in found["workloads"]]
    return table(("window, error in %", *blocks, "all"), rows)


def _error(block: Mapping[str, Any], window: str) -> str:
    return f"{100 * block['held_out'][window]:+.1f}" if window in block["held_out"] else "–"


def _gating(blocks: Mapping[str, Any]) -> str:
    rows = []
    for name, block in blocks.items():
        if not block["gated"]:
            continue
        before, after, saved = _saved(block)
        clocked = sum(each["clocked_registers"] for each in block["gated"].values())
        rows.append((name, f"{before:,.0f}", f"{after:,.0f}", percent(saved),
                     percent(clocked / (block["registers"] * len(block["gated"]))),
                     f"{block['idle_clock_pJ_per_cycle']:.1f}", f"{block['idle_clock_gated_pJ_per_cycle']:.1f}",
                     percent(block["idle_clock_gated_pJ_per_cycle"] / block["idle_clock_pJ_per_cycle"])))
    return table(("block", "pJ per cycle", "with gates", "saved", "registers clocked", "idle, pJ per cycle",
                   "with gates", "left"), rows)


def _saved(block: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return pJ per cycle without and with gates over the windows that have both, and the share saved."""
    names = list(block["gated"])
    before = sum(block["measured"][name]["pJ_per_cycle"] for name in names) / len(names)
    after = sum(block["gated"][name]["pJ_per_cycle"] for name in names) / len(names)
    return before, after, 1 - after / before


def _verdict(blocks: Mapping[str, Any]) -> str:
    saved = [_saved(block)[:2] for block in blocks.values() if block["gated"]]
    if not saved:
        return "No netlist was measured with gates."
    before, after = (sum(each[place] for each in saved) for place in (0, 1))
    return (f"All these blocks together take {before:,.0f} pJ per cycle in the mean over the windows, {after:,.0f} "
            f"with gates: {percent(1 - after / before)} less.")


def _workloads(workloads: Mapping[str, Any]) -> str:
    return table(("window", "network", "layer", "what"),
                  [(name, each["model"], str(each["layer"]), each["what"]) for name, each in workloads.items()])
