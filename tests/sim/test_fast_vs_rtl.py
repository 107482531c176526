"""The fast engine against the RTL: the same bytes and events, cycles within 2 % per network and 5 % per layer."""

from functools import cache

import numpy as np
import pytest

from tests.support.firmware import compile_program
from tests.support.machines import slow_unless_built
from tests.support.random_layers import fitting_layers, random_layer, with_tables
from tests.support.side_by_side import side_by_side
from tests.support.stacks import resnet, two_readers, vgg
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.machine import PRESETS, MemoryTiming, preset
from tilewright.models import builtin
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.rtl_engine import Simulation, run_rtl

NETWORK_ERROR = 0.02
LAYER_ERROR = 0.05
LONG = 10_000
"""Cycles from which on a layer is held to ``LAYER_ERROR``: dozens of cycles of start-up are a lot of a short one."""

NAMES = tuple(counter.name for counter in COUNTERS)
EVENTS = ("tile_slots", "requantized", "residual_added", "activation_read", "activation_written", "weight_read",
          "weight_written", "result_read", "result_written", "memory_read", "memory_written", "commands",
          "table_read")


@cache
def network(name, machine):
    match name:
        case "lenet5" | "lenet5_accel":
            return compile_network(builtin(name))
        case "resnet":
            return resnet(32, (16, 32), (2, 1))
        case "bottleneck":
            return resnet(64, (16, 32), (1, 1), bottleneck=True)
        case "tables":
            return with_tables(resnet(32, (16, 32), (2, 1)), every=2)
        case "two readers":
            return two_readers(128, 40)
        case "vgg":
            return vgg(32, ((32, 1), (64, 2)), (10,))
    return side_by_side(fitting_layers(np.random.default_rng(5), machine, 20,
                                       lambda rng: random_layer(rng, longest=40, widest=90)))


def differences(records):
    """Return the counters of each layer."""
    rows = np.array([np.frombuffer(record, "<u4")[:len(NAMES)] for record in records], np.int64)
    return [dict(zip(NAMES, row.tolist(), strict=True)) for row in np.diff(rows, axis=0, prepend=0)]


def assert_close(name, machine, folder, timing=None, network_error=NETWORK_ERROR):
    compiled = compile_layers(network(name, machine), machine, keep_tensors=True)
    rng = np.random.default_rng(0)
    images = [*compiled.images, *((compiled.memory.tensors[info.name],
                                   rng.integers(-128, 128, int(np.prod(info.shape))).astype(np.int8).tobytes())
                                  for info in compiled.network.inputs)]
    records = [(address, 4 * RECORD_WORDS) for address in compiled.memory.records]
    tensors = [(address, int(np.prod(info.shape))) for info, address in compiled.tensors.values()]
    dumps = records + tensors
    fast = run_fast(machine, compiled.program, images, compiled.windows, dumps, timing, compiled.memory_bytes)
    elf = compile_program(program_text(compiled.program, name), folder)
    rtl = run_rtl(machine, elf, Simulation(images=images, dumps=dumps), windows=compiled.windows,
                  timing=timing).require_exit()

    assert fast.dumps[len(records):] == rtl.dumps[len(records):]
    assert (fast.words_read, fast.words_written) == (rtl.words_read, rtl.words_written)
    assert abs(fast.cycles - rtl.cycles) <= network_error * rtl.cycles
    found, expected = differences(fast.dumps[:len(records)]), differences(rtl.dumps[:len(records)])
    for event in EVENTS:
        assert sum(layer[event] for layer in found) == sum(layer[event] for layer in expected), event
    for index, (here, there) in enumerate(zip(found, expected, strict=True)):
        if there["cycles"] >= LONG:
            error = abs(here["cycles"] - there["cycles"]) / there["cycles"]
            assert error <= LAYER_ERROR, (index, here, there)


@pytest.mark.parametrize("name", ["lenet5", "lenet5_accel", "resnet", "bottleneck", "tables", "two readers", "layers"])
def test_base(name, tmp_path):
    assert_close(name, preset("base"), tmp_path)


@pytest.mark.parametrize("name", ["lenet5", "lenet5_accel", "resnet", "bottleneck", "vgg", "tables", "layers"])
@pytest.mark.parametrize("machine", slow_unless_built([PRESETS["nano"], PRESETS["large"]]))
def test_other_machines(name, machine, tmp_path):
    assert_close(name, machine, tmp_path)


@pytest.mark.parametrize("timing", [MemoryTiming(latency_cycles=1), MemoryTiming(latency_cycles=20, bytes_per_cycle=4),
                                    MemoryTiming(latency_cycles=5, bytes_per_cycle=16),
                                    MemoryTiming(latency_cycles=60)], ids=str)
def test_other_memories(timing, tmp_path):
    for name in ("resnet", "bottleneck", "vgg"):
        # The promise is for the default timing; others are near it.
        assert_close(name, preset("base"), tmp_path, timing, network_error=2 * NETWORK_ERROR)
