"""CV-X-IF adapter: the instructions that a CV32E40X offloads become commands once they are committed.

The interface is the draft that CV32E40X 0.6.0 implements (OpenHW CV-X-IF, signals of its ``if_xif.sv``).
"""

from amaranth import Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from tilewright.isa.machine import DEFAULT_MACHINE, PRESETS, Machine
from tilewright.rtl.port.offloaded import Offloaded, aborts, erases
from tilewright.rtl.stream.commands import Command
from tilewright.rtl.stream.queues import HeadedFIFO, dequeue

__all__ = ["ID_WIDTH", "XifAdapter"]

ID_WIDTH = 4

_Entry = data.StructLayout({"id": ID_WIDTH, "ours": 1, "rd": 5, "command": Command})
_Answer = data.StructLayout({"id": ID_WIDTH, "rd": 5, "code": 4})


class _Uncommitted:
    """The last two instructions issued, those we did not accept among them: their ids tell about the others."""

    def __init__(self) -> None:
        self.newer = Signal(_Entry)
        self.newer_valid = Signal()
        self.newer_lives = Signal()  # and is in EX, as another instruction is in ID
        self.older = Signal(_Entry)
        self.older_valid = Signal()


class XifAdapter(wiring.Component):
    """Accept what the instruction table knows, pass it on once committed; never keep the core waiting in WB.

    The core offers every instruction it does not know, and every CSR access; ``accept`` is low for all that are not
    legal rows of `isa.encoding` with rd = x0, and for those that the machine lacks, and the core takes its illegal
    instruction exception. Only a fence may have another rd, and writes the fault code there.

    An instruction is issued in the core's ID stage, committed or killed in EX, and answered in WB. A committed
    command enters a queue towards the command port and is answered at once. One instruction per cycle is
    sustained: issue, commit and result follow in three consecutive cycles, and the command is offered in the third.

    An abort is no command: once committed it empties the queue and goes to the coprocessor at once. So it waits for
    nothing that a program can hold up; a core that a full queue stalls takes an interrupt first.

    *What blocks, blocks in ID.* Only ``issue_ready`` holds the core: while the queue might overflow, and a fence
    until every command before it has left the queue and ``idle`` is high. A result must not be withheld instead: this
    core sends the data request of a load behind a waiting instruction too early, again and again, and hangs.

    *Instructions that vanish.* This core sends no commit for an instruction that is flushed while it waits in ID;
    the next one offered has its id again, which shows that it is gone. Besides, at most the last two issued can be
    uncommitted, one in EX and one in ID, and a commit drops what was issued before its instruction.

    Members
    -------
    issue_valid, issue_ready, issue_instr, issue_id, issue_rs1, issue_rs2, issue_rs_valid, accept
        The issue interface; ``accept`` is ``issue_resp.accept``, the rest of the response being zero.
    commit_valid, commit_id, commit_kill
        The commit interface.
    writeback
        ``issue_resp.writeback``: the instruction offered has an rd.
    result_valid, result_ready, result_id, result_rd, result_we, result_data
        The result interface; the rest of it is zero.
    commands : ``Out(stream.Signature(Command))``
        To the coprocessor's command port.
    idle : ``In(1)``
        A fence would be taken now; falls in the cycle after a command has been taken.
    fault_code : ``In(4)``
        Result of a fence.
    waits : ``Out(1)``
        The core is held up in ID.
    abort, erase : ``Out(1)``
        An abort is committed in this cycle, one with ``erase``: of a command that is offered in it nothing may be left.
    """

    DEPTH = 8

    issue_valid: In(1)
    issue_ready: Out(1)
    issue_instr: In(32)
    issue_id: In(ID_WIDTH)
    issue_rs1: In(32)
    issue_rs2: In(32)
    issue_rs_valid: In(2)
    accept: Out(1)
    writeback: Out(1)
    commit_valid: In(1)
    commit_id: In(ID_WIDTH)
    commit_kill: In(1)
    result_valid: Out(1)
    result_ready: In(1)
    result_id: Out(ID_WIDTH)
    result_rd: Out(5)
    result_we: Out(1)
    result_data: Out(32)
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
        committed = HeadedFIFO(width=Command.as_shape().size, depth=self.DEPTH)
        m.submodules.committed = ResetInserter(self.abort)(committed)
        m.submodules.answers = answers = SyncFIFO(width=_Answer.size, depth=self.DEPTH)
        uncommitted = _Uncommitted()
        offered, issue = self._issue(m, uncommitted, committed, answers)
        self._commit(m, uncommitted, offered, issue, committed, answers)
        dequeue(m, committed, self.commands)
        answer = _Answer(answers.r_data)
        m.d.comb += [
            self.result_id.eq(answer.id),
            self.result_rd.eq(answer.rd),
            self.result_we.eq(answer.rd != 0),
            self.result_data.eq(answer.code),
            self.result_valid.eq(answers.r_rdy),
            answers.r_en.eq(self.result_ready),
        ]
        return m

    def _issue(self, m: Module, uncommitted: _Uncommitted, committed: HeadedFIFO,
               answers: SyncFIFO) -> tuple[Signal, Signal]:
        """Answer the core's offer; return the command that is offered, and whether an instruction is issued."""
        instr, issue = self.issue_instr, Signal(name="issue")
        offer = Offloaded(m, instr, self.issue_rs1, self.issue_rs2, self.machine, self.accept)
        room = Signal()
        nothing_before = Signal()
        m.d.comb += [
            self.writeback.eq(self.accept & (instr[7:12] != 0)),
            self.waits.eq(self.issue_valid & ~self.issue_ready),
            # Three instructions may follow a full level into the queues: two uncommitted and this one.
            room.eq(((committed.w_level <= self.DEPTH - 3) | offer.aborts) & (answers.w_level <= self.DEPTH - 3)),
            uncommitted.newer_lives.eq(uncommitted.newer_valid & (uncommitted.newer.id != self.issue_id)),
            nothing_before.eq(~committed.r_rdy & ~uncommitted.newer_lives & ~uncommitted.older_valid & self.idle),
            self.issue_ready.eq(~self.accept | (self.issue_rs_valid.all() & room
                                                & (nothing_before | ~offer.waits_for_all))),
            issue.eq(self.issue_valid & self.issue_ready),
        ]
        return offer.command, issue

    def _commit(self, m: Module, uncommitted: _Uncommitted, offered: Signal, issue: Value, committed: HeadedFIFO,
                answers: SyncFIFO) -> None:
        """Keep what is issued until it is committed; then queue it, and its answer."""
        newer, older = uncommitted.newer, uncommitted.older
        newer_valid, older_valid = uncommitted.newer_valid, uncommitted.older_valid
        commits_newer = Signal()
        commits_older = Signal()
        command = Signal(Command)
        answer = Signal(_Answer)
        m.d.comb += [
            commits_newer.eq(self.commit_valid & newer_valid & (newer.id == self.commit_id)),
            commits_older.eq(self.commit_valid & older_valid & (older.id == self.commit_id) & ~commits_newer),
            answers.w_en.eq((commits_newer & newer.ours | commits_older & older.ours) & ~self.commit_kill),
            command.eq(Mux(commits_newer, newer.command, older.command)),
            self.abort.eq(answers.w_en & aborts(command)),
            self.erase.eq(self.abort & erases(command)),
            committed.w_en.eq(answers.w_en),
            committed.w_data.eq(command),
            answer.id.eq(self.commit_id),
            answer.rd.eq(Mux(commits_newer, newer.rd, older.rd)),
            answer.code.eq(self.fault_code),
            answers.w_data.eq(answer),
        ]
        with m.If(commits_newer | commits_older):
            m.d.sync += older_valid.eq(0)
        with m.If(commits_newer):
            m.d.sync += newer_valid.eq(0)
        with m.If(issue):
            m.d.sync += [
                newer.id.eq(self.issue_id),
                newer.ours.eq(self.accept),
                newer.rd.eq(self.issue_instr[7:12]),
                newer.command.eq(offered),
                newer_valid.eq(1),
            ]
            with m.If(uncommitted.newer_lives):
                m.d.sync += [older.eq(newer), older_valid.eq(~commits_newer)]
