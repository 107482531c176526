"""The front of the store unit: turns commands into runs of bytes in the result buffer with their targets."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import Machine
from tilewright.rtl.load.row_writer import BLOCKED
from tilewright.rtl.stream.commands import Command, flag, is_command, views
from tilewright.rtl.stream.turn_counter import TurnCounter

__all__ = ["COMPLETE", "MOVES", "OUT_FREE", "RES_FREE", "WAITS", "StoreFront", "run_layout"]

MOVES = ("memory", "linear", "blocked")
"""The variants that move results."""

WAITS, RES_FREE, OUT_FREE = (flag("sta", "memory", name)
                             for name in ("wait_out_ready", "signal_res_free", "signal_out_free"))
COMPLETE = flag("sta", "memory", "signal_mem_ready")
"""Index of the flag that signals, to memory, ``mem_ready``, and to the activation buffer, ``act_ready``."""

assert COMPLETE == flag("sta", "linear", "signal_act_ready") == flag("sta", "blocked", "signal_act_ready")


def run_layout(machine: Machine) -> StructLayout:
    """Return the layout of a run.

    ``words`` of the bus, or writes to the activation buffer; ``source`` is the place in the result buffer of the
    first word's lane 0, ``first_lane`` the lane of the first byte, which is 0 unless ``to_memory``. ``target`` is
    the address in memory, or in the activation buffer in ``layout``. The flags are set on a command's last run.
    Without chaining all go to memory, and have no ``to_memory``, ``layout`` and ``act_ready``.
    """
    lane = range(machine.bus_bytes)
    chained, layout, ready = {}, {}, {}
    if machine.chaining:
        chained, ready = {"to_memory": 1}, {"act_ready": 1}
        layout = {"layout": 1} if machine.winograd else {}
    return StructLayout({
        "source": 20, "target": 32, "words": 16, "first_lane": lane, "last_lane": lane, **chained, **layout,
        "res_free": 1, "out_free": 1, **ready,
    })


class StoreFront(wiring.Component):
    """Commands in, runs out, a run per cycle, one more cycle for each command.

    The first run leaves ``LATENCY`` cycles after its command has been taken.

    Members
    -------
    commands, out_ready_available, out_ready_take, mem_ready_signal
        As of `StoreUnit`.
    runs : ``Out(stream.Signature(run_layout(machine)))``
    settled : ``In(1)``
        Nothing that was passed on is under way, and memory has acknowledged it.
    record : ``Out(1)``, record_address : ``Out(32)``
        Pulse: store the status record now.
    busy : ``Out(1)``
        A command is being worked on.
    """

    LATENCY = 2

    def __init__(self, machine: Machine) -> None:
        self.bus_bytes = bus_bytes = machine.bus_bytes
        self.chaining, self.blocked = machine.chaining, machine.chaining and machine.winograd
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "out_ready_available": In(1),
            "out_ready_take": Out(1),
            "mem_ready_signal": Out(1),
            "runs": Out(stream.Signature(run_layout(machine))),
            "settled": In(1),
            "record": Out(1),
            "record_address": Out(32),
            "busy": Out(1),
        })
        # Configuration; counts are 1 after reset, so that a command before its settings ends soon.
        self.chunk_bytes = Signal(16, init=1)
        self.chunks = Signal(12, init=1)
        self.one_chunk = Signal(init=1)
        self.chunk_step = Signal(20)
        self.row_step = Signal(20)
        self.target_chunk_step = Signal(32)
        self.target_row_step = Signal(32)
        # The command under way, and where it stands.
        self.running = Signal()
        self.to_memory = Signal()
        self.layout = Signal()
        self.signals = Signal(StructLayout({"res_free": 1, "out_free": 1, "act_ready": 1}))
        self.row_source = Signal(20)
        self.run_source = Signal(20)
        self.row_target = Signal(32)
        self.run_target = Signal(32)
        self.first_x = Signal(2)
        self.x = Signal(2)
        self.y = Signal(2)
        self.rows = TurnCounter("rows", 10, last="on_last_row")
        self.row_runs = TurnCounter("runs_left", 12, last="on_last_run")
        # A command that is to be followed by nothing until all is settled.
        self.acknowledges = Signal()
        self.records = Signal()
        # A run, its size not yet summed up; ``reach`` is bytes beyond the first word's first lane.
        self.sized = Signal()
        self.reach = Signal(range(2 * bus_bytes))
        self.lane = Signal(range(bus_bytes))
        self.source = Signal(20)
        self.target = Signal(32)
        self.is_end = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        leaves = Signal()
        step = Signal()
        free = Signal()
        waits = Signal()
        m.d.comb += [
            leaves.eq(self.sized & self.runs.ready),
            step.eq(self.running & (~self.sized | leaves)),
            waits.eq(self.acknowledges | self.records),
            # The run that waits for its size belongs to the command before.
            free.eq(~self.running & (~self.sized | leaves) & ~waits),
            self.busy.eq(self.running | self.sized | waits),
        ]
        with m.If(step | leaves):
            m.d.sync += self.sized.eq(step)
        self._send(m)
        self._step(m, step)
        self._settle(m)
        self._take(m, free)
        self._configure(m, free)
        return m

    def _send(self, m: Module) -> None:
        """Sum up the size of a run."""
        bits = exact_log2(self.bus_bytes)
        run = self.runs.payload
        end = Signal(17)  # what lies above the lane bits counts the words
        m.d.comb += [
            end.eq(self.chunk_bytes + self.reach),
            self.runs.valid.eq(self.sized),
            run.source.eq(self.source - self.lane),
            run.target.eq(self.target),
            run.words.eq(end[bits:]),
            run.first_lane.eq(self.lane),
            run.last_lane.eq(end[:bits]),
            *([run.to_memory.eq(self.to_memory)] if self.chaining else []),
            *([run.layout.eq(self.layout)] if self.blocked else []),
            *[run[name].eq(self.signals[name] & self.is_end) for name in ("res_free", "out_free", "act_ready")
              if name in run.shape().members],
        ]

    def _step(self, m: Module, step: Value) -> None:
        """Hand one run over, and move on to the next of the row, or to the next row."""
        is_blocked = self.layout == BLOCKED if self.blocked else Const(0)
        next_row_source = Signal(20)
        next_row_target = Signal(32)
        lane = self.run_target[:exact_log2(self.bus_bytes)]
        if self.chaining:
            lane = Mux(self.to_memory, lane, 0)
        m.d.comb += [
            next_row_source.eq(self.row_source + self.row_step),
            # A block holds four rows, and four pixels of a row.
            next_row_target.eq(self.row_target + Mux(is_blocked & (self.y != 3), 0, self.target_row_step)),
        ]
        with m.If(step):
            m.d.sync += [
                self.lane.eq(lane),
                self.reach.eq(lane + (self.bus_bytes - 1)),
                self.source.eq(self.run_source),
                self.target.eq(Mux(is_blocked, Cat(self.x, self.y, self.run_target[4:]), self.run_target)),
                self.is_end.eq(self.row_runs.last & self.rows.last),
            ]
            with m.If(self.row_runs.last):
                m.d.sync += [
                    self.row_source.eq(next_row_source),
                    self.run_source.eq(next_row_source),
                    self.row_target.eq(next_row_target),
                    self.run_target.eq(next_row_target),
                    *([self.x.eq(self.first_x), self.y.eq(self.y + 1)] if self.blocked else []),
                    self.running.eq(~self.rows.last),
                ]
                self.rows.step(m)
                self.row_runs.load(m, self.chunks, once=self.one_chunk)
            with m.Else():
                m.d.sync += [
                    self.run_source.eq(self.run_source + self.chunk_step),
                    self.run_target.eq(
                        self.run_target + Mux(is_blocked & (self.x != 3), 0, self.target_chunk_step)),
                    *([self.x.eq(self.x + 1)] if self.blocked else []),
                ]
                self.row_runs.step(m)

    def _settle(self, m: Module) -> None:
        """End a command that waits for memory: signal, or have the record stored."""
        settled = Signal()
        m.d.comb += [
            settled.eq(~self.running & ~self.sized & self.settled),
            self.mem_ready_signal.eq(self.acknowledges & settled),
            self.record.eq(self.records & settled),
            self.record_address.eq(self.row_target),
        ]
        with m.If(settled):
            m.d.sync += [self.acknowledges.eq(0), self.records.eq(0)]

    def _take(self, m: Module, free: Value) -> None:
        """Start a command that moves data once the semaphore it waits for is available."""
        command = self.commands.payload
        is_memory = is_command(command, "sta", "memory") if self.chaining else Const(1)
        is_blocked = is_command(command, "sta", "blocked") if self.blocked else Const(0)
        is_status = is_command(command, "sta", "status")
        starts = Signal()
        moves = Signal()
        waits = Signal()
        m.d.comb += [
            moves.eq(is_command(command, "sta", *(MOVES if self.chaining else MOVES[:1]))),
            waits.eq(moves & command.flags[WAITS]),
            # What moves nothing waits for nothing.
            self.commands.ready.eq(free & (~waits | self.out_ready_available)),
            starts.eq(self.commands.valid & moves & self.commands.ready),
            self.out_ready_take.eq(starts & waits),
        ]
        memory, source = views(command, "sta", "memory")
        local, _ = views(command, "sta", "blocked")
        tells = command.flags[COMPLETE]
        target = memory.address
        if self.chaining:
            target = Mux(is_memory | is_status, memory.address, local.target + Mux(is_blocked, local.channel << 8, 0))
        # Between commands the rest follows whatever comes: its enables wait neither for the semaphore nor for decoding.
        with m.If(starts):
            m.d.sync += [self.running.eq(1), self.acknowledges.eq(is_memory & tells)]
        with m.If(free):
            m.d.sync += [
                *([self.to_memory.eq(is_memory)] if self.chaining else []),
                *([self.layout.eq(is_blocked)] if self.blocked else []),
                self.signals.res_free.eq(command.flags[RES_FREE]),
                self.signals.out_free.eq(command.flags[OUT_FREE]),
                *([self.signals.act_ready.eq(~is_memory & tells)] if self.chaining else []),
                self.row_source.eq(source.base),
                self.run_source.eq(source.base),
                self.row_target.eq(target),
                self.run_target.eq(target),
                *([self.first_x.eq(local.x), self.x.eq(local.x), self.y.eq(local.y)] if self.blocked else []),
            ]
            self.rows.load(m, source.rows)
            self.row_runs.load(m, self.chunks, once=self.one_chunk)
        with m.If(self.commands.valid & free & is_status):
            m.d.sync += self.records.eq(1)

    def _configure(self, m: Module, free: Value) -> None:
        """Carry out the set variants."""
        command = self.commands.payload
        with m.If(self.commands.valid & free & is_command(command, "sta", "set_row")):
            rs1, rs2 = views(command, "sta", "set_row")
            m.d.sync += [
                self.chunk_bytes.eq(rs1.chunk_bytes),
                self.chunks.eq(rs1.chunks),
                self.one_chunk.eq(rs1.chunks == 1),
                self.chunk_step.eq(rs2.chunk_step),
            ]
        with m.If(self.commands.valid & free & is_command(command, "sta", "set_source")):
            rs1, _ = views(command, "sta", "set_source")
            m.d.sync += self.row_step.eq(rs1.row_step)
        with m.If(self.commands.valid & free & is_command(command, "sta", "set_target")):
            rs1, rs2 = views(command, "sta", "set_target")
            m.d.sync += [
                self.target_chunk_step.eq(rs1.target_chunk_step),
                self.target_row_step.eq(rs2.target_row_step),
            ]
