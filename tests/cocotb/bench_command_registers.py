"""A bus master with pauses on all five channels sends commands; what leaves the port is held to what was written.

Run by tests/cocotb/test_command_registers.py, which sets ``STALL``, the probability of a pause in each cycle, and
``COUNT``. The master is cocotbext-axi's, which checks responses against what it has asked for.
"""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from tilewright.isa.assembler import command as make
from tilewright.isa.assembler import encode_word
from tilewright.isa.command_port import BY_REGISTER, REFUSED
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import preset

STALL, COUNT = float(os.environ["STALL"]), int(os.environ["COUNT"])
DEPTH = 8
VARIANTS = variants_of(preset("base"))
FENCE = encode_word(make("sta", "fence"), 0, 0)
FENCE_BITS = 7 << 29 | 7 << 12
REFUSED_WORDS = [0, 0xFFFFFFFF, 0x0000002B, 0x0000000B | 7 << 12, FENCE | 1 << 25, FENCE & ~0x7F | 0x5B]
PENDING = BY_REGISTER["result"].field("pending").mask
OUTSIDE = (0x1C, 0x20, 0x100, 0x800, 0xFFC)


class Bench:
    """The port after reset, its master, and the commands that have left it."""

    def __init__(self, dut, stall):
        self.dut, self.stall, self.got, self.hold = dut, stall, [], False
        self.stops = self.aborts = 0
        self.rng = random.Random(random.random())
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_"), dut.clk, dut.rst)
        writes, reads = self.master.write_if, self.master.read_if
        for channel in (writes.aw_channel, writes.w_channel, writes.b_channel, reads.ar_channel, reads.r_channel):
            channel.set_pause_generator(self.pauses())

    def pauses(self):
        while True:
            yield self.rng.random() < self.stall

    @classmethod
    async def start(cls, dut, stall=STALL):
        Clock(dut.clk, 2, unit="ns").start()
        for name in ("commands__ready", "idle", "quiet", "fault", "fault_code", "fault_address"):
            getattr(dut, name).value = 0
        bench = cls(dut, stall)
        dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        cocotb.start_soon(bench.take())
        for _ in range(3):
            await RisingEdge(dut.clk)
        return bench

    async def take(self):
        """Take commands, not in each cycle; an offer that is not taken must stand."""
        dut, offered = self.dut, None
        while True:
            await FallingEdge(dut.clk)
            ready = not self.hold and self.rng.random() >= self.stall
            dut.commands__ready.value = ready
            command = int(dut.commands__payload.value) if dut.commands__valid.value else None
            assert offered is None or command == offered, "a command that was offered has changed"
            if ready and command is not None:
                self.got.append(command)
            self.stops += bool(dut.stop.value)
            self.aborts += bool(dut.abort.value)
            offered = None if ready or dut.abort.value else command
            await RisingEdge(dut.clk)

    async def write(self, register, value):
        """Write a register; return whether that was accepted."""
        address = _offset(register)
        done = await self.master.write(address, value.to_bytes(4, "little"))
        assert done.resp in (AxiResp.OKAY, AxiResp.SLVERR)
        return done.resp == AxiResp.OKAY

    async def read(self, register):
        """Return the value of a register."""
        done = await self.master.read(_offset(register), 4)
        assert done.resp == AxiResp.OKAY
        return int.from_bytes(done.data, "little")

    async def until_taken(self):
        """Wait until the port has passed on all it has, as software does."""
        while await self.read("result") & PENDING:
            pass

    async def cycles(self, count):
        for _ in range(count):
            await RisingEdge(self.dut.clk)


def _offset(register):
    return BY_REGISTER[register].offset if isinstance(register, str) else register


def payload(word, rs1, rs2):
    """Return a command as the stream carries it: the fields of `rtl.stream.commands.Command`, lowest first."""
    return (word >> 12 & 7) | (word >> 29) << 3 | (word >> 25 & 15) << 6 | rs1 << 10 | rs2 << 42


def draw(rng):
    """Return the word of a random instruction, register numbers that say nothing among it."""
    instruction, variant = rng.choice(VARIANTS)
    flags = sum(1 << i for i, flag in enumerate(variant.flags) if flag is not None and rng.random() < 0.5)
    return ((variant.code << 4 | flags) << 25 | rng.getrandbits(10) << 15 | instruction.funct3 << 12
            | rng.getrandbits(5) << 7 | 0x0B)


async def look(bench):
    """Read all registers, again and again, beside the writes."""
    while True:
        for name in BY_REGISTER:
            await bench.read(name)


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def each_command_comes_once_and_in_order(dut):
    bench = await Bench.start(dut)
    looking = cocotb.start_soon(look(bench))
    rng, expected, operands, writes = random.Random(random.random()), [], {"rs1": 0, "rs2": 0}, []
    for _ in range(COUNT):
        for name in operands:
            if rng.random() < 0.7:
                operands[name] = rng.getrandbits(32)
                writes.append((name, operands[name], True))
        if rng.random() < 0.1:
            writes.append(("command", rng.choice(REFUSED_WORDS), False))
        word = draw(rng)
        while word & FENCE_BITS == FENCE & FENCE_BITS and operands["rs1"] & 1:  # no abort, which overtakes others
            word = draw(rng)
        writes.append(("command", word, True))
        expected.append(payload(word, operands["rs1"], operands["rs2"]))
    # All are given to the master at once, so that addresses and data run ahead of each other and of the responses.
    asked = [(bench.master.init_write(BY_REGISTER[name].offset, value.to_bytes(4, "little")), right)
             for name, value, right in writes]
    for event, right in asked:
        await event.wait()
        assert (event.data.resp == AxiResp.OKAY) == right
    await bench.until_taken()
    looking.cancel()
    assert len(bench.got) == COUNT
    assert bench.got == expected
    assert await bench.read("result") & REFUSED


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_full_queue_holds_the_response_back_and_nothing_else(dut):
    bench = await Bench.start(dut)
    bench.hold = True
    await bench.cycles(2)
    word = encode_word(make("sta", "set_source", row_step=1), 0, 0)
    for place in range(DEPTH):
        assert await bench.read("status") & 1
        assert await bench.write("rs1", place)
        assert await bench.write("command", word)
    assert not await bench.read("status") & 1
    late = bench.master.init_write(BY_REGISTER["command"].offset, word.to_bytes(4, "little"))
    await bench.cycles(200)
    assert not late.is_set()
    assert await bench.read("result") & PENDING
    assert bench.got == []
    bench.hold = False
    await late.wait()
    await bench.until_taken()
    assert bench.got == [payload(word, place, 0) for place in (*range(DEPTH), DEPTH - 1)]


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(chosen=["stop", "abort"])
async def control_is_taken_at_once_while_a_command_is_held_up(dut, chosen):
    bench = await Bench.start(dut)
    bench.hold = True
    await bench.cycles(2)
    word, bit = encode_word(make("sta", "set_source", row_step=1), 0, 0), BY_REGISTER["control"].field(chosen).mask
    for _ in range(DEPTH):
        assert await bench.write("command", word)
    held = bench.master.init_write(BY_REGISTER["command"].offset, word.to_bytes(4, "little"))
    await bench.cycles(40)
    control = bench.master.init_write(BY_REGISTER["control"].offset, bit.to_bytes(4, "little"))
    after = bench.master.init_write(BY_REGISTER["rs1"].offset, (7).to_bytes(4, "little"))
    await bench.cycles(40 if STALL < 0.5 else 400)
    assert (bench.stops, bench.aborts) == ((1, 0) if chosen == "stop" else (0, 1))
    assert held.is_set() == (chosen == "abort")
    bench.hold = False
    for event in (held, control, after):
        await event.wait()
        assert event.data.resp == AxiResp.OKAY
    assert await bench.write("command", word)
    await bench.until_taken()
    sent = payload(word, 0, 0)
    assert bench.got == [*([sent] * (DEPTH + 1) if chosen == "stop" else []), payload(word, 7, 0)]
    assert (bench.stops, bench.aborts) == ((1, 0) if chosen == "stop" else (0, 1))


@cocotb.test(timeout_time=100, timeout_unit="us")
async def registers_keep_bytes_and_refuse_what_is_not_theirs(dut):
    bench = await Bench.start(dut)
    assert await bench.write("rs1", 0x11223344)
    await bench.master.write(BY_REGISTER["rs1"].offset + 1, b"\xaa")
    await bench.master.write(BY_REGISTER["rs2"].offset + 2, b"\xbb\xcc")
    assert (await bench.read("rs1"), await bench.read("rs2")) == (0x1122AA44, 0xCCBB0000)
    assert await bench.read("result") == 0
    half = await bench.master.write(BY_REGISTER["command"].offset, FENCE.to_bytes(4, "little")[:2])
    assert half.resp == AxiResp.SLVERR
    assert await bench.read("result") == REFUSED
    # An abort, which has bit 0 of rs1, forgets it.
    assert await bench.write("rs1", 1)
    assert await bench.write("command", FENCE)
    await bench.until_taken()
    assert await bench.read("result") == 0
    for register in ("result", "status", "fault_address", *OUTSIDE):
        assert not await bench.write(register, 0)
        assert await bench.read("result") == REFUSED
    for offset in OUTSIDE:
        assert (await bench.master.read(offset, 4)).resp == AxiResp.SLVERR
    assert bench.got == []
    assert bench.aborts == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_state_of_the_coprocessor_can_be_read(dut):
    bench = await Bench.start(dut)
    for idle, fault, code, address, quiet in ((1, 0, 0, 0, 1), (0, 1, 9, 0x8000_1234, 0), (0, 1, 3, 0xFFFF_FFFC, 1)):
        dut.idle.value, dut.fault.value, dut.quiet.value = idle, fault, quiet
        dut.fault_code.value, dut.fault_address.value = code, address
        await bench.cycles(2)
        assert await bench.read("status") == 1 | idle << 1 | fault << 2 | quiet << 3
        assert await bench.read("result") == code
        assert await bench.read("fault_address") == address


@cocotb.test(timeout_time=10, timeout_unit="us")
async def a_write_takes_two_cycles(dut):
    bench = await Bench.start(dut, stall=0.0)
    events = [bench.master.init_write(0, bytes(4)) for _ in range(50)]
    begin = cocotb.utils.get_sim_time("ns")
    for event in events:
        await event.wait()
    assert cocotb.utils.get_sim_time("ns") - begin <= 2 * (2 * len(events) + 8)
