"""docs/calibration.md from the record of a calibration: prices, errors, clock gating and windows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.calibration.core_page import core_section
from tilewright.hardware.calibration.record import BlockRecord, CalibrationRecord, GatedRecord
from tilewright.runtime.given_model import machine_given
from tilewright.tools.markdown import percent, table
from tilewright.tools.templates import render

__all__ = ["page"]

_TEMPLATE = Path(__file__).with_name("calibration_page.md.j2")


@dataclass(frozen=True, slots=True)
class _ErrorSize:
    """Root mean square of some errors, and the largest, as shares."""

    rms: str
    largest: str

    @classmethod
    def of(cls, errors: Mapping[str, float]) -> "_ErrorSize":
        rms = (sum(error**2 for error in errors.values()) / len(errors)) ** 0.5
        return cls(percent(rms, 1), percent(max(map(abs, errors.values())), 1))


@dataclass(frozen=True, slots=True)
class _GatesTogether:
    """Energy of all blocks without and with clock gates, in pJ per cycle, and the errors of the model with gates."""

    before: str
    after: str
    saved: str
    errors: _ErrorSize


@dataclass(frozen=True, slots=True)
class _OtherArray:
    """Blocks of a machine with another kind of array: a table of their prices, and the errors of all together."""

    name: str
    machine: str
    prices: str
    errors: _ErrorSize


def page(found: CalibrationRecord) -> str:
    """Return the page."""
    from tilewright.hardware.calibration.captures import CYCLES
    from tilewright.hardware.gates.events import PERIOD
    from tilewright.hardware.gates.mapping import GATED_REGISTERS

    gated = [(name, block, block.with_gates) for name, block in found.blocks.items() if block.with_gates is not None]
    return render(
        _TEMPLATE, technology=found.technology, rtl=found.rtl, machine=found.machine, count=len(found.workloads),
        cycles=CYCLES, period=f"{PERIOD:g}", prices=_prices(found.blocks), sum_errors=_ErrorSize.of(found.sum_errors),
        errors=_errors(found), arrays=[_array(name, each) for name, each in found.arrays.items()],
        compared=_compared(found) if found.arrays else "",
        cores=[core_section(name, core) for name, core in found.cores.items()],
        least=GATED_REGISTERS, gating=_gating(gated) if gated else "", gates=_together(found, gated) if gated else None,
        workloads=_workloads(found))


def _prices(blocks: Mapping[str, BlockRecord]) -> str:
    rows = []
    for name, block in blocks.items():
        energies = [each.energy for each in block.windows.values()]
        clocks = [each.clock for each in block.windows.values()]
        rows.append((name, f"{block.cells:,}", f"{block.registers:,}", f"{block.area_um2 / 1e6:.2f}",
                     f"{block.prices['register_cycle']:.3f}", f"{block.prices['register_toggle']:.2f}",
                     f"{min(energies):,.0f} to {max(energies):,.0f}", percent(sum(clocks) / sum(energies)),
                     percent(block.rms, 1), percent(block.largest, 1)))
    return table(("block", "cells", "registers", "mm²", "pJ per register and cycle", "pJ per toggle", "pJ per cycle",
                  "of it clock", "error held out, rms", "largest"), rows, left=None)


def _array(name: str, found: CalibrationRecord) -> _OtherArray:
    return _OtherArray(name, found.machine, _prices(found.blocks), _ErrorSize.of(found.sum_errors))


_COMPARED = ("vgg16-64", "mobilenetv2-deep", "resnet18-stride2")
"""Windows on which arrays are compared: 3x3, 1x1, and 3x3 of stride 2."""


def _compared(found: CalibrationRecord) -> str:
    """Return the table of all kinds of array: area, and area and energy for the rate of layers of each kind."""
    rows = []
    for each in (found, *found.arrays.values()):
        machine, block = machine_given(each.machine).machine, each.blocks["array"]
        rates = [each.mac_rates[window] for window in _COMPARED]
        energies = [block.windows[window].energy for window in _COMPARED]
        rows.append((machine.array, str(machine.multipliers), f"{block.area_um2 / 1e6:.3f}",
                     *(cell for rate, energy in zip(rates, energies, strict=True)
                       for cell in (f"{rate:.1f}", f"{block.area_um2 / rate:,.0f}", f"{energy / rate:.1f}"))))
    heads = (cell for window in _COMPARED for cell in (f"{window}: MAC per cycle", "µm² for one", "pJ per MAC"))
    return table(("array", "multipliers", "mm² of cells", *heads), rows, left=None)


def _errors(found: CalibrationRecord) -> str:
    rows = [(name, *(f"{100 * block.held_out[name]:+.1f}" for block in found.blocks.values()),
             f"{100 * found.sum_errors[name]:+.1f}") for name in found.workloads]
    return table(("window, error in %", *found.blocks, "all"), rows, left=None)


_GatedBlocks = list[tuple[str, BlockRecord, GatedRecord]]
"""Name of each block that was measured with clock gates, its record, and that with gates."""


def _gating(blocks: _GatedBlocks) -> str:
    rows = []
    for name, block, gated in blocks:
        before, after = _mean_energies(block, gated)
        clocked = sum(each.clocked_registers for each in gated.windows.values())
        rows.append((name, f"{before:,.0f}", f"{after:,.0f}", percent(1 - after / before),
                     percent(gated.area_um2 / block.area_um2 - 1),
                     percent(clocked / (block.registers * len(gated.windows))), f"{block.idle_clock:.1f}",
                     f"{gated.idle_clock:.1f}", percent(gated.idle_clock / block.idle_clock),
                     f"{gated.price.price:.2f}", percent(gated.price.rms, 1), percent(gated.price.largest, 1)))
    return table(("block", "pJ per cycle", "with gates", "saved", "area", "registers clocked", "idle, pJ per cycle",
                  "with gates", "left", "pJ per toggle with gates", "error held out, rms", "largest"), rows, left=None)


def _mean_energies(block: BlockRecord, gated: GatedRecord) -> tuple[float, float]:
    """Return pJ per cycle without and with gates in the mean over the windows that have both."""
    names = list(gated.windows)
    return (sum(block.windows[name].energy for name in names) / len(names),
            sum(gated.windows[name].energy for name in names) / len(names))


def _together(found: CalibrationRecord, blocks: _GatedBlocks) -> _GatesTogether:
    means = [_mean_energies(block, gated) for _, block, gated in blocks]
    before, after = (sum(each[place] for each in means) for place in (0, 1))
    return _GatesTogether(f"{before:,.0f}", f"{after:,.0f}", percent(1 - after / before),
                          _ErrorSize.of(found.sum_errors_gated))


def _workloads(found: CalibrationRecord) -> str:
    return table(("window", "network", "layer", "what"),
                 [(name, each.model, str(each.layer), each.what) for name, each in found.workloads.items()], left=None)
