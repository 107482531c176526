"""docs/calibration.md from the figures of a calibration: tables of prices, errors, clock gating and workloads."""

from collections.abc import Mapping
from typing import Any

from tilewright.energy.calibrate.calibration import PROCESSES
from tilewright.energy.calibrate.core_page import core_section
from tilewright.energy.calibrate.share_tables import percent, table

TEXT = """\
# Calibration at gate level: {technology}

Written by `tilewright calibrate --tech {technology}` (`make calibrate`); figures as JSON are beside it when it runs.

**How.** Each block of machine `{machine}` is mapped by Yosys to the library's cells, memories cut out. {count} windows
of {cycles} cycles out of real layers run in RTL; what happened at a block's borders drives its netlist in an event
simulation with load-dependent delays (`energy/gates/events.cpp`), and every output bit is compared with the RTL's in
every
cycle. Toggles times the library's energies give the block's energy (`energy/gates/power.py`). Two prices explain it:

    energy = register_cycle · clocked register-cycles + register_toggle · register-bit toggles

The first is the clock's energy itself; the second is fitted, non-negative, relative errors least. *Held out* is the
error of a window with prices fitted to all others.

**What the figures are.** {figures}

## Prices and errors

{prices}

{sums}

Measured on the Verilog whose SHA-256 begins with `{rtl}`. Prices are per register and toggle: registers that the RTL
has been given since are counted by `energy/registers.toml`, and need no new calibration unless the logic between
registers changes in kind. Prices of blocks that are not in the table are means of those that are, and marked `scaled`.

## Error by window, held out

{errors}

{cores}
{gating}

## Windows

{workloads}
"""


GATING = """\
## Clock gating

Registers that share an enable, {least} or more, behind a latch and an AND; a reset enables too. *Saved* is of the
block's whole energy over the same windows; *idle* is the clock's energy in a cycle in which the block has nothing to
do; *left* is what of that stays with gates. With gates each netlist still gave every bit of the RTL. What a block takes
with gates is then modelled as

    energy = left · register_cycle · register-cycles + toggle with gates · register-bit toggles

where a toggle carries the clock of the registers that are enabled with it, and the multiplexers are gone that kept
their values (`--gated`).

{gating}

{verdict}"""

NO_GATING = """\
## Clock gating

Not measured in these cells, of which none is a latch; what gates leave of an idle block's clock, and what they change
in the price of a toggle, is taken from [osu018](calibration.md)."""


def page(found: Mapping[str, Any]) -> str:
    """Return the page for figures as `calibrate_files.to_json` has them."""
    from tilewright.energy.calibrate.captures import CYCLES
    from tilewright.energy.gates.events import PERIOD

    blocks = found["blocks"]
    process = PROCESSES[found["technology"]]
    return TEXT.format(
        technology=found["technology"], rtl=found["rtl"], machine=found["machine"], count=len(found["workloads"]),
        cycles=CYCLES, figures=process.figures.format(period=f"{PERIOD:g}"), prices=_prices(blocks), sums=_sums(found),
        errors=_errors(found), cores="\n".join(core_section(name, core) for name, core in found["cores"].items()),
        gating=_gating(found), workloads=_workloads(found["workloads"]))


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
    errors = found["sum_of_blocks"]["held_out"]
    rms, largest = _size(errors)
    return (f"All these blocks together, each window held out: {rms} rms, at most {largest} over {len(errors)} "
            f"windows.")


def _errors(found: Mapping[str, Any]) -> str:
    blocks = found["blocks"]
    rows = [(name, *(f"{100 * block['held_out'][name]:+.1f}" for block in blocks.values()),
             f"{100 * found['sum_of_blocks']['held_out'][name]:+.1f}") for name in found["workloads"]]
    return table(("window, error in %", *blocks, "all"), rows)


def _gating(found: Mapping[str, Any]) -> str:
    from tilewright.energy.gates.mapping import GATED_REGISTERS

    blocks = found["blocks"]
    if not any(block["gated"] for block in blocks.values()):
        return NO_GATING
    rows = []
    for name, block in blocks.items():
        before, after, saved = _saved(block)
        clocked = sum(each["clocked_registers"] for each in block["gated"].values())
        rows.append((name, f"{before:,.0f}", f"{after:,.0f}", percent(saved),
                     f"{percent(block['gated_area_um2'] / block['area_um2'] - 1)}",
                     percent(clocked / (block["registers"] * len(block["gated"]))),
                     f"{block['idle_clock_pJ_per_cycle']:.1f}", f"{block['idle_clock_gated_pJ_per_cycle']:.1f}",
                     percent(block["idle_clock_gated_pJ_per_cycle"] / block["idle_clock_pJ_per_cycle"]),
                     f"{block['gated_price']['pJ']:.2f}", percent(block["gated_price"]["rms"], 1),
                     percent(block["gated_price"]["largest"], 1)))
    gating = table(("block", "pJ per cycle", "with gates", "saved", "area", "registers clocked", "idle, pJ per cycle",
                    "with gates", "left", "pJ per toggle with gates", "error held out, rms", "largest"), rows)
    return GATING.format(least=GATED_REGISTERS, gating=gating, verdict=_verdict(found))


def _saved(block: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return pJ per cycle without and with gates over the windows that have both, and the share saved."""
    names = list(block["gated"])
    before = sum(block["measured"][name]["pJ_per_cycle"] for name in names) / len(names)
    after = sum(block["gated"][name]["pJ_per_cycle"] for name in names) / len(names)
    return before, after, 1 - after / before


def _verdict(found: Mapping[str, Any]) -> str:
    saved = [_saved(block)[:2] for block in found["blocks"].values()]
    before, after = (sum(each[place] for each in saved) for place in (0, 1))
    rms, largest = _size(found["sum_of_blocks"]["held_out_gated"])
    return (f"All these blocks together take {before:,.0f} pJ per cycle in the mean over the windows, {after:,.0f} "
            f"with gates: {percent(1 - after / before)} less. With each window held out, the model of all of them with "
            f"gates is {rms} rms off, {largest} at most.")


def _size(errors: Mapping[str, float]) -> tuple[str, str]:
    """Return the root mean square of errors and the largest."""
    rms = (sum(error**2 for error in errors.values()) / len(errors)) ** 0.5
    return percent(rms, 1), percent(max(map(abs, errors.values())), 1)


def _workloads(workloads: Mapping[str, Any]) -> str:
    return table(("window", "network", "layer", "what"),
                  [(name, each["model"], str(each["layer"]), each["what"]) for name, each in workloads.items()])
