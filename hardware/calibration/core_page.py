"""A RISC-V core's section of docs/calibration.md: its price, its windows, and the remaining error."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.calibration.record import CoreRecord, GatedRecord
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.tools.markdown import percent, table
from tilewright.tools.templates import render

__all__ = ["core_section"]

_TEMPLATE = Path(__file__).with_name("core_page.md.j2")

_PROGRAMS: dict[CoreName, str] = {HOST_CORE: "the scalar baseline",
                                  XPULP_CORE: "the baseline with XPULP's SIMD instructions"}


@dataclass(frozen=True, slots=True)
class _Gates:
    """The figures of a core with clock gates, in words."""

    price: str
    saved: str
    area: str
    left: str
    rms: str
    largest: str


def core_section(name: CoreName, core: CoreRecord) -> str:
    """Return the section of a core."""
    windows = core.windows
    low, high = core.instruction_range
    least = min(windows, key=lambda each: windows[each].energy_per_instruction)
    most = max(windows, key=lambda each: windows[each].energy_per_instruction)
    clocks = [window.clock for window in windows.values()]
    access, stall = core.other_prices["data_access"], core.other_prices["stall"]
    rows = [(window, each.window.what, str(each.cycles), str(each.retired), str(each.data_accesses),
             f"{each.energy:.0f}", f"{each.energy_per_instruction:.0f}", f"{100 * core.held_out[window]:+.1f}")
            for window, each in windows.items()]
    heads = ("window", "what", "cycles", "retired", "loads and stores", "pJ per cycle", "pJ per instruction",
             "error held out, %")
    return render(
        _TEMPLATE, name=name.upper(), whose=_PROGRAMS[name], cells=f"{core.cells:,}", registers=f"{core.registers:,}",
        area=f"{core.area_um2 / 1e6:.2f}", count=len(windows), cycles=next(iter(windows.values())).cycles,
        price=f"{core.prices['instruction']:.0f}", clock=f"{sum(clocks) / len(clocks):.0f}",
        share=percent(sum(clocks) / sum(window.energy for window in windows.values())), rms=percent(core.rms, 1),
        largest=percent(core.largest, 1), low=f"{low:.2f}", high=f"{high:.2f}", access=f"{access.price:.0f}",
        access_rms=percent(access.rms, 1), stall=f"{stall.price:.0f}", stall_rms=percent(stall.rms, 1),
        least_name=least, least=f"{windows[least].energy_per_instruction:.0f}", most_name=most,
        most=f"{windows[most].energy_per_instruction:.0f}", verilog=core.verilog, windows=table(heads, rows, left=None),
        gates=_gates(core, core.with_gates) if core.with_gates else None)


def _gates(core: CoreRecord, gated: GatedRecord) -> _Gates:
    before = sum(each.energy for each in core.windows.values())
    after = sum(each.energy for each in gated.windows.values())
    return _Gates(price=f"{gated.price.price:.0f}", saved=percent(1 - after / before),
                  area=percent(1 - gated.area_um2 / core.area_um2), left=percent(gated.idle_clock / core.idle_clock),
                  rms=percent(gated.price.rms, 1), largest=percent(gated.price.largest, 1))
