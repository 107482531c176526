"""Run a compiled network on the functional engine and read tensors back."""

from collections.abc import Mapping

import numpy as np

from tilewright.compiler.channels.whole_tensors import whole_values
from tilewright.compiler.compile import Compiled
from tilewright.compiler.kernels.execute import run_on_core
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import from_memory, tensor_operand, to_memory, view
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.program import Call
from tilewright.sim.values.core_calls import execute_call
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory


def execute(compiled: Compiled, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return every tensor at the end by name, as the reference has it; one whose place was used again is garbage.

    Constant channels that are not in memory are filled in; a tensor of which others are not there is left out.
    """
    memory = MainMemory(compiled.memory_bytes, compiled.windows)
    # What no command has written must not matter.
    memory.bytes[:] = 0x55
    for address, data in compiled.images:
        memory.bytes[address - MAIN_BASE:][:len(data)] = np.frombuffer(data, np.int8)
    for name, array in inputs.items():
        info, address = compiled.tensors[name]
        if info.place is None:
            content = to_memory(array, info)
            memory.bytes[address - MAIN_BASE:][:len(content)] = np.frombuffer(content, np.int8)
            continue
        operand = tensor_operand(info, 0)
        view(memory.bytes[address - MAIN_BASE:], operand)[...] = array.reshape(operand.dims)
    engine = Executor(compiled.machine, memory)
    engine.state.activations[:] = 0x33
    engine.state.results[:] = 0x44
    engine.state.weight_words[:] = 0x22
    engine.state.tables[:] = 0x11
    for _, each in compiled.program.actions():
        if isinstance(each, Call):
            execute_call(each, memory, MemoryTiming.default(compiled.machine), run_on_core)
        else:
            engine.execute(each)
    tensors = {}
    for name, (info, address) in compiled.tensors.items():
        tensors[name] = from_memory(memory.bytes[address - MAIN_BASE:][:tensor_bytes(info)].tobytes(), info)
    return whole_values(tensors, {name: info for name, (info, _) in compiled.tensors.items()})
