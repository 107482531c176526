"""An integrator's bench of the Verilog package: pins alone, cocotbext-axi's master and memory, windows as registers.

Run by tests/cocotb/package/test_package_pins.py, which sets ``COPROCESSOR_MACHINE`` and ``PROGRAMS``. Each program of
random layers is run on memory that pauses, after one that was stopped, has breached its windows, was refused or reset.
"""

import logging
import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

from tests.cocotb.bench_coprocessor import (
    MACHINE,
    RECORD_BYTES,
    commands_of,
    execute,
    power_of_two,
    random_program,
    stall_every_channel,
)
from tilewright.isa.assembler import EncodedCommand, encode_word
from tilewright.isa.assembler import command as make
from tilewright.isa.command_port import BY_REGISTER, REFUSED
from tilewright.isa.counters import READ_OUTSIDE, STOPPED, WRITE_OUTSIDE
from tilewright.isa.memory import MAIN_BASE, WINDOWS, AddressWindow
from tilewright.isa.registers.capability import capability
from tilewright.isa.registers.host_registers import BY_HOST_REGISTER, window_register

PROGRAMS = int(os.environ["PROGRAMS"])
PERIOD_NS = 2
LONGEST_CYCLES = 4000
"""Before a stop or a reset."""


class Host:
    """A core with interrupts: a master that accesses registers by their names, and breaks rules when it is told to."""

    def __init__(self, dut, memory_bytes: int, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=memory_bytes)
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        for interface in (self.memory.write_if, self.memory.read_if, self.master.write_if, self.master.read_if):
            interface.log.setLevel(logging.WARNING)
        stall_every_channel(self.memory, rng, rng.choice((0.0, 0.3, 0.7)))

    async def reset(self) -> None:
        self.dut.rst.value = 1
        await self.cycles(self.rng.randrange(1, 4))
        self.dut.rst.value = 0
        await self.cycles(1)

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk)

    async def read(self, name: str) -> int:
        register = BY_REGISTER.get(name) or BY_HOST_REGISTER[name]
        done = await self.master.read(register.offset, 4)
        assert done.resp == AxiResp.OKAY
        return int.from_bytes(done.data, "little")

    async def write(self, name: str, value: int) -> bool:
        """Write a register; return whether that was right."""
        register = BY_REGISTER.get(name) or BY_HOST_REGISTER[name]
        done = await self.master.write(register.offset, value.to_bytes(4, "little"))
        return done.resp == AxiResp.OKAY

    async def set_windows(self, windows: tuple[AddressWindow, ...]) -> None:
        for index in range(WINDOWS):
            window = windows[index] if index < len(windows) else None
            values = (window.base, window.limit, window.readable | window.writable << 1) if window else (0, 0, 0)
            for part, value in zip(("base", "limit", "rights"), values, strict=True):
                assert await self.write(window_register(index, part), value)

    async def send(self, commands: list[EncodedCommand]) -> None:
        for command in commands:
            words = {"rs1": command.rs1, "rs2": command.rs2, "command": encode_word(command, 10, 11)}
            for name, value in words.items():
                assert await self.write(name, value)

    async def control(self, field: str) -> None:
        assert await self.write("control", BY_REGISTER["control"].field(field).mask)

    async def fence(self) -> int:
        """Wait for all commands; return the fault code."""
        await self.send([make("sta", "fence")])
        result = BY_REGISTER["result"]
        while (found := await self.read("result")) & result.field("pending").mask:
            pass
        return found & result.field("fault_code").mask


async def stopped(host: Host, commands: list[EncodedCommand]) -> None:
    """Stop a program at any cycle by another master, while a command may be held up."""
    sender = cocotb.start_soon(host.send(commands))
    await host.cycles(host.rng.randrange(20, LONGEST_CYCLES))
    await host.control("stop")
    await sender
    assert await host.fence() == STOPPED
    assert host.dut.irq.value == 0  # not enabled


async def breached(host: Host, commands: list[EncodedCommand], windows: tuple[AddressWindow, ...]) -> None:
    """Close a window that the program needs; what lies in it stays as it is."""
    closed = next(window for window in windows if window.writable)
    await host.set_windows(tuple(window for window in windows if window is not closed))
    size = min(closed.limit - MAIN_BASE, host.memory.size) - (closed.base - MAIN_BASE)
    before = host.memory.read(closed.base - MAIN_BASE, size)
    await host.send(commands)
    assert await host.fence() in (READ_OUTSIDE, WRITE_OUTSIDE)
    assert closed.base <= await host.read("fault_address") < closed.limit
    assert host.memory.read(closed.base - MAIN_BASE, size) == before
    await host.set_windows(windows)


async def refused(host: Host) -> None:
    """Write words that are no command, and to registers that cannot be written."""
    for name, value in (("command", 0x13), ("command", 0), ("result", 1), ("status", 1), ("identity", 1)):
        assert not await host.write(name, value)
    assert await host.read("result") & REFUSED


async def disturb(host: Host, number: int, commands: list[EncodedCommand],
                  windows: tuple[AddressWindow, ...]) -> None:
    """Bring the coprocessor into the state from which the next program starts."""
    kind = number % 4
    if kind == 0:
        await stopped(host, commands)
    elif kind == 1:
        await breached(host, commands, windows)
    elif kind == 2:
        await refused(host)
    if kind == 3:
        sender = cocotb.start_soon(host.send(commands))
        await host.cycles(host.rng.randrange(20, LONGEST_CYCLES))
        sender.cancel()
        await host.reset()
        assert not await host.read(window_register(0, "limit"))
        await host.set_windows(windows)
    else:
        await host.control("abort")
    assert await host.read("result") == 0


@cocotb.test()
@cocotb.parametrize(number=range(PROGRAMS))
async def each_program_is_exact_whatever_was_before_it(dut, number):
    rng = random.Random(number)
    compiled, contents = random_program(number % 7, count=2)
    size = power_of_two(compiled.memory_bytes)
    dut.stop_request.value = 0
    Clock(dut.clk, PERIOD_NS, unit="ns").start()
    host = Host(dut, size, rng)
    await host.reset()
    assert {name: await host.read(name) for name in capability(MACHINE)} == dict(capability(MACHINE))
    await host.set_windows(compiled.windows)
    fill(host, contents)
    await disturb(host, number, commands_of(compiled), compiled.windows)
    fill(host, contents)
    assert await host.write("lock", 1)
    assert not await host.write(window_register(0, "limit"), 0xffff_ffff)
    await host.control("abort")  # forgets the refusal, and keeps the lock
    assert await host.read("lock") == 1
    await host.send(commands_of(compiled))
    assert await host.fence() == 0
    found, expected = (np.frombuffer(bytes(each), np.int8).copy() for each in (
        host.memory.read(0, size), execute(compiled, contents, size).memory.bytes.tobytes()))
    for record in compiled.memory.records:  # they tell the time
        place = record - MAIN_BASE
        found[place:place + RECORD_BYTES] = expected[place:place + RECORD_BYTES] = 0
    np.testing.assert_array_equal(found, expected)


def fill(host: Host, contents: dict[int, bytes]) -> None:
    """Put a program's tensors into memory."""
    host.memory.write(0, b"\x55" * host.memory.size)
    for address, data in contents.items():
        host.memory.write(address - MAIN_BASE, data)
