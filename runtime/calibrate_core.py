"""Calibrate the price of an instruction at gate level: the RISC-V core, mapped and simulated on windows of programs.

    energy = register_cycle · register-cycles + instruction · retired instructions

Every step is kept in the cache, as those of the blocks are.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.runtime.calibrate_core_workloads import CORE_WORKLOADS, capture_core
from tilewright.runtime.calibrate_process import Layout, MeterWithLayout
from tilewright.runtime.calibrate_workloads import Workload
from tilewright.runtime.progress import Steps
from tilewright.sim.gates.core import TOP, core_verilog
from tilewright.sim.gates.core_waves import SCOPE, Counts, counts_of
from tilewright.sim.gates.fit import Fit, fit
from tilewright.sim.gates.liberty import read_library
from tilewright.sim.gates.mapping import map_verilog
from tilewright.sim.gates.measure import Measurement


@dataclass(frozen=True, slots=True)
class CoreResult:
    """The core's measurements and counts by workload; ``verilog`` is a hash of what was mapped."""

    workloads: tuple[Workload, ...]
    measured: Mapping[str, Measurement]
    counts: Mapping[str, Counts]
    verilog: str

    @property
    def prices(self) -> Fit:
        """One price for all instructions."""
        return fit(self.measured, {name: (each.retired,) for name, each in self.counts.items()}, ("instruction",))

    @property
    def with_accesses(self) -> Fit:
        """Another one for loads and stores on top: what it would bring."""
        return fit(self.measured, {name: (each.retired, each.accesses) for name, each in self.counts.items()},
                   ("instruction", "data_access"))

    @property
    def with_stalls(self) -> Fit:
        """Another one for cycles in which nothing retires."""
        return fit(self.measured, {name: (each.retired, self.measured[name].cycles - each.retired)
                                   for name, each in self.counts.items()}, ("instruction", "stall"))


def calibrate_core(path: Path, layout: Layout, steps: Steps,
                   workloads: Sequence[Workload] = CORE_WORKLOADS) -> CoreResult:
    """Return the core's calibration in the library at ``path``, with what ``layout`` adds.

    Raises
    ------
    RunError, InputError, CompileError
        If a program cannot be built, compiled or run.
    MappingError, EventError
        If the core cannot be mapped, or its netlist does not do what the RTL does.
    """
    captured = capture_core(workloads, steps)
    with steps.step("Mapping the core"):
        verilog = core_verilog()
        meter = MeterWithLayout(map_verilog(verilog, TOP, path, gated=False), TOP, read_library(path), layout)
    measured, counts = {}, {}
    with steps.count("Simulating the core's netlist", len(captured)) as done:
        for each in captured:
            read = cache(each.read)
            measured[each.workload.name] = meter.measure_kept(each.path.name, read, SCOPE)
            counts[each.workload.name] = counts_of(read())
            done()
    return CoreResult(tuple(workloads), measured, counts, hashlib.sha256(verilog.encode()).hexdigest()[:16])
