"""A bus master sets windows, locks them, takes the interrupt and reads what the machine is, as the table says.

Run by tests/cocotb/test_command_registers.py; ``STALL`` as there. The master and the port are those of
bench_command_registers.
"""

import cocotb
from cocotb.triggers import RisingEdge

from tests.cocotb.bench_command_registers import Bench, payload
from tilewright.isa.assembler import command as make
from tilewright.isa.assembler import encode_word
from tilewright.isa.command_port import REFUSED
from tilewright.isa.machine import preset
from tilewright.isa.memory import WINDOWS
from tilewright.isa.registers.capability import capability
from tilewright.isa.registers.host_registers import BY_HOST_REGISTER, HOST_REGISTERS, window_register

OFFSETS = {register.offset: register for register in HOST_REGISTERS}
RIGHTS = (1, 2, 3, 0)


async def start(dut):
    dut.done.value = 0
    return await Bench.start(dut)


async def read(bench, name):
    return await bench.read(BY_HOST_REGISTER[name].offset)


async def write(bench, name, value):
    return await bench.write(BY_HOST_REGISTER[name].offset, value)


def window(dut, index):
    """Return base, limit and rights at the output."""
    value = int(getattr(dut, f"windows__{index}").value)
    return value & 0xffff_ffff, value >> 32 & 0xffff_ffff, value >> 64


@cocotb.test(timeout_time=400, timeout_unit="us")
async def windows_are_what_is_written_until_they_are_locked(dut):
    bench = await start(dut)
    assert [window(dut, index) for index in range(WINDOWS)] == [(0, 0, 0)] * WINDOWS
    given = [(0x8000_0000 + 0x1000 * index, 0x8000_0fff + 0x1000 * index, RIGHTS[index]) for index in range(WINDOWS)]
    for index, values in enumerate(given):
        for part, value in zip(("base", "limit", "rights"), values, strict=True):
            name = window_register(index, part)
            assert await write(bench, name, value)
            assert await read(bench, name) == value
    await bench.cycles(2)
    assert [window(dut, index) for index in range(WINDOWS)] == given
    assert await write(bench, "lock", 1)
    assert await write(bench, "lock", 0)
    assert await read(bench, "lock") == 1
    assert not await bench.read("result") & REFUSED
    for index in range(WINDOWS):
        for part in ("base", "limit", "rights"):
            assert not await write(bench, window_register(index, part), 0xffff_ffff)
    assert await bench.read("result") & REFUSED
    assert await bench.write("control", 2)  # an abort, which unlocks nothing
    await bench.cycles(4)
    assert not await write(bench, "window0_rights", 3)
    assert [window(dut, index) for index in range(WINDOWS)] == given
    assert await bench.write("rs1", 5)
    word = encode_word(make("sta", "set_source", row_step=1), 0, 0)
    assert await bench.write("command", word)
    await bench.until_taken()
    assert bench.got == [payload(word, 5, 0)]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def constants_tell_the_machine_and_cannot_be_written(dut):
    bench = await start(dut)
    for name, value in capability(preset("base")).items():
        assert await read(bench, name) == value
        assert not await write(bench, name, value)
        assert await read(bench, name) == value


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def what_is_no_register_is_refused_and_changes_nothing(dut):
    bench = await start(dut)
    for offset in range(0x1c, 0x100, 4):
        done = await bench.master.read(offset, 4)
        assert (int(done.resp) == 0) == (offset in OFFSETS), hex(offset)
        assert await bench.write(offset, 0) == (offset in OFFSETS and OFFSETS[offset].access == "RW"), hex(offset)
    half = await bench.master.write(BY_HOST_REGISTER["window0_base"].offset, b"\xff\xff")
    assert int(half.resp) == 2
    assert await read(bench, "window0_base") == 0


@cocotb.test(timeout_time=100, timeout_unit="us")
async def each_cause_raises_the_interrupt_where_it_is_enabled(dut):
    bench = await start(dut)
    assert await read(bench, "interrupt_enable") == 1
    for enabled in range(4):
        assert await write(bench, "interrupt_enable", enabled)
        for cause in range(4):
            dut.done.value, dut.fault.value = cause & 1, cause >> 1
            await bench.cycles(3)
            await RisingEdge(dut.clk)
            assert bool(dut.irq.value) == bool(enabled & cause)
            assert await read(bench, "interrupt_cause") == cause
