"""Run a compiled network on the functional engine and read tensors back."""

from collections.abc import Mapping

import numpy as np

from tilewright.compiler.backend import Compiled
from tilewright.sim.functional import Functional
from tilewright.sim.memory import MAIN_BASE, MainMemory


def execute(compiled: Compiled, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return every tensor in memory at the end, int8 (C, H, W) by name; one whose place was used again is garbage."""
    memory = MainMemory(compiled.memory_bytes, compiled.windows)
    # What no command has written must not matter.
    memory.bytes[:] = 0x55
    for address, data in compiled.images:
        memory.bytes[address - MAIN_BASE:][:len(data)] = np.frombuffer(data, np.int8)
    for name, array in inputs.items():
        memory.bytes[compiled.memory.tensors[name] - MAIN_BASE:][:array.size] = array.transpose(1, 2, 0).ravel()
    engine = Functional(compiled.machine, memory)
    engine.activations[:] = 0x33
    engine.results[:] = 0x44
    engine.main[:] = 0x22
    engine.tables[:] = 0x11
    engine.run(command for _, command in compiled.program.commands())
    tensors = {}
    for name, (info, address) in compiled.tensors.items():
        channels, height, width = info.shape
        flat = memory.bytes[address - MAIN_BASE:][:channels * height * width]
        tensors[name] = flat.reshape(height, width, channels).transpose(2, 0, 1)
    return tensors
