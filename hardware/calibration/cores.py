"""Calibrate the price of an instruction at gate level: a RISC-V core, mapped and simulated on windows of programs.

    energy = register_cycle · register-cycles + instruction · retired instructions

Every step is kept in the cache, as those of the blocks are.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.energy.registers import CORE_REGISTERS
from tilewright.hardware.calibration.captures import Captured, Workload
from tilewright.hardware.calibration.core_captures import CORE_WORKLOADS, capture_core
from tilewright.hardware.calibration.measured_records import netlist_fields
from tilewright.hardware.calibration.process import MeterWithLayout, Process
from tilewright.hardware.calibration.record import CoreRecord, CoreWindow, FittedPrice, WindowRecord
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.gates.core_netlist import CORES, core_verilog
from tilewright.hardware.gates.core_waves import SCOPE, CoreCounts, counts_of
from tilewright.hardware.gates.fit import GatedFit, PriceFit, fit, fit_gated
from tilewright.hardware.gates.mapping import map_verilog
from tilewright.hardware.gates.measure import Measurement
from tilewright.isa.core_names import CoreName
from tilewright.tools.progress import Steps

__all__ = ["CoreResult", "calibrate_core", "calibrate_cores"]


@dataclass(frozen=True, slots=True)
class CoreResult:
    """A core's measurements and counts by workload; ``verilog`` is a hash of the mapped source.

    ``gated`` is None where the library has no clock gates.
    """

    core: CoreName
    workloads: tuple[Workload, ...]
    measured: Mapping[str, Measurement]
    counts: Mapping[str, CoreCounts]
    verilog: str
    gated: GatedFit | None

    @property
    def prices(self) -> PriceFit:
        """One price for all instructions."""
        return fit(self.measured, {name: (each.retired,) for name, each in self.counts.items()}, ("instruction",))

    @property
    def with_accesses(self) -> PriceFit:
        """Another one for loads and stores on top: what it would bring."""
        return fit(self.measured, {name: (each.retired, each.accesses) for name, each in self.counts.items()},
                   ("instruction", "data_access"))

    @property
    def with_stalls(self) -> PriceFit:
        """Another one for cycles in which nothing retires."""
        return fit(self.measured, {name: (each.retired, self.measured[name].cycles - each.retired)
                                   for name, each in self.counts.items()}, ("instruction", "stall"))

    def record(self) -> CoreRecord:
        """Return the figures to keep."""
        others = {"data_access": self.with_accesses, "stall": self.with_stalls}
        clocks = [each.clock / each.cycles for each in self.measured.values()]
        return CoreRecord(
            **netlist_fields(next(iter(self.measured.values())), self.prices, CORE_REGISTERS[self.core],
                             sum(clocks) / len(clocks), self.gated, "instruction"),
            verilog=self.verilog,
            other_prices={event: FittedPrice(each.prices[event], each.rms, each.largest)
                          for event, each in others.items()},
            windows={each.name: self._window(each) for each in self.workloads})

    def _window(self, workload: Workload) -> CoreWindow:
        measured, counts = self.measured[workload.name], self.counts[workload.name]
        return CoreWindow(
            WindowRecord(workload.model, workload.layer, workload.where, workload.what), measured.cycles,
            counts.retired, counts.accesses, measured.register_toggles, measured.energy / measured.cycles,
            measured.clock / measured.cycles)


def calibrate_cores(path: Path, process: Process, steps: Steps) -> dict[CoreName, CoreResult]:
    """Return the calibration of every core, by name; raises as :func:`calibrate_core` does."""
    return {name: calibrate_core(name, path, process, steps, CORE_WORKLOADS[name]) for name in CORES}


def calibrate_core(core: CoreName, path: Path, process: Process, steps: Steps,
                   workloads: Sequence[Workload]) -> CoreResult:
    """Return a core's calibration in the library of ``process``, which lies at ``path``.

    Raises
    ------
    SimulationError, InputError, CompileError
        If a program cannot be built, compiled or run.
    MappingError, EventError
        If the core cannot be mapped, or its netlist does not do what the RTL does.
    """
    captured = capture_core(core, workloads, steps)
    verilog, top, library = core_verilog(core), CORES[core].top, read_library(path)

    def mapped(*, gates: bool) -> MeterWithLayout:
        with steps.step(f"Mapping {core}{' with clock gates' if gates else ''}"):
            return MeterWithLayout(map_verilog(verilog, top, path, gated=gates), top, library, process.layout)

    counts = {each.workload.name: counts_of(each.read()) for each in captured}
    result = CoreResult(core, tuple(workloads), _measured(mapped(gates=False), captured, core, steps), counts,
                        hashlib.sha256(verilog.encode()).hexdigest()[:16], None)
    if not process.gates:
        return result
    meter = mapped(gates=True)
    measured = _measured(meter, captured, f"{core} with clock gates", steps)
    retired = {name: (each.retired,) for name, each in counts.items()}
    return replace(result, gated=fit_gated(measured, meter.idle_clock(), retired, ("instruction",)))


def _measured(meter: MeterWithLayout, captured: Sequence[Captured], what: str, steps: Steps) -> dict[str, Measurement]:
    """Return the measurements of a netlist by workload."""
    found = {}
    with steps.count(f"Simulating the netlist of {what}", len(captured)) as done:
        for each in captured:
            found[each.workload.name] = meter.measure_kept(each.path.name, each.read, SCOPE)
            done()
    return found
