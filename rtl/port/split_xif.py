"""CV-X-IF 1.0 adapter: operands come with an instruction or after it, and one commit speaks for those before it.

The interface is version 1.0.0 of the OpenHW Group's CV-X-IF specification, without its compressed interface.
"""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from tilewright.isa.machine import DEFAULT_MACHINE, PRESETS, Machine
from tilewright.rtl.port.offloaded import Offloaded, aborts, erases, notifies
from tilewright.rtl.stream.commands import Command, is_command
from tilewright.rtl.stream.queues import HeadedFIFO, dequeue

__all__ = ["HART_WIDTH", "SplitXifAdapter"]

ID_WIDTH = 4
HART_WIDTH = 32
"""Bits of ``hartid``: as many as RV32 has for one."""

_OPERANDS = 0b11
"""``register_read`` of what is accepted: every command has two operands."""


class _Instruction(data.Struct):
    """An issued instruction in the table: its id and command, and what is known of it.

    ``known`` says that its operands are there, ``committed`` and ``dead`` what the core has decided, ``void`` that an
    abort has overtaken it, or that it is one that has been told: it still has a result.
    """

    id: ID_WIDTH
    rd: 5
    ours: 1
    known: 1
    committed: 1
    dead: 1
    void: 1
    command: Command


_Answer = data.StructLayout({"id": ID_WIDTH, "rd": 5, "code": 4})


@dataclass(frozen=True)
class _Decision:
    """The commit interface's decision of this cycle, on an instruction ``rank`` ids behind the oldest undecided one."""

    commits: Value
    kills: Value
    rank: Value
    older: Value     # the id is that of an instruction before all of ours

    def committed(self, rank: Value) -> Value:
        return self.commits & ~self.older & (rank <= self.rank)

    def killed(self, rank: Value) -> Value:
        return self.kills & (self.older | (rank >= self.rank))


class SplitXifAdapter(wiring.Component):
    """Accept what the instruction table knows; pass it on once it is committed and its operands are there.

    *Operands.* A register transaction that stands beside the offer of the same id (``X_ISSUE_REGISTER_SPLIT`` = 0) is
    taken with it, once both operands are valid; without one the instruction is issued, and its operands may come in any
    later cycle and any order (= 1). Nothing has to be chosen.

    *Decisions.* A commit holds for its instruction and all before it, a kill for its instruction and all behind. Both
    may be of an instruction that is still on offer, as those of CVA6 and CV32E40PX are. Ids need not follow each other;
    they are compared by their distance from the oldest in flight. An id that is not in the table
    decides by its place among those that are; less than half of all ids before the oldest it lies before them.

    *Harts.* Instructions of one hart at a time are under way, since there is one state: another hart's wait at issue.

    *What blocks.* A full table or queue holds the core by ``issue_ready``. So does a fence whose operands come with it,
    until all before it is done. If they come later, the fence is issued, since it may be an abort, and its result waits
    instead; behind a fence in the table only fences are issued.

    An abort is no command: committed, and with its operands, it goes to the coprocessor at once, whatever waits before
    it in the table or the queue, which are forgotten and answered.

    Members
    -------
    issue_valid, issue_ready, issue_instr, issue_hartid, issue_id, accept, writeback, register_read
        The issue interface; the last three are ``issue_resp``.
    register_valid, register_ready, register_hartid, register_id, register_rs1, register_rs2, register_rs_valid
        The register interface.
    commit_valid, commit_hartid, commit_id, commit_kill
        The commit interface.
    result_valid, result_ready, result_hartid, result_id, result_data, result_rd, result_we
        The result interface.
    commands, idle, fault_code, waits, abort, erase
        As of `tilewright.rtl.port.xif.XifAdapter`.
    """

    DEPTH = 8
    SLOTS = 4
    """Instructions that are issued and neither killed nor passed on."""

    issue_valid: In(1)
    issue_ready: Out(1)
    issue_instr: In(32)
    issue_hartid: In(HART_WIDTH)
    issue_id: In(ID_WIDTH)
    accept: Out(1)
    writeback: Out(1)
    register_read: Out(2)
    register_valid: In(1)
    register_ready: Out(1)
    register_hartid: In(HART_WIDTH)
    register_id: In(ID_WIDTH)
    register_rs1: In(32)
    register_rs2: In(32)
    register_rs_valid: In(2)
    commit_valid: In(1)
    commit_hartid: In(HART_WIDTH)
    commit_id: In(ID_WIDTH)
    commit_kill: In(1)
    result_valid: Out(1)
    result_ready: In(1)
    result_hartid: Out(HART_WIDTH)
    result_id: Out(ID_WIDTH)
    result_data: Out(32)
    result_rd: Out(5)
    result_we: Out(1)
    commands: Out(stream.Signature(Command))
    idle: In(1)
    fault_code: In(4)
    waits: Out(1)
    abort: Out(1)
    erase: Out(1)

    def __init__(self, machine: Machine = PRESETS[DEFAULT_MACHINE]) -> None:
        self.machine = machine
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._queue = queue = HeadedFIFO(width=Command.as_shape().size, depth=self.DEPTH)
        self._answers = answers = SyncFIFO(width=_Answer.size, depth=self.DEPTH)
        m.submodules.committed = ResetInserter(self.abort)(queue)
        m.submodules.answers = answers
        self._table = [Signal(_Instruction, name=f"instruction_{place}") for place in range(self.SLOTS)]
        self._level = Signal(range(self.SLOTS + 1), name="instructions")
        self._hart = Signal(HART_WIDTH, name="hart")
        self._held = Signal(range(self.DEPTH + self.SLOTS + 1), name="held")
        self._offer_committed, self._offer_dead = Signal(name="offer_committed"), Signal(name="offer_dead")
        self._filled = [Signal(name=f"filled_{place}") for place in range(self.SLOTS)]
        m.d.comb += [filled.eq(self._level > place) for place, filled in enumerate(self._filled)]

        issued, issue = self._issue(m)
        after = self._decide(m)
        leaves = self._leave(m, after)
        self._move(m, after, leaves, issued, issue)
        dequeue(m, queue, self.commands)
        answer = _Answer(answers.r_data)
        m.d.comb += [
            self.result_hartid.eq(self._hart),
            self.result_id.eq(answer.id),
            self.result_rd.eq(answer.rd),
            self.result_we.eq(answer.rd != 0),
            self.result_data.eq(answer.code),
            self.result_valid.eq(answers.r_rdy),
            answers.r_en.eq(self.result_ready),
        ]
        return m

    def _issue(self, m: Module) -> tuple[Signal, Signal]:
        """Answer the core's offer; return the entry of the table that it becomes, and whether it is issued."""
        instr = self.issue_instr
        issued = Signal(_Instruction)
        issue = Signal()
        offer = Offloaded(m, instr, self.register_rs1, self.register_rs2, self.machine, self.accept)
        queue = self._queue
        answers = self._answers
        beside = Signal()
        all_known = Signal()
        room = Signal()
        own_hart = Signal()
        nothing_before = Signal()
        fence_before = Signal()
        passes = Signal()
        fences = [filled & each.ours & is_command(each.command, "sta", "fence")
                  for filled, each in zip(self._filled, self._table, strict=True)]
        m.d.comb += [
            beside.eq(self.register_valid & (self.register_id == self.issue_id)
                      & (self.register_hartid == self.issue_hartid)),
            all_known.eq(self.register_rs_valid.all()),
            # Whatever is in the table may follow a level into both queues.
            self._held.eq(queue.w_level + self._level),
            room.eq(((self._held < self.DEPTH) | (offer.fence & ~beside) | offer.aborts)
                    & (answers.w_level + self._level < self.DEPTH)),
            nothing_before.eq((self._level == 0) & ~queue.r_rdy & self.idle),
            fence_before.eq(Cat(fences).any()),
            own_hart.eq((self.issue_hartid == self._hart) | ((self._level == 0) & ~answers.r_rdy)),
            passes.eq(~beside | (all_known & (nothing_before | ~offer.waits_for_all))),
            self.issue_ready.eq((self._level != self.SLOTS) & own_hart & (~fence_before | offer.fence)
                                & (~self.accept | (room & passes))),
            issue.eq(self.issue_valid & self.issue_ready),
            self.register_ready.eq(self.issue_ready | ~(self.issue_valid & beside)),
            self.writeback.eq(self.accept & (instr[7:12] != 0)),
            self.register_read.eq(Mux(self.accept, _OPERANDS, 0)),
            issued.id.eq(self.issue_id),
            issued.rd.eq(instr[7:12]),
            issued.ours.eq(self.accept),
            issued.known.eq(beside),
            issued.committed.eq(self._offer_committed),
            issued.dead.eq(self._offer_dead),
            issued.command.eq(offer.command),
        ]
        with m.If(issue):
            m.d.sync += self._hart.eq(self.issue_hartid)
        return issued, issue

    def _decide(self, m: Module) -> list[data.View]:
        """Return what the table is after the decision and the operands of this cycle; keep what decides the offer."""
        live = [filled & ~each.dead for filled, each in zip(self._filled, self._table, strict=True)]
        oldest, newest, decided = (Signal(ID_WIDTH, name=name) for name in ("oldest", "newest_rank", "decided_rank"))
        m.d.comb += [oldest.eq(self.issue_id), decided.eq(self.commit_id - oldest)]
        for lives, each in zip(reversed(live), reversed(self._table), strict=True):
            with m.If(lives):
                m.d.comb += oldest.eq(each.id)
        with m.If(self._answers.r_rdy):
            m.d.comb += oldest.eq(_Answer(self._answers.r_data).id)
        for lives, each in zip(live, self._table, strict=True):
            with m.If(lives):
                m.d.comb += newest.eq(each.id - oldest)
        offer_rank = Signal(ID_WIDTH)
        m.d.comb += offer_rank.eq(self.issue_id - oldest)
        with m.If(self.issue_valid):
            m.d.comb += newest.eq(offer_rank)
        older = decided[-1] & (decided > newest)

        def decision(hart: Value) -> _Decision:
            says = self.commit_valid & (self.commit_hartid == hart)
            return _Decision(says & ~self.commit_kill, says & self.commit_kill, decided, older)

        self._decide_offer(m, decision(self.issue_hartid), offer_rank)
        said, after = decision(self._hart), []
        brings = self.register_valid & (self.register_hartid == self._hart)
        for place, each in enumerate(self._table):
            then, rank = Signal(_Instruction, name=f"then_{place}"), Signal(ID_WIDTH, name=f"rank_{place}")
            m.d.comb += [
                rank.eq(each.id - oldest),
                then.eq(each),
                then.committed.eq(each.committed | (said.committed(rank) & ~each.dead)),
                then.dead.eq(each.dead | (said.killed(rank) & ~each.committed)),
            ]
            with m.If(brings & ~each.known & ~each.dead & (self.register_id == each.id)):
                m.d.comb += [
                    then.known.eq(1),
                    then.command.rs1.eq(self.register_rs1),
                    then.command.rs2.eq(self.register_rs2),
                ]
            after.append(then)
        return after

    def _decide_offer(self, m: Module, said: _Decision, rank: Value) -> None:
        """Tell what is decided of the offer, now or since its transaction began."""
        stands = Signal()
        committed = Signal()
        dead = Signal()
        stood = Signal()
        stood_id = Signal(ID_WIDTH)
        stood_hart = Signal(HART_WIDTH)
        m.d.comb += [
            stands.eq(stood & (stood_id == self.issue_id) & (stood_hart == self.issue_hartid)),
            self._offer_committed.eq((stands & committed) | (said.committed(rank) & ~(stands & dead))),
            self._offer_dead.eq((stands & dead) | (said.killed(rank) & ~(stands & committed))),
        ]
        m.d.sync += [
            stood.eq(self.issue_valid & ~self.issue_ready),
            stood_id.eq(self.issue_id),
            stood_hart.eq(self.issue_hartid),
            committed.eq(self._offer_committed),
            dead.eq(self._offer_dead),
        ]

    def _leave(self, m: Module, after: list[data.View]) -> Signal:
        """Let the oldest leave the table, and aborts act at once; return whether it leaves.

        Operands count from the cycle after they have come: no path leads from them to commands or results.
        """
        queue, answers, head, then = self._queue, self._answers, self._table[0], after[0]
        acts = [Signal(name=f"aborts_{place}") for place in range(self.SLOTS)]
        for act, filled, each, decided in zip(acts, self._filled, self._table, after, strict=True):
            m.d.comb += act.eq(filled & each.ours & each.known & ~each.void & decided.committed & aborts(each.command))
        leaves = Signal()
        due = Signal()
        ends = Signal()
        waits = Signal()
        answer = Signal(_Answer)
        command = Signal(Command)
        m.d.comb += [
            command.eq(head.command),
            due.eq(self._filled[0] & head.ours & head.known & then.committed),
            waits.eq(is_command(command, "sta", "fence") & ~notifies(command)),
            ends.eq(head.void | acts[0] | Mux(waits, ~queue.r_rdy & self.idle, queue.w_rdy)),
            leaves.eq(Mux(head.ours, due & ends, self._filled[0] & then.committed) | (self._filled[0] & then.dead)),
            queue.w_en.eq(due & ends & ~head.void & ~acts[0]),
            queue.w_data.eq(command),
            answers.w_en.eq(due & ends),
            answer.id.eq(head.id),
            answer.rd.eq(head.rd),
            answer.code.eq(self.fault_code),
            answers.w_data.eq(answer),
            self.abort.eq(Cat(acts).any()),
            self.erase.eq(Cat(act & erases(each.command) for act, each in zip(acts, self._table, strict=True)).any()),
            self.waits.eq((self.issue_valid & ~self.issue_ready) | (due & ~ends)),
        ]
        self._void = [Cat(acts[place:]).any() for place in range(self.SLOTS)]
        return leaves

    def _move(self, m: Module, after: list[data.View], leaves: Value, issued: Signal, issue: Value) -> None:
        """Close gaps of the table, and append the instruction that is issued."""
        last = Signal(range(self.SLOTS + 1))
        m.d.comb += last.eq(self._level - leaves)
        m.d.sync += self._level.eq(last + issue)
        voided = [Signal(_Instruction, name=f"voided_{place}") for place in range(self.SLOTS)]
        for place, (each, then) in enumerate(zip(voided, after, strict=True)):
            m.d.comb += [each.eq(then), each.void.eq(then.void | self._void[place])]
        for place, each in enumerate(self._table):
            m.d.sync += each.eq(Mux(leaves, Value.cast(voided[min(place + 1, self.SLOTS - 1)]),
                                    Value.cast(voided[place])))
            with m.If(issue & (last == place)):
                m.d.sync += each.eq(issued)
