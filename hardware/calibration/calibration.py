"""Calibrate the prices of a technology at gate level: map every block and the cores, simulate windows of runs, fit.

Every step is kept in the cache: a calibration that was stopped continues where it was.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tilewright.energy.registers import registers_of
from tilewright.hardware.calibration.captures import Captured, Workload, capture, mac_rates
from tilewright.hardware.calibration.cores import CoreResult, calibrate_cores
from tilewright.hardware.calibration.measured_records import block_windows, netlist_fields
from tilewright.hardware.calibration.process import LayoutEffects, MeterWithLayout, Process
from tilewright.hardware.calibration.record import BlockRecord, CalibrationRecord, WindowRecord
from tilewright.hardware.gates.cells.liberty import Library, read_library
from tilewright.hardware.gates.fit import GatedFit, PriceFit, fit, fit_gated, relative_errors
from tilewright.hardware.gates.mapping import excerpt, map_verilog, plain_verilog
from tilewright.hardware.gates.measure import Measurement, total
from tilewright.hardware.gates.netlist_blocks import MappedModule, netlist_blocks
from tilewright.isa.core_names import CoreName
from tilewright.isa.machine import ARRAYS, Machine
from tilewright.runtime.design.design_file import machine_of
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.sim.verilog.energy_blocks import ARRAY_BLOCKS, ENERGY_BLOCKS
from tilewright.tools.progress import Steps

__all__ = ["BlockResult", "MeasurementSetup", "PriceCalibration", "calibrate", "calibrate_blocks", "measure",
           "measured_verilog"]

_Measurements = dict[str, Measurement]
"""By workload."""


@dataclass(frozen=True, slots=True)
class BlockResult:
    """A block, without and with clock gates: measurements by workload, and prices fitted to them.

    ``idle`` is the clock's pJ per cycle. ``gated`` is None where the library has no clock gates.
    """

    measured: _Measurements
    prices: PriceFit
    idle: float
    gated: GatedFit | None

    def record(self, elaborated_registers: int) -> BlockRecord:
        """Return the figures to keep."""
        one = next(iter(self.measured.values()))
        return BlockRecord(**netlist_fields(one, self.prices, elaborated_registers, self.idle, self.gated,
                                            "register_toggle"), windows=block_windows(self.measured))


@dataclass(frozen=True, slots=True)
class PriceCalibration:
    """All blocks and the cores, and the error of the blocks' sum with each workload held out.

    ``rtl`` is a hash of the blocks' Verilog; ``sum_errors_gated`` is empty without clock gates. ``mac_rates`` are
    multiply-accumulates per cycle of the layers of the workloads. ``arrays`` are calibrations of the blocks that are
    others with another kind of array, by kind.
    """

    technology: str
    machine: Machine
    rtl: str
    workloads: tuple[Workload, ...]
    blocks: Mapping[str, BlockResult]
    sum_errors: Mapping[str, float]
    sum_errors_gated: Mapping[str, float]
    mac_rates: Mapping[str, float]
    cores: Mapping[CoreName, CoreResult]
    arrays: Mapping[str, "PriceCalibration"]

    def record(self) -> CalibrationRecord:
        """Return the figures to keep."""
        registers = registers_of(self.machine)
        return CalibrationRecord(
            self.technology, self.machine.name, self.rtl,
            {each.name: WindowRecord(each.model, each.layer, each.where, each.what) for each in self.workloads},
            {name: block.record(registers[name]) for name, block in self.blocks.items()},
            dict(self.sum_errors), dict(self.sum_errors_gated), dict(self.mac_rates),
            {name: core.record() for name, core in self.cores.items()},
            {array: each.record() for array, each in self.arrays.items()})


def calibrate_blocks(process: Process, machine: Machine, workloads: Sequence[Workload], steps: Steps,
                     blocks: Sequence[str]) -> PriceCalibration:
    """Return the calibration of ``process`` on ``workloads``: of ``blocks`` of a machine alone."""
    path = process.library(steps)
    captured = capture(machine, workloads, steps)
    setup = MeasurementSetup(machine, path, process.layout, read_library(path), captured)
    plain, idle = measure(setup, steps, gates=False, blocks=blocks)
    results = {name: BlockResult(plain[name], fit(plain[name]), idle[name], None) for name in blocks}
    errors_gated: Mapping[str, float] = {}
    if process.gates:
        with_gates, idle_gated = measure(setup, steps, gates=True, blocks=blocks)
        found = {name: fit_gated(with_gates[name], idle_gated[name]) for name in blocks}
        results = {name: replace(each, gated=found[name]) for name, each in results.items()}
        errors_gated = relative_errors(_by_workload(with_gates), [each.prices for each in found.values()])
    errors = relative_errors(_by_workload(plain), [each.prices for each in results.values()])
    rtl = hashlib.sha256(coprocessor_verilog(machine).encode()).hexdigest()[:16]
    return PriceCalibration(process.name, machine, rtl, tuple(workloads), results, errors, errors_gated,
                            mac_rates(machine, workloads, steps), {}, {})


def calibrate(process: Process, machine: Machine, workloads: Sequence[Workload], steps: Steps,
              blocks: Sequence[str] | None = None) -> PriceCalibration:
    """Return the calibration of a machine, of the cores, and of the blocks that differ in other arrays.

    With ``blocks``, of these and the cores alone.
    """
    cores = calibrate_cores(process.library(steps), process, steps)
    if blocks is not None:
        return replace(calibrate_blocks(process, machine, workloads, steps, blocks), cores=cores)
    found = calibrate_blocks(process, machine, workloads, steps, ENERGY_BLOCKS)
    arrays = {array: calibrate_blocks(process, _of_array(machine, array), workloads, steps, ARRAY_BLOCKS)
              for array in ARRAYS if array != machine.array}
    return replace(found, cores=cores, arrays=arrays)


def _of_array(machine: Machine, array: str) -> Machine:
    return machine_of(machine, {"array": array}, f"{machine.name},array={array}")


def _by_workload(measured: Mapping[str, _Measurements]) -> dict[str, list[Measurement]]:
    """Return the measurements of all blocks by workload."""
    blocks = list(measured.values())
    return {name: [each[name] for each in blocks] for name in blocks[0]}


@dataclass(frozen=True, slots=True)
class MeasurementSetup:
    """A machine in the library at ``path``, and the windows of its runs on which it is measured."""

    machine: Machine
    path: Path
    layout: LayoutEffects
    library: Library
    captured: Sequence[Captured]


def measured_verilog(machine: Machine) -> str:
    """Return the coprocessor of which netlists are made, with the names that it has in waveforms.

    It has the output by which the simulator knows when commands begin: names get numbers by what else a module has.
    """
    return plain_verilog(coprocessor_verilog(machine, watched=True))


def measure(setup: MeasurementSetup, steps: Steps, *, gates: bool,
            blocks: Sequence[str]) -> tuple[dict[str, _Measurements], dict[str, float]]:
    """Return measurements by block and workload, and idle clocks by block; ``gates``: of netlists with clock gates."""
    verilog = measured_verilog(setup.machine)
    parts = netlist_blocks(setup.machine)
    how = "with clock gates" if gates else "as they are"
    meters: dict[MappedModule, MeterWithLayout] = {}
    with steps.count(f"Mapping netlists {how}", sum(len(parts[name]) for name in blocks)) as done:
        for part in (part for name in blocks for part in parts[name]):
            netlist = map_verilog(excerpt(verilog, part.module, part.cut_modules), part.module, setup.path,
                                  gated=gates, cut=part.cut_modules)
            meters[part] = MeterWithLayout(netlist, part.module, setup.library, setup.layout)
            done()
    found: dict[str, _Measurements] = {name: {} for name in blocks}
    with steps.count(f"Simulating netlists {how}", len(setup.captured) * len(blocks)) as done:
        for each in setup.captured:
            read = cache(each.read)
            for name in blocks:
                found[name][each.workload.name] = total(
                    meters[part].measure_kept(each.path.name, read, scope) for part, scope in _instances(parts[name]))
                done()
    if not gates:  # every register is clocked in every cycle, whatever happens
        return found, {name: _mean_clock(each) for name, each in found.items()}
    idle = {name: sum(meters[part].idle_clock() * len(part.scopes) for part in parts[name]) for name in blocks}
    return found, idle


def _mean_clock(measured: _Measurements) -> float:
    return sum(each.clock for each in measured.values()) / sum(each.cycles for each in measured.values())


def _instances(parts: Sequence[MappedModule]) -> Iterator[tuple[MappedModule, str]]:
    for part in parts:
        for scope in part.scopes:
            yield part, scope
