"""The front of the load unit: commands to requests for bus words, and to segments that say where they go."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.rtl.bus.axi import BusRequest
from tilewright.rtl.load.row_writer import BLOCKED, LINEAR, segment_layout
from tilewright.rtl.stream.commands import Command, flag, is_command, operands

WAITS = ("act_free", "res_free", "wgt_free", "par_free", "mem_ready")


class LoadTarget(Enum, shape=3):
    """Where the bytes of a segment go."""

    ACTIVATIONS = 0
    RESIDUALS = 1
    WEIGHTS = 2
    NINTHS = 3
    PARAMETERS = 4
    TABLES = 5


LDW_TARGETS = {"main": LoadTarget.WEIGHTS, "ninths": LoadTarget.NINTHS, "parameters": LoadTarget.PARAMETERS,
               "table": LoadTarget.TABLES}

SIGNALS = flag("lda", "linear", "signal_act_ready")
"""Index of the flag with which any of the commands signals."""

assert SIGNALS == flag("lda", "residual", "signal_res_ready") == flag("ldw", "main", "signal_wgt_ready")

TAG = StructLayout({"target": LoadTarget, "signals": 1})
"""What rides with a segment: its target, and whether its end is the end of a command that signals."""


class RowPhase(Enum, shape=2):
    """What of a row is due: the padding before it, its runs, the padding behind it."""

    LEFT = 0
    RUNS = 1
    RIGHT = 2


class LoadFront(wiring.Component):
    """Commands in; requests and segments out, a segment per cycle, one more cycle for each command.

    Members are those of `LoadUnit`, and ``segments``, which go to its back.
    """

    def __init__(self, bus_bytes):
        self.bus_bytes = bus_bytes
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "requests": Out(stream.Signature(BusRequest)),
            "segments": Out(stream.Signature(segment_layout(bus_bytes, TAG))),
            **{f"{name}_available": In(1) for name in WAITS},
            **{f"{name}_take": Out(1) for name in WAITS},
            "busy": Out(1),
        })
        self._configuration()
        self._walk()

    def _configuration(self):
        """Declare what the set variants hold, and what follows from it."""
        self.chunk_bytes = Signal(16)
        self.chunks = Signal(12)
        self.one_chunk = Signal()
        self.memory_chunk_step = Signal(32)
        self.memory_row_step = Signal(32)
        self.row_step = Signal(20)
        self.chunk_step = Signal(20)
        self.pixel = Signal(12)  # bytes of a pixel, that is channels, less one
        self.has_left, self.has_right = Signal(), Signal()
        self.left_bytes, self.right_bytes = Signal(18), Signal(18)
        self.value = Signal(8)

    def _walk(self):
        """Declare where the command under way stands."""
        self.running = Signal()
        self.tag = Signal(TAG)
        self.layout, self.fill, self.padded = Signal(), Signal(), Signal()
        self.phase = Signal(RowPhase)
        self.run_bytes = Signal(20)
        self.row_memory, self.run_memory = Signal(32), Signal(32)
        self.row_buffer, self.run_buffer = Signal(20), Signal(20)
        self.y = Signal(2)           # of the row in its block
        self.row_begun = Signal()    # blocked: its first segment has left, the others continue it
        self.rows, self.on_last_row = Signal(10), Signal()
        self.runs, self.on_last_run = Signal(12), Signal()
        # A segment, its size not yet summed up; ``reach`` is bytes beyond the first word's first lane.
        self.sized = Signal()
        self.bytes = Signal(20)
        self.lane = Signal(range(self.bus_bytes))
        self.reach = Signal(range(2 * self.bus_bytes))
        self.word = Signal(32 - exact_log2(self.bus_bytes))
        self.segment_address = Signal(20)
        self.is_fill, self.is_fresh, self.is_end = Signal(), Signal(), Signal()

    def elaborate(self, platform):
        m = Module()
        step, free = Signal(), Signal()
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
        self._configure(m, free)
        return m

    def _send(self, m):
        """Sum up the size of a segment and send it off with its request; return whether that happens."""
        bits = exact_log2(self.bus_bytes)
        end = Signal(21)  # what lies above the lane bits counts the words
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
            segment.layout.eq(self.layout),
            segment.fill.eq(self.is_fill),
            segment.fresh.eq(self.is_fresh),
            segment.pixel.eq(self.pixel),
            segment.value.eq(self.value),
            segment.tag.target.eq(self.tag.target),
            segment.tag.signals.eq(self.tag.signals & self.is_end),
            self.requests.valid.eq(leaves & ~self.is_fill),
            request.address.eq(Cat(Const(0, bits), self.word)),
            request.beats.eq(end[bits:]),
        ]
        return leaves

    def _step(self, m, step):
        """Hand one segment over, and move on to the next of the row, or to the next row."""
        bits = exact_log2(self.bus_bytes)
        row_ends, ends = Signal(), Signal()
        next_row_memory, next_row_buffer = Signal(32), Signal(20)
        m.d.comb += [
            row_ends.eq((self.phase == RowPhase.RIGHT)
                        | ((self.phase == RowPhase.RUNS) & self.on_last_run & ~(self.padded & self.has_right))),
            ends.eq(row_ends & self.on_last_row),
            next_row_memory.eq(self.row_memory + self.memory_row_step),
            # In the blocked layout four rows lie in a block row.
            next_row_buffer.eq(self.row_buffer
                               + Mux((self.layout == BLOCKED) & (self.y != 3), 0, self.row_step)),
        ]
        from_memory = Signal()
        m.d.comb += from_memory.eq((self.phase == RowPhase.RUNS) & ~self.fill)
        lane = Mux(from_memory, self.run_memory[:bits], 0)
        with m.If(step):
            m.d.sync += [
                self.lane.eq(lane),
                self.reach.eq(lane + (self.bus_bytes - 1)),
                self.word.eq(self.run_memory[bits:]),
                self.segment_address.eq(
                    Mux(self.layout == BLOCKED, self.run_buffer | (self.y << 2), self.run_buffer)),
                self.is_fill.eq(~from_memory),
                # Padding behind a row goes where the row ended; a blocked row is one walk from pixel to pixel.
                self.is_fresh.eq(Mux(self.layout == BLOCKED, ~self.row_begun, self.phase != RowPhase.RIGHT)),
                self.is_end.eq(ends),
                self.row_begun.eq(~row_ends),
            ]
            with m.Switch(self.phase):
                with m.Case(RowPhase.LEFT):
                    m.d.sync += self.bytes.eq(self.left_bytes)
                with m.Case(RowPhase.RUNS):
                    m.d.sync += self.bytes.eq(self.run_bytes)
                with m.Case(RowPhase.RIGHT):
                    m.d.sync += self.bytes.eq(self.right_bytes)

            with m.If(row_ends):
                m.d.sync += [
                    self.phase.eq(Mux(self.padded & self.has_left, RowPhase.LEFT, RowPhase.RUNS)),
                    self.row_memory.eq(next_row_memory),
                    self.run_memory.eq(next_row_memory),
                    self.row_buffer.eq(next_row_buffer),
                    self.run_buffer.eq(next_row_buffer),
                    self.y.eq(self.y + 1),
                    self.rows.eq(self.rows - 1),
                    self.on_last_row.eq(self.rows == 2),
                    self.runs.eq(self.chunks),
                    self.on_last_run.eq(self.one_chunk),
                    self.running.eq(~self.on_last_row),
                ]
            with m.Elif(self.phase == RowPhase.LEFT):
                m.d.sync += self.phase.eq(RowPhase.RUNS)
                with m.If(self.layout == LINEAR):
                    m.d.sync += self.run_buffer.eq(self.run_buffer + self.left_bytes)
            with m.Elif(self.on_last_run):
                m.d.sync += self.phase.eq(RowPhase.RIGHT)
            with m.Else():
                m.d.sync += [
                    self.run_memory.eq(self.run_memory + self.memory_chunk_step),
                    self.run_buffer.eq(self.run_buffer + self.chunk_step),
                    self.runs.eq(self.runs - 1),
                    self.on_last_run.eq(self.runs == 2),
                ]

    def _take(self, m, free):
        """Start a command that moves data once the semaphores it waits for are available."""
        command = self.commands.payload
        is_weights = is_command(command, "ldw")
        is_residual = is_command(command, "lda", "residual")
        is_tile = is_command(command, "lda", "linear", "blocked", "fill_linear", "fill_blocked")
        waits = {
            "act_free": is_tile & command.flags[flag("lda", "linear", "wait_act_free")],
            "res_free": is_residual & command.flags[flag("lda", "residual", "wait_res_free")],
            "mem_ready": ((is_tile & command.flags[flag("lda", "linear", "wait_mem_ready")])
                          | (is_residual & command.flags[flag("lda", "residual", "wait_mem_ready")])),
            "wgt_free": is_weights & command.flags[flag("ldw", "main", "wait_wgt_free")],
            "par_free": is_weights & command.flags[flag("ldw", "main", "wait_par_free")],
        }
        runs, starts = Signal(), Signal()
        m.d.comb += [
            runs.eq(is_weights | is_residual | is_tile),
            starts.eq(self.commands.valid & runs & free
                      & Cat(~wait | getattr(self, f"{name}_available") for name, wait in waits.items()).all()),
            *[getattr(self, f"{name}_take").eq(starts & wait) for name, wait in waits.items()],
            self.commands.ready.eq(Mux(runs, starts, free)),
        ]
        lda, ldw = operands("lda", "linear"), operands("ldw", "main")
        address = lda[0](command.rs1).address
        tile, weights = lda[1](command.rs2), ldw[1](command.rs2)
        bits = exact_log2(self.bus_bytes)
        with m.If(starts):
            m.d.sync += [
                self.running.eq(1),
                self.tag.signals.eq(command.flags[SIGNALS]),
                self.layout.eq(is_command(command, "lda", "blocked", "fill_blocked")),
                self.fill.eq(is_command(command, "lda", "fill_linear", "fill_blocked")),
                self.padded.eq(is_tile),
                self.phase.eq(Mux(is_tile & self.has_left, RowPhase.LEFT, RowPhase.RUNS)),
                self.row_begun.eq(0),
            ]
            for variant, target in LDW_TARGETS.items():
                with m.If(is_command(command, "ldw", variant)):
                    m.d.sync += self.tag.target.eq(target)
            with m.If(~is_weights):
                m.d.sync += self.tag.target.eq(Mux(is_residual, LoadTarget.RESIDUALS, LoadTarget.ACTIVATIONS))
            with m.If(is_weights):
                m.d.sync += [
                    self.run_bytes.eq(weights.words << bits),
                    self.run_memory.eq(Cat(Const(0, bits), address[bits:])),
                    self.run_buffer.eq(weights.base << bits),
                    self.on_last_row.eq(1),
                    self.on_last_run.eq(1),
                ]
            with m.Else():
                m.d.sync += [
                    self.run_bytes.eq(self.chunk_bytes),
                    self.row_memory.eq(address),
                    self.run_memory.eq(address),
                    self.row_buffer.eq(tile.base),
                    self.run_buffer.eq(tile.base),
                    self.y.eq(tile.y),
                    self.rows.eq(tile.rows),
                    self.on_last_row.eq(tile.rows == 1),
                    self.runs.eq(self.chunks),
                    self.on_last_run.eq(self.one_chunk),
                ]

    def _configure(self, m, free):
        """Carry out the set variants; the bytes of padding are there a cycle later, when the first step is."""
        command = self.commands.payload
        layout_set = self.commands.valid & free & is_command(command, "lda", "set_layout")
        rs2 = _views("set_layout", command)[1]
        self._multiply(m, layout_set, "left", rs2.left, rs2.channels, self.left_bytes)
        self._multiply(m, layout_set, "right", rs2.right, rs2.channels, self.right_bytes)
        with m.If(self.commands.valid & free & is_command(command, "lda", "set_row")):
            rs1, rs2 = _views("set_row", command)
            m.d.sync += [
                self.chunk_bytes.eq(rs1.chunk_bytes),
                self.chunks.eq(rs1.chunks),
                self.one_chunk.eq(rs1.chunks == 1),
                self.memory_chunk_step.eq(rs2.memory_chunk_step),
            ]
        with m.If(self.commands.valid & free & is_command(command, "lda", "set_step")):
            rs1, rs2 = _views("set_step", command)
            m.d.sync += [self.memory_row_step.eq(rs1.memory_row_step), self.row_step.eq(rs2.row_step)]
        with m.If(layout_set):
            rs1, rs2 = _views("set_layout", command)
            m.d.sync += [
                self.chunk_step.eq(rs1.chunk_step),
                self.pixel.eq(rs2.channels - 1),
                self.has_left.eq(rs2.left != 0),
                self.has_right.eq(rs2.right != 0),
                self.value.eq(rs2.value),
            ]

    @staticmethod
    def _multiply(m, enable, name, pixels, channels, product):
        """Make ``product`` = pixels * channels by adders, two cycles after ``enable``: DSP blocks are for the array."""
        digits = []  # of the pixels to the base 4, times the channels
        for place in range(0, len(pixels), 2):
            digit = Signal(len(channels) + 2, name=f"{name}_digit_{place}")
            with m.If(enable):
                m.d.sync += digit.eq(Mux(pixels[place], channels, 0) + (Mux(pixels[place + 1], channels, 0) << 1))
            digits.append(digit << place)
        m.d.sync += product.eq(sum(digits))


def _views(variant, command):
    """Return rs1 and rs2 by field name."""
    return tuple(layout(value) for layout, value in zip(operands("lda", variant), (command.rs1, command.rs2),
                                                        strict=True))
