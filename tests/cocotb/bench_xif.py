"""A model of the stages ID, EX and WB of a CV32E40X offers instructions to the adapter; a scoreboard reads commands.

The model follows cv32e40x_id_stage, cv32e40x_controller_fsm and cv32e40x_wb_stage of version 0.6.0: an offer may be
withdrawn, an instruction flushed from EX is committed with kill, one flushed from ID not at all, and its id
comes again.
"""

import os
import random
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

from tilewright.isa.assembler import command as make
from tilewright.isa.assembler import encode_word
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import preset

CSRRW, OTHER_CUSTOM = 0x30001073, 0x0000002B
FENCE = encode_word(make("sta", "fence"), 0, 0)
FENCE_CODES = (6, 7, 0)
FAULT_CODE = 3
VARIANTS = [(i, v) for i, v in variants_of(preset("base")) if v.unit != "host"]
NOT_OURS = [
    CSRRW, OTHER_CUSTOM, 0xFFFFFFFF, 0x0000000B | 7 << 12,   # a CSR access, another space, nothing, funct3 7
    0x0000000B | 1 << 7,                                     # rd = x1
    FENCE | 1 << 25,                                         # a flag the fence has not
]


@dataclass
class Instruction:
    """An instruction on its way; ``plain`` ones are not offered."""

    word: int
    rs1: int
    rs2: int
    ours: bool
    plain: bool = False
    id: int = 0
    issued: bool = False
    committed: bool = False

    @property
    def rd(self):
        return self.word >> 7 & 31 if self.ours else 0

    @property
    def command(self):
        return (self.word >> 12 & 7, self.word >> 29, self.word >> 25 & 15, self.rs1, self.rs2)

    @property
    def aborts(self):
        return self.ours and self.command[:3] == FENCE_CODES and self.rs1 & 1


def draw(rng):
    kind = rng.random()
    rs1, rs2 = rng.getrandbits(32), rng.getrandbits(32)
    if kind < 0.15:
        return Instruction(0x13, 0, 0, ours=False, plain=True)
    if kind < 0.25:
        return Instruction(rng.choice(NOT_OURS), rs1, rs2, ours=False)
    if kind < 0.28:
        return Instruction(FENCE | rng.choice((0, 10)) << 7, rs1 & ~3, rs2, ours=True)
    if kind < 0.29:
        return Instruction(FENCE, 2, 0, ours=True)   # notify, which waits for nothing
    if kind < 0.30:
        return Instruction(FENCE, 1, 0, ours=True)   # an abort
    instruction, variant = rng.choice(VARIANTS)
    flags = sum(1 << i for i, flag in enumerate(variant.flags) if flag is not None and rng.random() < 0.5)
    word = (variant.code << 4 | flags) << 25 | rng.getrandbits(10) << 15 | instruction.funct3 << 12 | 0x0B
    return Instruction(word, rs1, rs2, ours=True)


class Core:
    """Three stages; ``step`` is one cycle between the settled outputs and the rising edge."""

    def __init__(self, dut, rng, count, stall, flush):
        self.dut, self.rng, self.count, self.stall, self.flush = dut, rng, count, stall, flush
        self.decode = self.execute = self.write = None
        self.next_id = 0
        self.expected = []
        self.aborts = 0
        self.aborts_now = False
        self.fetched = 0

    @property
    def done(self):
        return self.fetched == self.count and not (self.decode or self.execute or self.write)

    def drive(self):
        """Set the inputs of this cycle."""
        dut, rng = self.dut, self.rng
        if self.decode is None and self.fetched < self.count:
            self.decode = draw(rng)
            self.decode.id = self.next_id
            self.fetched += 1
        self.flushes_decode = self.decode is not None and rng.random() < self.flush
        can_flush = self.execute is None or not self.execute.committed     # what is committed will retire
        self.flushes_execute = self.flushes_decode and can_flush and rng.random() < 0.5
        self.execute_halted = rng.random() < self.stall and not self.flushes_execute
        self.write_halted = rng.random() < self.stall     # an older load, say
        offer = self.decode
        offered = offer is not None and not offer.plain and not offer.issued and not self.flushes_decode
        offered = offered and rng.random() >= self.stall / 2     # withdrawn now and then
        dut.issue_valid.value = offered
        if offered:
            dut.issue_instr.value = offer.word
            dut.issue_id.value = offer.id
            dut.issue_rs1.value = offer.rs1
            dut.issue_rs2.value = offer.rs2
        dut.issue_rs_valid.value = 3
        self.offered = offered
        execute = self.execute
        commits = (execute is not None and not execute.plain and not execute.committed
                   and (self.flushes_execute or not self.execute_halted))
        dut.commit_valid.value = commits
        if commits:
            dut.commit_id.value = execute.id
            dut.commit_kill.value = self.flushes_execute or not execute.ours
        self.commits = commits
        dut.result_ready.value = self.write is not None

    def step(self):
        """Read the outputs and move the instructions on."""
        dut = self.dut
        if self.offered:
            assert bool(dut.accept.value) == self.decode.ours, hex(self.decode.word)
            assert bool(dut.writeback.value) == (self.decode.rd != 0)
            self.decode.issued = bool(dut.issue_ready.value)
        if self.commits:
            self.execute.committed = True
            if self.execute.ours and not self.flushes_execute and not self.execute.aborts:
                self.expected.append(self.execute.command)
        self.aborts_now = bool(self.commits and not self.flushes_execute and self.execute.aborts)
        self.aborts += self.aborts_now
        assert bool(dut.abort.value) == self.aborts_now
        if self.write is not None:
            # Withholding a result hangs this core if a load comes next.
            assert dut.result_valid.value
            assert int(dut.result_id.value) == self.write.id
            assert int(dut.result_rd.value) == self.write.rd
            assert bool(dut.result_we.value) == (self.write.rd != 0)
            assert int(dut.result_data.value) == FAULT_CODE
            self.write = None
        if self.flushes_execute:
            self.execute = None
        if self.execute is not None and self.write is None and not self.write_halted:
            if self.execute.plain or self.execute.committed:
                answered = self.execute.ours and not self.execute.plain
                self.write = self.execute if answered else None
                self.execute = None
        if self.flushes_decode:
            self.decode = None    # its id comes again
        elif self.decode is not None and self.execute is None and (self.decode.plain or self.decode.issued):
            if not self.decode.plain:
                self.next_id = (self.decode.id + 1) % 16
            self.execute, self.decode = self.decode, None


async def start(dut):
    Clock(dut.clk, 2, unit="ns").start()
    for name in ("issue_valid", "commit_valid", "result_ready", "commands__ready", "idle", "fault_code"):
        getattr(dut, name).value = 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    dut.rst.value = 0


def taken_command(dut):
    bits = int(dut.commands__payload.value)
    fields = []
    for width in (3, 3, 4, 32, 32):
        fields.append(bits & (1 << width) - 1)
        bits >>= width
    return tuple(fields)


@cocotb.test()
async def commands_are_those_committed_and_no_result_waits(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    stall, flush = float(os.environ["STALL"]), float(os.environ["FLUSH"])
    core = Core(dut, rng, int(os.environ["COUNT"]), stall, flush)
    await start(dut)
    dut.fault_code.value = FAULT_CODE
    received, cycles, working = [], 0, 0
    while not (core.done and len(received) == len(core.expected)):
        await Timer(0.5, "ns")
        core.drive()
        # The coprocessor works for some cycles after each command, and is idle otherwise.
        dut.idle.value = working == 0
        ready = rng.random() >= stall
        dut.commands__ready.value = ready
        await ReadOnly()
        core.step()
        if ready and dut.commands__valid.value:
            received.append(taken_command(dut))
            assert received == core.expected[:len(received)]
            if received[-1][:3] == FENCE_CODES and not received[-1][3] & 3:
                assert working == 0, "a fence left while the coprocessor was at work"
            else:
                working = rng.randrange(1, 12)
        elif working:
            working -= 1
        if core.aborts_now:  # what has not left yet never does
            core.expected = received.copy()
        cycles += 1
        assert cycles < 100 * core.count, "the adapter has jammed"
        await RisingEdge(dut.clk)
    assert len(received) > core.count / 4
    assert any(command[:3] == FENCE_CODES for command in received)
    assert core.aborts


@cocotb.test()
async def takes_one_instruction_per_cycle(dut):
    """Offer legal instructions back to back; each is at the command port two cycles after its issue."""
    await start(dut)
    dut.commands__ready.value = 1
    dut.idle.value = 1
    dut.issue_rs_valid.value = 3
    dut.commit_kill.value = 0
    for cycle in range(50):
        await Timer(0.5, "ns")
        dut.issue_valid.value = 1
        dut.issue_instr.value = encode_word(make("conv", "set_group_step"), 10, 11)
        dut.issue_rs1.value = cycle
        dut.issue_id.value = cycle % 16
        dut.commit_valid.value = cycle > 0
        dut.commit_id.value = (cycle - 1) % 16
        dut.result_ready.value = cycle > 1
        await ReadOnly()
        assert dut.issue_ready.value
        assert dut.accept.value
        if cycle > 1:
            assert dut.result_valid.value
            assert dut.commands__valid.value
            assert taken_command(dut)[3] == cycle - 2
        await RisingEdge(dut.clk)


@cocotb.test()
async def a_command_killed_or_vanished_leaves_no_trace(dut):
    await start(dut)
    dut.idle.value = 1
    dut.commands__ready.value = 1
    dut.issue_rs_valid.value = 3
    dut.issue_rs1.value = 0
    word = encode_word(make("sta", "status"), 10, 11)

    async def cycle(issue=None, commit=None, kill=0):
        await Timer(0.5, "ns")
        dut.issue_valid.value = issue is not None
        if issue is not None:
            dut.issue_instr.value, dut.issue_id.value = issue
        dut.commit_valid.value = commit is not None
        dut.commit_id.value = commit or 0
        dut.commit_kill.value = kill
        await ReadOnly()
        taken = bool(dut.commands__valid.value)
        accepted = bool(dut.issue_ready.value) if issue is not None else None
        await RisingEdge(dut.clk)
        return taken, accepted

    assert await cycle(issue=(word, 3)) == (False, True)
    assert await cycle(commit=3, kill=1) == (False, None)
    assert await cycle() == (False, None)
    # Accepted in ID, flushed; the fence that comes next has its id and must not wait for it.
    assert await cycle(issue=(word, 4)) == (False, True)
    assert await cycle() == (False, None)
    assert await cycle(issue=(FENCE, 4)) == (False, True)
    assert await cycle(commit=4) == (False, None)
    assert (await cycle())[0]
    assert not (await cycle())[0]


@cocotb.test()
async def an_abort_waits_for_no_full_queue_and_forgets_it(dut):
    await start(dut)
    dut.idle.value = 0
    dut.commands__ready.value = 0
    dut.issue_rs_valid.value = 3
    dut.commit_kill.value = 0
    dut.result_ready.value = 1
    word, number, issued = encode_word(make("conv", "set_group_step"), 10, 11), 0, None
    for attempt in range(40):
        await Timer(0.5, "ns")
        dut.issue_valid.value = 1
        dut.issue_instr.value, dut.issue_id.value = (word, number) if attempt < 30 else (FENCE, number)
        dut.issue_rs1.value = 1
        dut.commit_valid.value = issued is not None
        dut.commit_id.value = issued or 0
        await ReadOnly()
        if attempt == 29:
            assert not dut.issue_ready.value
            assert dut.commands__valid.value
        if attempt == 31:
            assert dut.abort.value
        if attempt == 32:
            assert not dut.commands__valid.value
            return
        issued = number if dut.issue_ready.value else None
        number = (number + (issued is not None)) % 16
        await RisingEdge(dut.clk)
