"""A core that does whatever the CV-X-IF 1.0 specification allows offers instructions; a scoreboard reads commands.

Written from the specification (docs/source/x_ext.rst of openhwgroup/core-v-xif at 1.0.0), not from the adapter: offers
are withdrawn, ids skip numbers, decisions come at any time from the first cycle of an offer on, one for many, and
operands with the offer or, in any order, after it.
"""

import os
import random
from collections import deque
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

from tests.cocotb.bench_xif import FENCE, FENCE_CODES, NOT_OURS, VARIANTS, taken_command
from tilewright.isa.assembler import command as make
from tilewright.isa.assembler import encode_word

FAULT_CODE = 5
IDS = 16
WORD = encode_word(make("conv", "set_group_step"), 10, 11)
ABORT, NOTIFY = 1, 2


@dataclass(eq=False)
class Instruction:
    """An instruction and how far it is; cycles are those in which a thing became so."""

    word: int
    rs1: int
    rs2: int
    ours: bool
    hart: int
    id: int
    rs_valid: int = 0
    issued: int | None = None
    known: int | None = None
    committed: bool = False
    dead: bool = False
    told: bool = False

    @property
    def rd(self):
        return self.word >> 7 & 31

    @property
    def command(self):
        return (self.word >> 12 & 7, self.word >> 29, self.word >> 25 & 15, self.rs1, self.rs2)

    @property
    def fence(self):
        return self.ours and self.command[:3] == FENCE_CODES

    @property
    def aborts(self):
        return self.fence and bool(self.rs1 & ABORT)

    @property
    def undecided(self):
        return not self.committed and not self.dead


def draw(rng, hart, number):
    kind = rng.random()
    rs1, rs2 = rng.getrandbits(32), rng.getrandbits(32)
    if kind < 0.1:
        return Instruction(rng.choice(NOT_OURS), rs1, rs2, False, hart, number)
    if kind < 0.16:
        operand = rng.choice((rs1 & ~3, rs1 & ~3, NOTIFY, ABORT))
        return Instruction(FENCE | rng.choice((0, 10)) << 7, operand, rs2, True, hart, number)
    instruction, variant = rng.choice(VARIANTS)
    flags = sum(1 << i for i, flag in enumerate(variant.flags) if flag is not None and rng.random() < 0.5)
    word = (variant.code << 4 | flags) << 25 | rng.getrandbits(10) << 15 | instruction.funct3 << 12 | 0x0B
    return Instruction(word, rs1, rs2, True, hart, number)


class Core:
    """``drive`` sets the inputs of a cycle, ``step`` reads the settled outputs before the rising edge."""

    def __init__(self, dut, rng, count, pause, kill, *, split, at_issue):
        self.dut, self.rng, self.left, self.pause, self.kill = dut, rng, count, pause, kill
        self.split, self.at_issue = split, at_issue
        self.cycle = 0
        self.offer = None
        self.flight = []        # issued, until their results or what ends them without
        self.expected = deque() # instructions whose commands must come, in order
        self.last_id, self.hart = rng.randrange(IDS), 0
        self.results, self.kills, self.aborted, self.batches, self.early = 0, 0, 0, 0, 0
        self.standing, self.gap = None, False

    @property
    def done(self):
        return not (self.left or self.offer or self.flight or self.expected)

    def drive(self):
        self.cycle += 1
        self._drive_offer()
        self._drive_registers()
        self._drive_commit()
        self.dut.result_ready.value = self.rng.random() >= self.pause

    def _new_id(self):
        """Return an id behind the newest and before the oldest in flight, or None."""
        fresh = (self.last_id + self.rng.choice((1, 1, 1, 2, 3))) % IDS
        if not self.flight:
            return fresh
        oldest = self.flight[0].id
        return fresh if (fresh - oldest) % IDS > (self.last_id - oldest) % IDS else None

    def _drive_offer(self):
        rng, offer = self.rng, self.offer
        self.offered = False
        if offer is not None and not offer.committed and rng.random() < self.pause / 4:
            self.offer = offer = None                       # withdrawn
            self.dut.issue_valid.value = 0
            return
        gap, self.gap = self.gap, False     # the same id in the next cycle would be the same transaction
        if offer is None and self.left and not gap and rng.random() >= self.pause:
            if rng.random() < 0.03:
                self.hart = rng.getrandbits(32)
            other = any(each.hart != self.hart for each in self.flight)
            number = (self.last_id + 1) % IDS if other else self._new_id()
            if number is not None:
                self.offer = offer = draw(rng, self.hart, number)
        self.offered = offer is not None
        self.dut.issue_valid.value = self.offered
        if self.offered:
            self.dut.issue_instr.value, self.dut.issue_id.value = offer.word, offer.id
            self.dut.issue_hartid.value = offer.hart

    def _drive_registers(self):
        dut, rng = self.dut, self.rng
        self.brings = None
        if self.split:
            waiting = [each for each in self.flight if each.known is None and not each.dead]
            if waiting and rng.random() >= self.pause:
                self.brings = rng.choice(waiting)
            valid = rng.randrange(4)                        # a core may leave the signal out
        elif self.offered:
            self.brings = self.offer
            self.offer.rs_valid |= rng.randrange(4) if rng.random() < self.pause else 3
            valid = self.offer.rs_valid
        dut.register_valid.value = self.brings is not None
        if self.brings is None:
            dut.register_rs1.value, dut.register_rs_valid.value = rng.getrandbits(32), 3
            return
        dut.register_id.value, dut.register_hartid.value = self.brings.id, self.brings.hart
        dut.register_rs_valid.value = valid
        dut.register_rs1.value = self.brings.rs1 if self.split or valid & 1 else rng.getrandbits(32)
        dut.register_rs2.value = self.brings.rs2 if self.split or valid & 2 else rng.getrandbits(32)

    def _drive_commit(self):
        dut, rng = self.dut, self.rng
        self.decided = ([], False)
        undecided = [each for each in self.flight if each.undecided]
        if self.offered and (not self.flight or self.flight[-1].hart == self.offer.hart) and self.offer.undecided:
            undecided.append(self.offer)
        dut.commit_valid.value = 0
        if self.at_issue:                                   # as CVA6 and CV32E40PX: again and again until it is issued
            if self.offered:
                self._decide(self.offer, kill=False, among=[self.offer])
        elif undecided and rng.random() >= self.pause:
            chosen = rng.choice(undecided)
            self._decide(chosen, kill=rng.random() < self.kill, among=undecided)
        elif self.flight and self.flight[0].committed and rng.random() < 0.2:
            # Of one that is decided, whose id is older than all others: to be ignored.
            self._send(self.flight[0], kill=False)

    def _decide(self, chosen, *, kill, among):
        place = among.index(chosen)
        self.decided = (among[place:] if kill else among[:place + 1], kill)
        self.batches += len(self.decided[0]) > 1
        self.early += self.offer in self.decided[0]
        self._send(chosen, kill=kill)

    def _send(self, chosen, *, kill):
        self.dut.commit_valid.value, self.dut.commit_kill.value = 1, kill
        self.dut.commit_id.value, self.dut.commit_hartid.value = chosen.id, chosen.hart

    def step(self):
        dut = self.dut
        issued = self.offered and bool(dut.issue_ready.value)
        if issued:
            self._check_response()
        if self.brings is not None:
            assert bool(dut.register_ready.value) == (self.split or issued)
            if self.split:
                self.brings.known = self.cycle
        for each in self.decided[0]:
            each.committed, each.dead = each.committed or not self.decided[1], each.dead or self.decided[1]
            self.kills += self.decided[1]
        self._check_abort()
        if issued:
            self._take()
        self._check_result()
        self.flight = [each for each in self.flight
                       if not each.dead and not (each.committed and not each.ours)]
        if self.offer is not None and self.offer.dead and self.rng.random() < 0.5:
            self.offer, self.gap = None, True               # or it is still issued, and killed
        for each in list(self.expected):
            if each.dead:
                self.expected.remove(each)

    def _check_response(self):
        dut, offer = self.dut, self.offer
        assert bool(dut.accept.value) == offer.ours, hex(offer.word)
        assert bool(dut.writeback.value) == (offer.ours and offer.rd != 0)
        assert int(dut.register_read.value) == (3 if offer.ours else 0)
        if not self.split and offer.ours:
            assert offer.rs_valid == 3, "issued before its operands were valid"
        assert all(each.hart == offer.hart for each in self.flight)

    def _take(self):
        offer, self.offer = self.offer, None
        offer.issued = self.cycle
        self.last_id = offer.id
        self.left -= 1
        if not self.split:
            offer.known = self.cycle
        if offer.dead:
            return
        self.flight.append(offer)
        if offer.ours and not offer.aborts:
            self.expected.append(offer)

    def _check_abort(self):
        acting = [each for each in self.flight if each.aborts and each.committed and not each.told
                  and each.known is not None and each.known < self.cycle]
        assert bool(self.dut.abort.value) == bool(acting)
        self.aborts_now = acting[-1] if acting else None
        for each in acting:
            each.told = True
            self.aborted += 1

    def forget(self):
        """Expect nothing any more of what was issued before an abort of this cycle."""
        if self.aborts_now is not None:
            place = self.flight.index(self.aborts_now) if self.aborts_now in self.flight else len(self.flight)
            younger = self.flight[place:]
            self.expected = deque(each for each in self.expected if each in younger)

    def _check_result(self):
        dut = self.dut
        if not dut.result_valid.value:
            assert self.standing is None, "a result was withdrawn"
            return
        result = tuple(int(getattr(dut, f"result_{name}").value) for name in ("hartid", "id", "rd", "we", "data"))
        assert self.standing in (None, result), "a result changed while it was offered"
        found = [each for each in self.flight if (each.hart, each.id) == result[:2]]
        assert len(found) == 1, "a result of no instruction"
        (each,) = found
        assert each.ours
        assert each.committed
        assert each.known is not None
        assert each.known < self.cycle
        assert result[2:] == (each.rd, int(each.rd != 0), FAULT_CODE)
        self.standing = result
        if dut.result_ready.value:
            self.standing = None
            self.results += 1
            self.flight.remove(each)


INPUTS = ("issue_valid", "issue_instr", "issue_hartid", "issue_id", "register_valid", "register_hartid", "register_id",
          "register_rs1", "register_rs2", "register_rs_valid", "commit_valid", "commit_hartid", "commit_id",
          "commit_kill", "result_ready", "commands__ready", "idle", "fault_code")


async def start(dut):
    Clock(dut.clk, 2, unit="ns").start()
    for name in INPUTS:
        getattr(dut, name).value = 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    dut.fault_code.value = FAULT_CODE


async def run(dut, core, rng, pause):
    working, received, limit = 0, 0, 100 * core.left
    while not core.done:
        await Timer(0.5, "ns")
        core.drive()
        dut.idle.value = working == 0
        ready = rng.random() >= pause
        dut.commands__ready.value = ready
        await ReadOnly()
        taken = ready and bool(dut.commands__valid.value)
        core.step()
        if taken:
            expected = core.expected.popleft()
            assert taken_command(dut) == expected.command
            assert expected.committed
            assert expected.known is not None
            received += 1
            if expected.fence and not expected.rs1 & NOTIFY:
                assert working == 0, "a fence left while the coprocessor was at work"
            else:
                working = rng.randrange(1, 12)
        elif working:
            working -= 1
        core.forget()
        assert core.cycle < limit, "the adapter has jammed"
        await RisingEdge(dut.clk)
    return received


@cocotb.test()
async def commands_are_those_committed_with_their_operands(dut):
    await start(dut)
    for split, at_issue, pause, kill in ((0, True, 0.3, 0), (0, False, 0.3, 0.1), (1, False, 0.3, 0.1),
                                         (1, False, 0.7, 0.3), (0, False, 0.7, 0.2), (1, True, 0.1, 0)):
        rng = random.Random(f"{cocotb.RANDOM_SEED} {split} {at_issue} {pause}")
        count = int(os.environ["COUNT"])
        core = Core(dut, rng, count, pause, kill, split=split, at_issue=at_issue)
        received = await run(dut, core, rng, pause)
        assert received > count / 8
        assert core.results >= received
        assert core.aborted
        if kill:
            assert core.kills > count / 50
            assert core.batches
            assert core.early


async def cycle(dut, *, issue=None, register=None, commit=None, kill=0, rs_valid=3):
    """One cycle with these transactions: (word, id), (id, rs1) and id; return the outputs before its end."""
    await Timer(0.5, "ns")
    for name, value in (("issue", issue), ("register", register), ("commit", commit)):
        getattr(dut, f"{name}_valid").value = value is not None
    if issue is not None:
        dut.issue_instr.value, dut.issue_id.value = issue
    if register is not None:
        dut.register_id.value, dut.register_rs1.value = register
    dut.register_rs_valid.value = rs_valid
    dut.commit_id.value, dut.commit_kill.value = commit or 0, kill
    await ReadOnly()
    told = {name: bool(getattr(dut, name).value)
            for name in ("issue_ready", "commands__valid", "result_valid", "abort")}
    await RisingEdge(dut.clk)
    return told


@cocotb.test()
async def takes_one_instruction_per_cycle_with_commits_at_issue(dut):
    """As CVA6 issues: each is at the command port two cycles later, its result too."""
    await start(dut)
    dut.commands__ready.value = dut.idle.value = dut.result_ready.value = 1
    for number in range(40):
        told = await cycle(dut, issue=(WORD, number % IDS), register=(number % IDS, number), commit=number % IDS)
        assert told["issue_ready"]
        assert told["commands__valid"] == told["result_valid"] == (number > 1)


@cocotb.test()
async def a_kill_before_and_after_the_operands_leaves_no_trace(dut):
    await start(dut)
    dut.commands__ready.value = dut.idle.value = dut.result_ready.value = 1
    for brings in (None, (3, 1)):
        assert (await cycle(dut, issue=(WORD, 3)))["issue_ready"]
        assert (await cycle(dut, issue=(WORD, 5), register=brings))["issue_ready"]
        await cycle(dut, commit=3, kill=1)                  # 5 too
        for _ in range(4):
            told = await cycle(dut)
            assert not told["commands__valid"]
            assert not told["result_valid"]


@cocotb.test()
async def a_decision_of_an_offer_that_waits_is_kept(dut):
    """Once, in the offer's first cycle, while an operand is not there yet; a kill of an earlier id changes nothing."""
    await start(dut)
    dut.commands__ready.value = dut.idle.value = 1
    assert not (await cycle(dut, issue=(WORD, 6), register=(6, 1), commit=6, rs_valid=1))["issue_ready"]
    assert (await cycle(dut, issue=(WORD, 6), register=(6, 1), commit=4, kill=1))["issue_ready"]
    dut.result_ready.value = 1
    await cycle(dut)
    assert (await cycle(dut))["result_valid"]
    await cycle(dut, issue=(WORD, 7), commit=7)
    await cycle(dut, commit=5, kill=1)
    await cycle(dut, register=(7, 1))
    await cycle(dut)
    assert (await cycle(dut))["result_valid"]


@cocotb.test()
async def an_id_of_another_coprocessor_decides_by_its_place(dut):
    await start(dut)
    dut.idle.value = 1
    await cycle(dut, issue=(WORD, 6), register=(6, 0))
    await cycle(dut, issue=(WORD, 9), register=(9, 0))
    await cycle(dut, commit=4)                              # before both
    assert not (await cycle(dut))["result_valid"]
    await cycle(dut, commit=7)                              # between them
    await cycle(dut)
    assert (await cycle(dut))["result_valid"]
    dut.result_ready.value = 1
    await cycle(dut)
    assert not (await cycle(dut))["result_valid"]
    await cycle(dut, commit=11)                             # behind both
    await cycle(dut)
    assert (await cycle(dut))["commands__valid"]


@cocotb.test()
async def an_abort_waits_for_no_full_queue_and_no_fence(dut):
    await start(dut)
    dut.result_ready.value = 1
    for number in range(12):                                # until the queue is full
        told = await cycle(dut, issue=(WORD, number), register=(number, 0), commit=number)
    assert not told["issue_ready"]
    assert (await cycle(dut, issue=(FENCE, 8), register=(8, ABORT), commit=8))["issue_ready"]
    assert (await cycle(dut))["abort"]
    assert not (await cycle(dut))["commands__valid"]
    # A fence whose operands come later waits in the table; the abort behind it does not.
    assert (await cycle(dut, issue=(FENCE, 9), commit=9))["issue_ready"]
    await cycle(dut, register=(9, 0))
    assert not (await cycle(dut, issue=(WORD, 10)))["issue_ready"]
    assert (await cycle(dut, issue=(FENCE, 10), commit=10))["issue_ready"]
    assert not (await cycle(dut, register=(10, ABORT)))["result_valid"]
    assert (await cycle(dut))["abort"]
    assert [(await cycle(dut))["result_valid"] for _ in range(4)] == [False, True, True, False]
