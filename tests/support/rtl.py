"""Run a compiled network in RTL and read tensors back, as `tests.support.execute` does on the functional engine."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tilewright.compiler.compile import Compiled
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.elf import compile_elf, port_flags
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import from_memory, to_memory
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE, HostName
from tilewright.isa.emit_c import header
from tilewright.isa.machine import MemoryTiming
from tilewright.sim.rtl_engine import Simulation, run_rtl
from tilewright.sim.run_result import RunResult


def execute_rtl(compiled: Compiled, inputs: Mapping[str, np.ndarray], folder: Path, *,
                timing: MemoryTiming | None = None, dumps: Sequence[tuple[int, int]] = (),
                coverage: Path | None = None, host: HostName = HOST_CORE) -> tuple[dict[str, np.ndarray], RunResult]:
    """Return every tensor in memory at the end, int8 (C, H, W) by name, and the run; C and ELF go to ``folder``.

    ``dumps`` are further (address, bytes) to read, behind the tensors in the run's own; ``coverage`` is that of
    `Simulation`.
    """
    source, elf = folder / "model.c", folder / "model.elf"
    source.write_text(program_text(compiled.program, compiled.network.name))
    (folder / "tilewright.h").write_text(header())
    compile_elf(source, elf, library=any(isinstance(plan, CorePlan) for plan in compiled.plans),
                flags=port_flags(PORT_OF[host]))
    images = [*compiled.images, *((compiled.memory.tensors[name], to_memory(array, compiled.network.tensors[name]))
                                  for name, array in inputs.items())]
    dumps = [*((address, tensor_bytes(info)) for info, address in compiled.tensors.values()), *dumps]
    result = run_rtl(compiled.machine, elf, Simulation(images=images, dumps=dumps, coverage=coverage),
                     windows=compiled.windows, timing=timing, host=host).require_exit()
    tensors = {name: from_memory(content, info)
               for (name, (info, _)), content in zip(compiled.tensors.items(), result.dumps, strict=False)}
    return tensors, result
