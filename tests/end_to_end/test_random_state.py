"""Networks begin with noise in every register and memory of core and coprocessor: same bits as from zeros."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.compiler.compile import compile_file, emit_elf
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import to_memory
from tilewright.isa.machine import PRESETS, preset
from tilewright.models import builtin
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.rtl_engine import Disturbance, Simulation, run_rtl

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("name", [
    name if name == "nano" else pytest.param(name, marks=pytest.mark.slow) for name in PRESETS])
@pytest.mark.parametrize("seed", SEEDS)
def test_noise_at_power_up_changes_no_bit(tmp_path, name, seed):
    machine = preset(name)
    compiled = compile_file(builtin("lenet5"), machine, keep_tensors=True)
    images = [*compiled.images,
              *((compiled.memory.tensors[info.name],
                 to_memory(np.random.default_rng(seed).integers(-128, 128, info.shape, dtype=np.int8), info))
                for info in compiled.network.inputs)]
    dumps = [(address, tensor_bytes(info)) for info, address in compiled.tensors.values()]
    expected = run_fast(machine, compiled.program, images=images, windows=compiled.windows, dumps=dumps,
                        memory_bytes=compiled.memory_bytes)
    elf = emit_elf(compiled, "lenet5", Path(tmp_path))
    simulation = Simulation(images=images, dumps=dumps, checked=True, disturbance=Disturbance(random_state=seed))
    found = run_rtl(machine, elf, simulation, windows=compiled.windows).require_exit()
    assert found.dumps == expected.dumps
