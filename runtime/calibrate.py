"""Calibrate the prices of a technology at gate level: map every block and the core, simulate windows of runs, fit.

Every step is kept in the cache: a calibration that was stopped goes on where it was.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.isa.machine import Machine
from tilewright.runtime.calibrate_core import CoreResult, calibrate_core
from tilewright.runtime.calibrate_workloads import Captured, Workload, capture
from tilewright.runtime.progress import Steps
from tilewright.sim.debian import debian_data
from tilewright.sim.elaborate import coprocessor_verilog
from tilewright.sim.gates.blocks import BLOCKS, Part
from tilewright.sim.gates.fit import Fit, fit, relative_errors
from tilewright.sim.gates.liberty import Library, read_library
from tilewright.sim.gates.mapping import excerpt, map_verilog, plain_verilog
from tilewright.sim.gates.measure import Measurement, Meter, total

LIBRARIES = {"osu018": "osu018_stdcells.lib"}
"""Technologies whose library comes as a package, and the name of the file in it."""

Measurements = dict[str, Measurement]
"""By workload."""


@dataclass(frozen=True, slots=True)
class BlockResult:
    """A block, as it is and with clock gates: measurements by workload, and prices fitted to them.

    ``idle`` and ``idle_gated`` are the clock's pJ per cycle while the block has nothing to do. ``gated`` may be empty.
    """

    measured: Measurements
    gated: Measurements
    prices: Fit
    idle: float
    idle_gated: float

    @property
    def remainder(self) -> float:
        """Share of an idle block's clock energy that is left with clock gates."""
        return self.idle_gated / self.idle

    @property
    def clock_share(self) -> float:
        """Share of the clock in the block's energy without gates, over all workloads."""
        return sum(each.clock for each in self.measured.values()) / sum(each.energy for each in self.measured.values())

    @property
    def saving(self) -> float:
        """Share of the block's energy that clock gates save, over all workloads."""
        before, after = (sum(each.energy for each in some.values()) for some in (self.measured, self.gated))
        return 1 - after / before

    @property
    def clocked(self) -> float:
        """Share of register-cycles in which the clock still runs with gates, over all workloads."""
        return (sum(each.register_cycles for each in self.gated.values())
                / sum(each.registers * each.cycles for each in self.gated.values()))


@dataclass(frozen=True, slots=True)
class Calibration:
    """All blocks and the core, and the error of the blocks' sum with each workload held out.

    ``rtl`` is a hash of the blocks' Verilog.
    """

    technology: str
    machine: Machine
    rtl: str
    workloads: tuple[Workload, ...]
    blocks: Mapping[str, BlockResult]
    sum_errors: Mapping[str, float]
    core: CoreResult


def calibrate(technology: str, machine: Machine, workloads: Sequence[Workload], steps: Steps,
              blocks: Sequence[str] = tuple(BLOCKS)) -> Calibration:
    """Return the calibration of ``technology`` on ``workloads``; the core has its own."""
    path = debian_data(LIBRARIES[technology])
    core = calibrate_core(path, steps)
    captured = capture(machine, workloads, steps)
    library = read_library(path)
    plain, idle = measure(machine, path, library, captured, steps, gated=False, blocks=blocks)
    gated, idle_gated = measure(machine, path, library, captured, steps, gated=True, blocks=blocks)
    results = {name: BlockResult(plain[name], gated[name], fit(plain[name]), idle[name], idle_gated[name])
               for name in blocks}
    names = [each.name for each in workloads]
    by_workload = {name: [plain[block][name] for block in blocks] for name in names}
    errors = relative_errors(by_workload, [results[block].prices for block in blocks])
    rtl = hashlib.sha256(coprocessor_verilog(machine).encode()).hexdigest()[:16]
    return Calibration(technology, machine, rtl, tuple(workloads), results, errors, core)


def measure(machine: Machine, path: Path, library: Library, captured: Sequence[Captured], steps: Steps, *, gated: bool,
            blocks: Sequence[str]) -> tuple[dict[str, Measurements], dict[str, float]]:
    """Return measurements by block and workload, and idle clocks by block; ``gated``: of netlists with clock gates."""
    verilog = plain_verilog(coprocessor_verilog(machine))
    how = "with clock gates" if gated else "as they are"
    meters: dict[Part, Meter] = {}
    with steps.count(f"Mapping netlists {how}", sum(len(BLOCKS[name]) for name in blocks)) as done:
        for part in (part for name in blocks for part in BLOCKS[name]):
            netlist = map_verilog(excerpt(verilog, part.module, part.cut_modules), part.module, path, gated=gated,
                                  cut=part.cut_modules)
            meters[part] = Meter(netlist, part.module, library)
            done()
    found: dict[str, Measurements] = {name: {} for name in blocks}
    with steps.count(f"Simulating netlists {how}", len(captured) * len(blocks)) as done:
        for each in captured:
            read = cache(each.read)
            for name in blocks:
                found[name][each.workload.name] = total(
                    meters[part].measure_kept(each.path.name, read, scope) for part, scope in _instances(name))
                done()
    if not gated:  # every register is clocked in every cycle, whatever happens
        return found, {name: _mean_clock(each) for name, each in found.items()}
    idle = {name: sum(meters[part].idle_clock() * len(part.scopes) for part in BLOCKS[name]) for name in blocks}
    return found, idle


def _mean_clock(measured: Measurements) -> float:
    return sum(each.clock for each in measured.values()) / sum(each.cycles for each in measured.values())


def _instances(block: str) -> Iterator[tuple[Part, str]]:
    for part in BLOCKS[block]:
        for scope in part.scopes:
            yield part, scope
