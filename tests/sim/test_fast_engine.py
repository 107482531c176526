"""The fast engine: its values are the functional engine's, and its records add up."""

import numpy as np
import pytest

from tests.support.random_layers import network_of, random_layer, random_machine
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.machine import MemoryTiming, preset
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Fault, Permission
from tilewright.isa.program import Function, Program, issue
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.values.executor import ExecutionError

NAMES = tuple(counter.name for counter in COUNTERS)
CAUSES = tuple(name for name in NAMES if name.startswith("mac_"))
EVERYWHERE = [AddressWindow(MAIN_BASE, MAIN_BASE + 4096, Permission.READ_WRITE)]


def bytes_of(tensor):
    """Return (C, H, W) as it lies in memory."""
    return np.ascontiguousarray(tensor.transpose(1, 2, 0)).tobytes()


def run_layer(seed, machine, timing=None):
    """Run a random layer; return network, inputs, result and the counters of its record."""
    network = network_of(random_layer(np.random.default_rng(seed)))
    compiled = compile_layers(network, machine, keep_tensors=True)
    rng = np.random.default_rng(seed)
    inputs = {info.name: rng.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs}
    images = [*compiled.images, *((compiled.memory.tensors[name], bytes_of(array)) for name, array in inputs.items())]
    output, address = compiled.tensors[network.outputs[0].name]
    dumps = [(address, int(np.prod(output.shape))), (compiled.memory.records[0], 4 * RECORD_WORDS)]
    result = run_fast(machine, compiled.program, images, compiled.windows, dumps, timing, compiled.memory_bytes)
    words = np.frombuffer(result.dumps[1], "<u4").tolist()
    return network, inputs, result, dict(zip(NAMES, words, strict=False))


# Seed 9 makes a layer that does not fit its machine.
@pytest.mark.parametrize("seed", [*range(9), *range(10, 14)])
def test_random_layers(seed):
    machine = random_machine(np.random.default_rng(seed), any_array=True)
    network, inputs, result, counts = run_layer(seed, machine)
    assert result.dumps[0] == bytes_of(run_network(network, inputs)[network.outputs[0].name])
    assert (result.stop_reason, result.exit_code, result.fault) == ("exit", 0, None)
    assert sum(counts[name] for name in CAUSES) == counts["cycles"] < result.cycles
    assert counts["memory_read"] == result.words_read * machine.bus_bytes
    # The status record itself and the fence come after the snapshot.
    assert result.words_written * machine.bus_bytes >= counts["memory_written"] + 4 * RECORD_WORDS
    assert counts["commands"] <= result.commands <= result.instructions
    layer = network.layers[0]
    assert counts["requantized"] == int(np.prod(layer.conv_shape))
    assert counts["residual_added"] == (counts["requantized"] if layer.residual else 0)
    assert counts["mac_issue"] >= counts["tile_slots"] > 0


def test_time_does_not_change_values():
    machine = preset("base")
    results = [run_layer(7, machine, timing)[2] for timing in
               (None, MemoryTiming(latency_cycles=300, bytes_per_cycle=1), MemoryTiming(latency_cycles=1))]
    assert results[0].dumps[0] == results[1].dumps[0] == results[2].dumps[0]
    assert results[2].cycles < results[0].cycles < results[1].cycles


def test_the_host_limits_a_program_of_many_small_commands():
    settings = [issue("sta", "set_source", row_step=4096 * index) for index in range(1, 200)]
    result = run_fast(preset("base"), Program((Function("main", "", (*settings, issue("sta", "fence"))),)))
    assert result.commands == 200
    assert result.cycles >= result.instructions >= 2 * 199
    # Nothing but the pace of the host: start, operands, fence.
    assert result.cycles <= 2 * 199 + 100


def load(address, *flags):
    return (issue("lda", "set_row", chunk_bytes=16, chunks=1), issue("lda", "set_step", row_step=16),
            issue("lda", "set_layout", channels=16), issue("lda", "linear", *flags, address=address, rows=1))


def program_of(*statements):
    return Program((Function("main", "", (*statements, issue("sta", "fence"))),))


def test_a_breach_ends_the_run_with_a_fault():
    result = run_fast(preset("base"), program_of(*load(MAIN_BASE), *load(MAIN_BASE + 4090)), [], EVERYWHERE,
                      memory_bytes=8192)
    assert (result.stop_reason, result.fault) == ("fault", Fault(1, MAIN_BASE + 4088))
    assert str(result.fault) == "read outside the windows at 0x80000ff8"
    assert result.words_read == 2


def test_what_cannot_be_executed_is_an_error():
    with pytest.raises(ExecutionError, match="waits for out_ready"):
        run_fast(preset("base"), program_of(issue("sta", "memory", "wait_out_ready", address=MAIN_BASE, rows=1)))


def test_sums_that_nobody_drains_block_the_fence():
    settings = (issue("conv", "set_shape", tiles_x=8, runs=1, kernel_x=1, kernel_y=1), issue("conv", "set_tile_step"),
                issue("conv", "set_kernel_step"), issue("conv", "set_group_step"))
    run = issue("conv", "run", tiles_y=8, groups=1)
    message = r"^Program must end, but 1 commands never do; commands are left in the queues of no unit$"
    with pytest.raises(ExecutionError, match=message):
        run_fast(preset("base"), program_of(*settings, run))


def test_images_and_dumps_must_fit_memory():
    with pytest.raises(ValueError, match=r"1024 bytes .*0x800003fc$"):
        run_fast(preset("base"), program_of(), [(MAIN_BASE + 1020, bytes(8))], memory_bytes=1024)
