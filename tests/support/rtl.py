"""Run a compiled network in RTL and read tensors back, as `tests.support.execute` does on the functional engine."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tilewright.compiler.backend import Compiled
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.elf import compile_elf
from tilewright.isa.emit_c import header
from tilewright.isa.machine import MemoryTiming
from tilewright.sim.rtl import RtlResult, Window, run_rtl


def execute_rtl(compiled: Compiled, inputs: Mapping[str, np.ndarray], folder: Path, *,
                timing: MemoryTiming | None = None) -> tuple[dict[str, np.ndarray], RtlResult]:
    """Return every tensor in memory at the end, int8 (C, H, W) by name, and the run; C and ELF go to ``folder``."""
    source, elf = folder / "model.c", folder / "model.elf"
    source.write_text(program_text(compiled.program, compiled.network.name))
    (folder / "tilewright.h").write_text(header())
    compile_elf(source, elf)
    images = [*compiled.images, *((compiled.memory.tensors[name], array.transpose(1, 2, 0).tobytes())
                                  for name, array in inputs.items())]
    windows = [Window(each.base, each.limit, each.readable, each.writable) for each in compiled.windows]
    places = {name: (info.shape, address) for name, (info, address) in compiled.tensors.items()}
    result = run_rtl(compiled.machine, elf, images=images, windows=windows, timing=timing,
                     dumps=[(address, int(np.prod(shape))) for shape, address in places.values()]).require_exit()
    tensors = {}
    for (name, ((channels, height, width), _)), content in zip(places.items(), result.dumps, strict=True):
        flat = np.frombuffer(content, np.int8)
        tensors[name] = flat.reshape(height, width, channels).transpose(2, 0, 1)
    return tensors, result
