"""The front of the load unit: turns commands into requests for bus words, and into segments with their targets."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.isa.lacking import lacks
from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.bus.axi import BusRequest
from tilewright.rtl.load.load_settings import LoadSettings
from tilewright.rtl.load.row_writer import BLOCKED, LINEAR, address_bits, segment_layout
from tilewright.rtl.stream.commands import Command, flag, is_command, views
from tilewright.rtl.stream.turn_counter import TurnCounter

__all__ = ["SIGNALS", "TAG", "WAITS", "LoadFront", "RowPhase"]

WAITS = ("act_free", "res_free", "wgt_free", "par_free", "mem_ready")


_TARGETS = ("activations", "residuals", "weights", "ninths", "parameters", "tables")

_LDW_TARGETS = {"main": "weights", "ninths": "ninths", "parameters": "parameters", "table": "tables",
                "coded_main": "weights", "coded_ninths": "ninths"}
_CODED = ("coded_main", "coded_ninths")

SIGNALS = flag("lda", "linear", "signal_act_ready")
"""Index of the flag with which any of the commands signals."""

assert SIGNALS == flag("lda", "residual", "signal_res_ready") == flag("ldw", "main", "signal_wgt_ready")

TAG = StructLayout({"to": StructLayout(dict.fromkeys(_TARGETS, 1)), "signals": 1})
"""Travels with a segment: its target, one bit for each, and whether its end is the end of a command that signals."""


class RowPhase(Enum, shape=2):  # type: ignore[call-arg]
    """The part of a row that is due: the padding before it, its runs, the padding after it."""

    LEFT = 0
    RUNS = 1
    RIGHT = 2


class LoadFront(wiring.Component):
    """Commands in; requests and segments out, a segment per cycle, one more cycle for each command.

    The first segment leaves ``LATENCY`` cycles after its command has been taken. Two stages, each with its own state::

        walk     free --a command that moves, its semaphores there: _take--> running --_step with ``ends``--> free

                 within running, for each row, a segment in each step:
                     LEFT ---> RUNS, once for each chunk ---> RIGHT ---> the next row (_next_row)
                     (with padding before it, of tiles)       (with padding behind it, of tiles)
                 `ldw`, coded or not, is one row of one run

        segment  empty --_hand_over, with each step--> sized --_send: its queue and, unless it is a fill, that of
                 requests have room--> empty, or sized again, if there was a step

    The walk steps where no segment is sized, or it leaves, and so a command is taken where the walk is free. What
    commands set is in `LoadSettings`, from where the walk loads its counts as a command begins, and with each row.

    Members are those of `LoadUnit`, and ``segments``, which go to its back.
    """

    LATENCY = 2

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.bus_bytes = bus_bytes = machine.bus_bytes
        self.address_bits = address_bits(bus_bytes)
        self.blocked = machine.winograd  # whether there are rows in the blocked layout
        self._loads = tuple(name for name in _LDW_TARGETS if lacks(machine, "ldw", name) is None)
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "requests": Out(stream.Signature(BusRequest)),
            "segments": Out(stream.Signature(segment_layout(bus_bytes, TAG, blocked=self.blocked,
                                                            coded=machine.coded_weights))),
            **{f"{name}_available": In(1) for name in WAITS},
            **{f"{name}_take": Out(1) for name in WAITS},
            **({"erases": In(1)} if machine.erasure else {}),
            "busy": Out(1),
        })
        self.settings = LoadSettings(blocked=self.blocked, coded=machine.coded_weights)
        self._walk()
        self._segment()

    def _walk(self) -> None:
        """Declare where the command under way stands."""
        self.running = Signal()
        self.tag = Signal(TAG)
        self.coded = Signal()    # weights that are to be decoded
        self.steps = Signal(16)  # of their decoder
        self.layout = Signal()
        self.fill = Signal()
        self.padded = Signal()
        self.phase = Signal(RowPhase)
        self.run_bytes = Signal(self.address_bits)
        self.row_memory = Signal(32)
        self.run_memory = Signal(32)
        self.row_buffer = Signal(20)
        self.run_buffer = Signal(self.address_bits)
        self.y = Signal(2)           # of the row in its block
        self.row_begun = Signal()    # blocked: its first segment has left, the others continue it
        self.rows = TurnCounter("rows", 10, last="on_last_row")
        self.runs = TurnCounter("runs", 12, last="on_last_run")
        # Values that follow from it.
        self.from_memory = Signal()  # the bytes at hand, or they are made up
        self.row_ends = Signal()
        self.ends = Signal()
        self.next_row_memory = Signal(32)
        self.next_row_buffer = Signal(20)

    def _segment(self) -> None:
        """Declare the segment that was handed over, its size not yet summed up.

        ``reach`` is bytes beyond the first word's first lane.
        """
        self.sized = Signal()
        self.bytes = Signal(self.address_bits)
        self.lane = Signal(range(self.bus_bytes))
        self.reach = Signal(range(2 * self.bus_bytes))
        self.word = Signal(32 - exact_log2(self.bus_bytes))
        self.segment_address = Signal(self.address_bits)
        self.is_fill = Signal()
        self.is_fresh = Signal()
        self.is_end = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = Signal()
        free = Signal()
        leaves = self._send(m)
        m.d.comb += [
            step.eq(self.running & (~self.sized | leaves)),
            # The segment that waits for its size belongs to the command before.
            free.eq(~self.running & (~self.sized | leaves)),
            self.busy.eq(self.running | self.sized),
        ]
        with m.If(step | leaves):
            m.d.sync += self.sized.eq(step)
        self._step(m, step)
        self._take(m, free)
        self.settings.keep(m, self.commands.payload, self.commands.valid & free)
        return m

    def _send(self, m: Module) -> Signal:
        """Sum up the size of a segment and send it off with its request; return whether that happens."""
        bits = exact_log2(self.bus_bytes)
        end = Signal(self.address_bits + 1)  # what lies above the lane bits counts the words
        leaves = Signal()
        segment, request = self.segments.payload, self.requests.payload
        m.d.comb += [
            end.eq(self.bytes + self.reach),
            leaves.eq(self.sized & self.segments.ready & (self.is_fill | self.requests.ready)),
            self.segments.valid.eq(leaves),
            segment.address.eq(self.segment_address),
            segment.words.eq(end[bits:]),
            segment.first_lane.eq(self.lane),
            segment.last_lane.eq(end[:bits]),
            *([segment.layout.eq(self.layout)] if self.blocked else []),
            segment.fill.eq(self.is_fill),
            segment.fresh.eq(self.is_fresh),
            *([segment.pixel.eq(self.settings.pixel)] if self.blocked else []),
            *([segment.narrow.eq(self.tag.to.activations)] if self.bus_bytes > TILE_BYTES else []),
            segment.value.eq(self.settings.value),
            segment.tag.to.eq(self.tag.to),
            segment.tag.signals.eq(self.tag.signals & self.is_end),
            *([segment.coded.eq(self.coded), segment.steps.eq(self.steps)] if self.machine.coded_weights else []),
            self.requests.valid.eq(leaves & ~self.is_fill),
            request.address.eq(Cat(Const(0, bits), self.word)),
            request.beats.eq(end[bits:]),
        ]
        return leaves

    def _step(self, m: Module, step: Value) -> None:
        """Hand one segment over, and move on to the next of the row, or to the next row."""
        m.d.comb += [
            self.row_ends.eq((self.phase == RowPhase.RIGHT)
                             | ((self.phase == RowPhase.RUNS) & self.runs.last
                                & ~(self.padded & self.settings.has_right))),
            self.ends.eq(self.row_ends & self.rows.last),
            self.next_row_memory.eq(self.row_memory + self.settings.memory_row_step),
            # In the blocked layout four rows lie in a block row.
            self.next_row_buffer.eq(self.row_buffer
                                    + Mux((self.layout == BLOCKED) & (self.y != 3), 0, self.settings.row_step)),
            self.from_memory.eq((self.phase == RowPhase.RUNS) & ~self.fill),
        ]
        with m.If(step):
            self._hand_over(m)
            with m.If(self.row_ends):
                self._next_row(m)
            with m.Elif(self.phase == RowPhase.LEFT):
                m.d.sync += self.phase.eq(RowPhase.RUNS)
                with m.If(self.layout == LINEAR):
                    m.d.sync += self.run_buffer.eq(self.run_buffer + self.settings.left_bytes)
            with m.Elif(self.runs.last):
                m.d.sync += self.phase.eq(RowPhase.RIGHT)
            with m.Else():
                m.d.sync += [
                    self.run_memory.eq(self.run_memory + self.settings.memory_chunk_step),
                    self.run_buffer.eq(self.run_buffer + self.settings.chunk_step),
                ]
                self.runs.step(m)

    def _hand_over(self, m: Module) -> None:
        """Register the segment at hand, whose size is summed up in the next cycle."""
        bits = exact_log2(self.bus_bytes)
        lane = Mux(self.from_memory, self.run_memory[:bits], 0)
        m.d.sync += [
            self.lane.eq(lane),
            self.reach.eq(lane + (self.bus_bytes - 1)),
            self.word.eq(self.run_memory[bits:]),
            self.segment_address.eq(Mux(self.layout == BLOCKED, self.run_buffer | (self.y << 2), self.run_buffer)),
            self.is_fill.eq(~self.from_memory),
            # Padding behind a row goes where the row ended; a blocked row is one walk from pixel to pixel.
            self.is_fresh.eq(Mux(self.layout == BLOCKED, ~self.row_begun, self.phase != RowPhase.RIGHT)),
            self.is_end.eq(self.ends),
            *([self.row_begun.eq(~self.row_ends)] if self.blocked else []),
        ]
        with m.Switch(self.phase):
            with m.Case(RowPhase.LEFT):
                m.d.sync += self.bytes.eq(self.settings.left_bytes)
            with m.Case(RowPhase.RUNS):
                m.d.sync += self.bytes.eq(self.run_bytes)
            with m.Case(RowPhase.RIGHT):
                m.d.sync += self.bytes.eq(self.settings.right_bytes)

    def _next_row(self, m: Module) -> None:
        """Go to the first segment of the next row; after the last row the command has ended."""
        m.d.sync += [
            self.phase.eq(Mux(self.padded & self.settings.has_left, RowPhase.LEFT, RowPhase.RUNS)),
            self.row_memory.eq(self.next_row_memory),
            self.run_memory.eq(self.next_row_memory),
            self.row_buffer.eq(self.next_row_buffer),
            self.run_buffer.eq(self.next_row_buffer),
            *([self.y.eq(self.y + 1)] if self.blocked else []),
            self.running.eq(~self.rows.last),
        ]
        self.rows.step(m)
        self.runs.load(m, self.settings.chunks, once=self.settings.one_chunk)

    def _take(self, m: Module, free: Value) -> None:
        """Take a command; one that moves data once the semaphores it waits for are available."""
        command = self.commands.payload
        is_weights = is_command(command, "ldw", *(self._loads if self.machine.coded_weights else ()))
        is_residual = is_command(command, "lda", "residual") if self.machine.residual_adder else Const(0)
        is_tile = is_command(command, "lda", "linear", "blocked", "fill_linear", "fill_blocked")
        waits = (
            (self.act_free_available, self.act_free_take,
             is_tile & command.flags[flag("lda", "linear", "wait_act_free")]),
            (self.res_free_available, self.res_free_take,
             is_residual & command.flags[flag("lda", "residual", "wait_res_free")]),
            (self.mem_ready_available, self.mem_ready_take,
             ((is_tile & command.flags[flag("lda", "linear", "wait_mem_ready")])
              | (is_residual & command.flags[flag("lda", "residual", "wait_mem_ready")]))),
            (self.wgt_free_available, self.wgt_free_take,
             is_weights & command.flags[flag("ldw", "main", "wait_wgt_free")]),
            (self.par_free_available, self.par_free_take,
             is_weights & command.flags[flag("ldw", "main", "wait_par_free")]),
        )
        moves = Signal(name="runs")
        starts = Signal()
        m.d.comb += [
            moves.eq(is_weights | is_residual | is_tile),
            # What moves nothing waits for nothing.
            self.commands.ready.eq(free & ~Cat(waiting & ~there for there, _, waiting in waits).any()),
            starts.eq(self.commands.valid & moves & self.commands.ready),
            *[take.eq(starts & waiting) for _, take, waiting in waits],
        ]
        # Between commands the rest follows whatever comes: so its enables wait neither for semaphores nor for decoding.
        with m.If(starts):
            m.d.sync += self.running.eq(1)
        with m.If(free):  # what the segment that waits for its size needs too
            m.d.sync += [
                self.tag.signals.eq(command.flags[SIGNALS]),
                *([self.layout.eq(is_command(command, "lda", "blocked", "fill_blocked"))] if self.blocked else []),
                *([self.coded.eq(is_command(command, "ldw", *_CODED)),
                   self.steps.eq(views(command, "ldw", "coded_main")[1].steps)] if self.machine.coded_weights else []),
            ]
            with m.If(is_weights):
                self._go_to(m, **{target: is_command(command, "ldw", *(name for name in self._loads
                                                                       if _LDW_TARGETS[name] == target))
                                  for target in dict.fromkeys(_LDW_TARGETS[name] for name in self._loads)})
            with m.Else():
                self._go_to(m, activations=~is_residual, residuals=is_residual)
        with m.If(~self.running):
            m.d.sync += [
                self.fill.eq(is_command(command, "lda", "fill_linear", "fill_blocked")
                             | (self.erases if self.machine.erasure else 0)),
                self.padded.eq(is_tile),
                self.phase.eq(Mux(is_tile & self.settings.has_left, RowPhase.LEFT, RowPhase.RUNS)),
                *([self.row_begun.eq(0)] if self.blocked else []),
            ]
            with m.If(is_weights):
                self._start_weights(m)
            with m.Else():
                self._start_rows(m)

    def _go_to(self, m: Module, **targets: Value) -> None:
        """Set the target of a command: the one that is high."""
        m.d.sync += [self.tag.to[name].eq(targets.get(name, 0)) for name in _TARGETS]

    def _start_weights(self, m: Module) -> None:
        """Go to the only run of `ldw`: whole bus words."""
        command, bits = self.commands.payload, exact_log2(self.bus_bytes)
        source, target = views(command, "ldw", "main")
        words = target.words
        if self.machine.coded_weights:
            words = Mux(is_command(command, "ldw", *_CODED), self.settings.coded_words, words)
        m.d.sync += [
            self.run_bytes.eq(words << bits),
            self.run_memory.eq(Cat(Const(0, bits), source.address[bits:])),
            self.run_buffer.eq(target.base << bits),
            self.rows.last.eq(1),
            self.runs.last.eq(1),
        ]

    def _start_rows(self, m: Module) -> None:
        """Go to the first row of `lda`."""
        source, target = views(self.commands.payload, "lda", "linear")
        m.d.sync += [
            self.run_bytes.eq(self.settings.chunk_bytes),
            self.row_memory.eq(source.address),
            self.run_memory.eq(source.address),
            self.row_buffer.eq(target.base),
            self.run_buffer.eq(target.base),
            *([self.y.eq(target.y)] if self.blocked else []),
        ]
        self.rows.load(m, target.rows)
        self.runs.load(m, self.settings.chunks, once=self.settings.one_chunk)
