"""Programs through the whole coprocessor on cocotbext-axi's memory, which stalls at random: memory as in the engine.

Programs are those of random layers: all seven instructions, every semaphore, several layers in flight at once. Run by
tests/cocotb/test_coprocessor.py, which sets ``COPROCESSOR_MACHINE``.
"""

import os
import random
import struct
from functools import cache

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiRam

from tests.support.machines import MACHINES
from tests.support.random_layers import random_layer
from tests.support.side_by_side import side_by_side
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.plan.planner import DoesNotFitError, plan_layer
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.counters import COUNTERS, FAULT_WORD, RECORD_WORDS
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.memory import MAIN_BASE
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory

MACHINE = MACHINES[os.environ["COPROCESSOR_MACHINE"]]
LAYERS = 5
RECORD_BYTES = 4 * RECORD_WORDS
DEADLINE_CYCLES = 400_000
QUIET_CYCLES = 2_000  # after a fault, for what might yet come
STATUS_SEMAPHORES = 11  # where they begin in the port ``status``


@cache
def random_program(seed: int, count: int = LAYERS) -> tuple[Compiled, dict[int, bytes]]:
    """Return compiled layers, and contents of memory before the start by address."""
    rng = np.random.default_rng(seed)
    layers = []
    while len(layers) < count:
        layer = random_layer(rng, longest=9, widest=20)
        try:
            plan_layer(layer, MACHINE)
        except DoesNotFitError:
            continue
        layers.append(layer)
    compiled = compile_layers(side_by_side(layers), MACHINE, keep_tensors=True)
    contents = dict(compiled.images)
    for info in compiled.network.inputs:
        contents[compiled.memory.tensors[info.name]] = rng.integers(0, 256, info.shape, dtype=np.uint8).tobytes()
    return compiled, contents


def commands_of(compiled: Compiled) -> list[EncodedCommand]:
    return [command for _, command in compiled.program.commands()]


def execute(compiled: Compiled, contents: dict[int, bytes], size: int) -> Executor:
    """Return the functional engine when the program has ended; memory that nobody set is 0x55."""
    memory = MainMemory(size, compiled.windows)
    memory.bytes[:] = 0x55
    for address, data in contents.items():
        memory.bytes[address - MAIN_BASE:][:len(data)] = np.frombuffer(data, np.int8)
    engine = Executor(MACHINE, memory)
    engine.run(commands_of(compiled))
    return engine


def payload(command: EncodedCommand) -> int:
    """Return the bits of `rtl.stream.commands.Command`."""
    variant, flags = command.funct7 >> 4, command.funct7 & 15
    return command.funct3 | variant << 3 | flags << 6 | command.rs1 << 10 | command.rs2 << 42


async def start(dut, compiled: Compiled, contents: dict[int, bytes], size: int) -> AxiRam:
    """Set the windows, fill the memory and reset."""
    Clock(dut.clk, 2, unit="ns").start()
    dut.commands__valid.value = 0
    dut.stop_request.value = dut.abort_request.value = dut.waits.value = 0
    for index in range(4):
        window = compiled.windows[index] if index < len(compiled.windows) else None
        value = window and window.base | window.limit << 32 | window.readable << 64 | window.writable << 65
        getattr(dut, f"windows__{index}").value = value or 0
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    memory = AxiRam(AxiBus.from_prefix(dut, "m_axi_"), dut.clk, size=size)
    memory.write(0, b"\x55" * size)
    for address, data in contents.items():
        memory.write(address - MAIN_BASE, data)
    await RisingEdge(dut.clk)
    return memory


def stall_every_channel(memory: AxiRam, rng: random.Random, probability: float) -> None:
    def coin(own: random.Random):
        while True:
            yield own.random() < probability

    for channel in (memory.write_if.aw_channel, memory.write_if.w_channel, memory.write_if.b_channel,
                    memory.read_if.ar_channel, memory.read_if.r_channel):
        channel.set_pause_generator(coin(random.Random(rng.random())))


async def send(dut, commands: list[EncodedCommand], rng: random.Random, pause: float) -> None:
    for command in commands:
        while rng.random() < pause:
            await RisingEdge(dut.clk)
        dut.commands__payload.value = payload(command)
        dut.commands__valid.value = 1
        waited = 0
        while True:
            await RisingEdge(dut.clk)
            if dut.commands__ready.value:
                break
            waited += 1
            assert waited < DEADLINE_CYCLES, f"{command} was never taken; status {int(dut.status.value):#x}"
        dut.commands__valid.value = 0


async def until_idle(dut) -> None:
    for _ in range(DEADLINE_CYCLES):
        await RisingEdge(dut.clk)
        if dut.idle.value:
            return
    raise AssertionError(f"coprocessor must come to rest; status {int(dut.status.value):#x}")


def power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


@cocotb.test()
@cocotb.parametrize((("seed", "stall"), [(seed, (0.0, 0.3, 0.7)[seed % 3]) for seed in range(7)]))
async def memory_ends_as_in_the_functional_engine(dut, seed, stall):
    rng = random.Random(seed)
    compiled, contents = random_program(seed)
    size = power_of_two(compiled.memory_bytes)
    engine = execute(compiled, contents, size)
    memory = await start(dut, compiled, contents, size)
    if stall:
        stall_every_channel(memory, rng, stall)
    await send(dut, commands_of(compiled), rng, pause=rng.choice([0.0, 0.2, 0.8]))
    await until_idle(dut)
    assert not dut.fault.value

    found, expected = np.frombuffer(memory.read(0, size), np.int8).copy(), engine.memory.bytes.copy()
    records = [address - MAIN_BASE for address in compiled.memory.records]
    last = dict(zip((counter.name for counter in COUNTERS), found[records[-1]:][:RECORD_BYTES].view("<u4").tolist(),
                    strict=False))
    for record in records:  # they tell the time, which is the memory's doing
        found[record:record + RECORD_BYTES] = expected[record:record + RECORD_BYTES] = 0
    np.testing.assert_array_equal(found, expected)
    assert last["memory_read"] == engine.memory.words_read * MACHINE.bus_bytes
    assert last["memory_written"] == engine.memory.bytes_written - RECORD_BYTES
    assert sum(value for name, value in last.items() if name.startswith("mac_")) == last["cycles"]
    available = int(dut.status.value) >> STATUS_SEMAPHORES
    assert {semaphore.name for i, semaphore in enumerate(SEMAPHORES) if available >> i & 1} == {
        name for name, count in engine.state.semaphores.items() if count}


@cocotb.test()
@cocotb.parametrize(seed=range(3))
async def after_a_fault_commands_are_dropped_and_records_alone_are_written(dut, seed):
    """The outputs' window is closed, so the first store breaches; all that follows must be taken, the fence too."""
    compiled, contents = random_program(seed)
    size = power_of_two(compiled.memory_bytes)
    memory = await start(dut, compiled, contents, size)
    outputs = min(compiled.memory.tensors[info.name] for info in compiled.network.outputs)
    for index, window in enumerate(compiled.windows):
        if window.base <= outputs < window.limit:
            getattr(dut, f"windows__{index}").value = 0
    before = memory.read(0, size)
    await send(dut, commands_of(compiled), random.Random(seed), pause=0.0)
    for _ in range(QUIET_CYCLES):
        await RisingEdge(dut.clk)
    assert dut.fault.value
    assert int(dut.fault_code.value) == 2
    assert int(dut.fault_address.value) >= outputs // MACHINE.bus_bytes * MACHINE.bus_bytes
    assert not dut.idle.value
    after = bytearray(memory.read(0, size))
    for record in compiled.memory.records:
        words = struct.unpack_from(f"<{RECORD_WORDS}I", after, record - MAIN_BASE)
        assert words[FAULT_WORD] in (2, 0x55555555), "a record that was written must tell the fault"
        after[record - MAIN_BASE:record - MAIN_BASE + RECORD_BYTES] = before[record - MAIN_BASE:][:RECORD_BYTES]
    assert bytes(after) == before
