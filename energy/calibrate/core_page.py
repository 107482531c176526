"""A RISC-V core's section of docs/calibration.md: its price, the windows, and what the price does not explain."""

from collections.abc import Mapping
from typing import Any

from tilewright.energy.calibrate.share_tables import percent, table
from tilewright.energy.calibrate.technology_file import instruction_range
from tilewright.isa.cores import HOST_CORE, XPULP_CORE

TEXT = """\
## The RISC-V core {name}

Alone, as {whose} runs on it, mapped and measured like the
blocks: {cells} cells, {registers} registers, {area:.2f} mm²; {count} windows of {cycles} cycles out of programs in C at
-O3, memory that answers in the next cycle, every output equal to the RTL's in every cycle. Resets are synchronous in
it. One price explains what the clock does not take:

    energy = register_cycle · register-cycles + instruction · retired instructions

**{price:.0f} pJ per instruction** beside a clock of {clock:.0f} pJ per cycle, which is {share} of all energy. Of the
whole energy, each window held out: {rms} rms, at most {largest}. Of the instruction alone, which is what the range of
the price says: {low:.2f} to {high:.2f} times. A price for each load and store on top would be {access:.0f} pJ and
change the error to {access_rms} rms, one for each cycle without retirement {stall:.0f} pJ and {stall_rms}; it is left
at one price.

All windows count the same, whatever their share in a network: {least_name} takes {least:.0f} pJ, {most_name}
{most:.0f} pJ. A baseline that is mostly loops of the former kind costs less than the price says, and what an
accelerator saves over it is less by as much.
{gates}
{windows}

*Instruction* is the energy without the clock, over the instructions retired. Verilog measured: `{verilog}`.
"""


GATES = """
With clock gates, as below, the windows take {saved} less energy, and the core {area} less area: {left} of the clock are
left when it waits, and **{price:.0f} pJ per instruction** carry the rest of it (held out {rms} rms, {largest} at most).
"""

WHOSE: dict[str, str] = {HOST_CORE: "the scalar baseline", XPULP_CORE: "the baseline with XPULP's SIMD instructions"}


def core_section(name: str, core: Mapping[str, Any]) -> str:
    """Return the section for the figures of a core as `calibrate_files.core_json` has them."""
    windows = core["windows"]
    low, high = instruction_range(core)
    each_pj = {name: _per_instruction(window) for name, window in windows.items()}
    least, most = min(each_pj, key=each_pj.__getitem__), max(each_pj, key=each_pj.__getitem__)
    clocks = [window["clock_pJ_per_cycle"] for window in windows.values()]
    energies = [window["pJ_per_cycle"] for window in windows.values()]
    access, stall = (core["another_price"][event] for event in ("data_access", "stall"))
    rows = [(name, window["what"], str(window["cycles"]), str(window["retired"]), str(window["data_accesses"]),
             f"{window['pJ_per_cycle']:.0f}", f"{each_pj[name]:.0f}", f"{100 * core['held_out'][name]:+.1f}")
            for name, window in windows.items()]
    return TEXT.format(
        name=name.upper(), whose=WHOSE[name], cells=f"{core['cells']:,}", registers=f"{core['registers']:,}",
        area=core["area_um2"] / 1e6,
        count=len(windows), cycles=next(iter(windows.values()))["cycles"], price=core["prices_pJ"]["instruction"],
        clock=sum(clocks) / len(clocks), share=percent(sum(clocks) / sum(energies)), rms=percent(core["rms"], 1),
        largest=percent(core["largest"], 1), low=low, high=high, access=access["pJ"],
        access_rms=percent(access["rms"], 1), stall=stall["pJ"], stall_rms=percent(stall["rms"], 1),
        least_name=least, least=each_pj[least], most_name=most, most=each_pj[most], verilog=core["verilog"],
        gates=_gates(core),
        windows=table(("window", "what", "cycles", "retired", "loads and stores", "pJ per cycle", "pJ per instruction",
                       "error held out, %"), rows))


def _gates(core: Mapping[str, Any]) -> str:
    if not core["gated"]:
        return ""
    before, after = (sum(each["pJ_per_cycle"] for each in core[key].values()) for key in ("windows", "gated"))
    price = core["gated_price"]
    return GATES.format(
        saved=percent(1 - after / before), area=percent(1 - core["gated_area_um2"] / core["area_um2"]),
        left=percent(core["idle_clock_gated_pJ_per_cycle"] / core["idle_clock_pJ_per_cycle"]), price=price["pJ"],
        rms=percent(price["rms"], 1), largest=percent(price["largest"], 1))


def _per_instruction(window: Mapping[str, Any]) -> float:
    energy: float = (window["pJ_per_cycle"] - window["clock_pJ_per_cycle"]) * window["cycles"]
    return energy / window["retired"]
