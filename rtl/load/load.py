"""The load unit: from main memory to the activation buffer, the weight memories, parameters, tables and residuals.

The *front* turns commands into requests for bus words and, for each, a segment that says where its bytes go; it
runs ahead of the data by as many segments as the queue holds. The *back*, a `RowWriter`, turns segments and data
into writes. The front waits for semaphores, the back signals them.
"""

from amaranth import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.activation_buffer import activation_write_signature
from tilewright.rtl.buffers.result_buffer import residual_write
from tilewright.rtl.buffers.weight_buffer import weight_write_signature, written_bytes
from tilewright.rtl.bus.axi import BusRequest, read_beat
from tilewright.rtl.load.load_front import TAG, WAITS, LoadFront
from tilewright.rtl.load.row_writer import BLOCKED, RowWriter, segment_layout
from tilewright.rtl.load.weight_decoder import WeightDecoder
from tilewright.rtl.stream.commands import Command
from tilewright.rtl.stream.queues import QUEUE_LATENCY, FlaggedFIFO, HeadedFIFO, dequeue, enqueue, pass_until
from tilewright.rtl.stream.stages import flow

__all__ = ["REQUESTS", "RESIDUALS", "SIGNALS", "LoadUnit"]

SIGNALS = ("act_ready", "res_ready", "wgt_ready")
REQUESTS = 2
"""Requests queued towards the bus; two, so that its ready is no part of a path through the front."""

RESIDUALS = 2
"""Writes queued towards the result buffer; two, so that its ready, which is post-processing's, holds up no bus word."""


class LoadUnit(wiring.Component):
    """Carry out `lda` and `ldw` commands in order.

    A command takes two cycles of the front, and one more for each run and each padding beyond the first; requests
    leave from the fourth cycle on. Bytes are written two cycles after their bus word has come, residuals three:

    - `ldw`, linear rows and residuals, one bus word per cycle, an unaligned run of memory being up to one word longer;
      of linear rows at most the 16 bytes of aligned lanes that the activation buffer takes;
    - blocked rows, the bytes of one bus word in one pixel per cycle;
    - padding, up to a bus word per cycle, without a word being taken.

    - coded weights, `WeightDecoder.LATENCY` and the cycles of `isa.coded.weight_code` behind what came before them,
      and what comes behind them likewise.

    There is no gap between other runs, rows and commands as long as ``SEGMENTS`` segments cover the latency of memory.
    Counts (rows, chunks, bytes, words, and channels where there is padding) must not be zero. The address of
    `ldw` is a multiple of the bus width: lower bits are ignored.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    commands : ``In(stream.Signature(Command))``
        The commands of `isa.encoding` whose unit is ``load``.
    read_request : ``Out(stream.Signature(BusRequest))``
        Runs of aligned bus words to read.
    read_data : ``In(stream.Signature(read_beat(bus_bytes)))``
        Those words, in order.
    activation_write : ``Out(activation_write_signature(machine))``
    weight_write : ``Out(weight_write_signature(machine))``
    parameter_write, table_write : ``Out(flow(...))``
        ``index`` of a bus word, and its ``data``.
    residual_write : ``Out(stream.Signature(...))``
        ``count`` bytes of ``data`` for byte ``address`` of the result buffer.
    NAME_available : ``In(1)``, NAME_take : ``Out(1)``
        For act_free, res_free, wgt_free, par_free, mem_ready: taken in the cycle behind a command's start.
    NAME_signal : ``Out(1)``
        For act_ready, res_ready, wgt_ready: the cycle after a command's last byte was written.
    halt : ``In(1)``
        Stop, from the next cycle on: nothing is requested or written, commands and words are taken and dropped. The
        second cycle behind its last one finds everything as after reset.
    erases : ``In(1)``
        Of a machine with erasure: while high, all commands write zeros, and read nothing.
    busy : ``Out(1)``
        A command is under way, up to the cycle of its signal.
    activation_written_bytes, weight_written_bytes : ``Out``
        Bytes written in this cycle; parameters and tables count as weights.
    """

    SEGMENTS = 16
    REQUEST_LATENCY = LoadFront.LATENCY + QUEUE_LATENCY
    """From a command's start to its first request."""
    SIGNAL_LATENCY = RowWriter.WORD_LATENCY + 1
    """From a command's last bus word to its signal, but for residuals, which pass through a queue."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        bus = machine.bus_bytes
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "read_request": Out(stream.Signature(BusRequest)),
            "read_data": In(stream.Signature(read_beat(bus))),
            "activation_write": Out(activation_write_signature(machine)),
            "weight_write": Out(weight_write_signature(machine)),
            "parameter_write": Out(flow(StructLayout({"index": 16, "data": 8 * bus}))),
            "table_write": Out(flow(StructLayout({"index": 16, "data": 8 * bus}))),
            "residual_write": Out(stream.Signature(residual_write(machine))),
            **{f"{name}_available": In(1) for name in WAITS},
            **{f"{name}_take": Out(1) for name in WAITS},
            **{f"{name}_signal": Out(1) for name in SIGNALS},
            "halt": In(1),
            **({"erases": In(1)} if machine.erasure else {}),
            "busy": Out(1),
            "activation_written_bytes": Out(5),
            "weight_written_bytes": Out(max(5, written_bytes(machine).bit_length())),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.machine.bus_bytes
        halt = Signal()  # a register here, which goes everywhere
        m.d.sync += halt.eq(self.halt)
        until_halt = ResetInserter(halt)
        m.submodules.front = front = until_halt(LoadFront(self.machine))
        m.submodules.requests = requests = until_halt(FlaggedFIFO(width=48, depth=REQUESTS))
        segment = segment_layout(bus, TAG, blocked=self.machine.winograd, coded=self.machine.coded_weights)
        m.submodules.segments = segments = until_halt(HeadedFIFO(width=segment.size, depth=self.SEGMENTS))
        m.submodules.writer = writer = until_halt(RowWriter(bus, tag=TAG, blocked=self.machine.winograd))

        if self.machine.erasure:
            m.d.comb += front.erases.eq(self.erases)
        pass_until(m, halt, self.commands, front.commands)
        enqueue(m, front.requests, requests)
        dequeue(m, requests, self.read_request)
        enqueue(m, front.segments, segments)
        busy = front.busy | segments.r_rdy | writer.busy
        written = writer.o.valid & writer.o.ready & writer.o.payload.last
        if self.machine.coded_weights:
            m.submodules.decoder = self._decoder = until_halt(WeightDecoder(self.machine, TAG))
            busy = busy | self._share_words(m, halt, segment(segments.r_data), segments, writer)
            written = written | (self._decoder.o.valid & self._decoder.o.payload.last)
        else:
            dequeue(m, segments, writer.segments)
        m.d.comb += [
            *[getattr(front, f"{name}_available").eq(getattr(self, f"{name}_available")) for name in WAITS],
            *([] if self.machine.coded_weights else [
                writer.words.payload.eq(self.read_data.payload.data),
                writer.words.valid.eq(self.read_data.valid),
                self.read_data.ready.eq(writer.words.ready | halt),
            ]),
        ]
        # In registers, for they come late; the next command looks at semaphores two cycles later at the earliest.
        m.d.sync += [getattr(self, f"{name}_take").eq(getattr(front, f"{name}_take")) for name in WAITS]
        residuals_wait = self._residuals(m, halt, until_halt) if self.machine.residual_adder else Const(0)
        signalled = self._deliver(m, halt, writer.o)
        self.observed = {
            "segment_queued": front.segments.valid & front.segments.ready,
            "segment_ends_command": front.is_end,
            "segment_written": written,
        }
        m.d.comb += self.busy.eq(busy | residuals_wait | signalled)
        return m

    def _share_words(self, m: Module, halt: Signal, segment: View, segments: HeadedFIFO, writer: RowWriter) -> Value:
        """Give coded blocks to the decoder and other segments to the writer, one after the other.

        Returns whether the decoder has something to do.
        """
        decoder, block = self._decoder, self._decoder.blocks.payload
        m.d.comb += [
            writer.segments.valid.eq(segments.r_rdy & ~segment.coded & ~decoder.busy),
            decoder.blocks.valid.eq(segments.r_rdy & segment.coded & ~writer.busy),
            *[writer.segments.payload[name].eq(segment[name]) for name in writer.segments.payload.shape().members],
            block.index.eq(segment.address >> exact_log2(self.machine.bus_bytes)),
            *[block[name].eq(segment[name]) for name in ("steps", "words", "tag")],
            segments.r_en.eq(Mux(segment.coded, decoder.blocks.ready & ~writer.busy,
                                 writer.segments.ready & ~decoder.busy)),
            writer.words.payload.eq(self.read_data.payload.data),
            decoder.words.payload.eq(self.read_data.payload.data),
            writer.words.valid.eq(self.read_data.valid & ~decoder.busy),
            decoder.words.valid.eq(self.read_data.valid & decoder.busy),
            self.read_data.ready.eq(Mux(decoder.busy, decoder.words.ready, writer.words.ready) | halt),
        ]
        return decoder.busy | decoder.o.valid

    def _residuals(self, m: Module, halt: Signal, until_halt: ResetInserter) -> Value:
        """Queue writes for the result buffer, whose last gives the signal; return whether there is one."""
        kept = StructLayout({**residual_write(self.machine).members, "signals": 1})
        m.submodules.residuals = queue = until_halt(FlaggedFIFO(width=kept.size, depth=RESIDUALS))
        self._residual_queue = queue
        self._residual = Signal(kept)
        head = kept(queue.r_data)
        m.d.comb += [
            queue.w_data.eq(self._residual),
            self.residual_write.valid.eq(queue.r_rdy),
            *[self.residual_write.payload[name].eq(head[name]) for name in ("address", "count", "data")],
            queue.r_en.eq(self.residual_write.ready),
        ]
        m.d.sync += self.res_ready_signal.eq(
            queue.r_rdy & self.residual_write.ready & head.signals & ~halt)
        return queue.r_rdy

    def _deliver(self, m: Module, halt: Signal, writes: wiring.PureInterface) -> Value:
        """Pass each write to its target; return whether a signal leaves in this cycle."""
        write = writes.payload
        to = write.tag.to
        index = write.address >> exact_log2(self.machine.bus_bytes)
        machine = self.machine
        to_activations = Signal()
        to_residuals = Signal()
        to_weights = Signal()
        to_parameters = Signal()
        to_tables = Signal()
        moves = Signal()
        m.d.comb += [
            to_activations.eq(writes.valid & to.activations),
            to_residuals.eq(writes.valid & to.residuals if machine.residual_adder else 0),
            to_weights.eq(writes.valid & (to.weights | to.ninths)),
            to_parameters.eq(writes.valid & to.parameters),
            to_tables.eq(writes.valid & to.tables if machine.value_tables else 0),

            self.activation_write.valid.eq(to_activations),
            *([self.activation_write.blocked.eq(write.layout == BLOCKED)] if machine.winograd else []),
            self.activation_write.address.eq(write.address),
            self.activation_write.count.eq(write.count),
            self.activation_write.data.eq(write.data),

        ]
        if machine.residual_adder:
            m.d.comb += [
                self._residual_queue.w_en.eq(to_residuals),
                *[self._residual[name].eq(write[name]) for name in ("address", "count", "data")],
                self._residual.signals.eq(write.last & write.tag.signals),
            ]
        m.d.comb += [
            self.weight_write.valid.eq(to_weights),
            *([self.weight_write.ninth.eq(to.ninths)] if machine.winograd else []),
            self.weight_write.index.eq(index),
            self.weight_write.data.eq(write.data.replicate(2) if machine.decodes_two_words else write.data),

            self.parameter_write.valid.eq(to_parameters),
            self.parameter_write.payload.index.eq(index),
            self.parameter_write.payload.data.eq(write.data),

            self.table_write.valid.eq(to_tables),
            self.table_write.payload.index.eq(index),
            self.table_write.payload.data.eq(write.data),

            writes.ready.eq(~to_residuals | self._residual_queue.w_rdy if machine.residual_adder else 1),
            moves.eq(writes.valid & writes.ready & ~halt),
            self.activation_written_bytes.eq(Mux(to_activations, write.count, 0)),
            self.weight_written_bytes.eq(Mux(to_weights | to_parameters | to_tables, write.count, 0)),
        ]
        ends = moves & write.last & write.tag.signals
        weights_end = ends & (to_weights | to_parameters | to_tables)
        if machine.coded_weights:
            weights_end = weights_end | self._deliver_decoded(m, halt)
        m.d.sync += [
            self.act_ready_signal.eq(ends & to_activations),
            self.wgt_ready_signal.eq(weights_end),
        ]
        return Cat(getattr(self, f"{name}_signal") for name in SIGNALS).any()

    def _deliver_decoded(self, m: Module, halt: Signal) -> Value:
        """Pass decoded weights to their memory, while the writer has none; return whether a signal is due."""
        decoded, write, machine = self._decoder.o, self.weight_write, self.machine
        o = decoded.payload
        with m.If(decoded.valid):
            m.d.comb += [
                write.valid.eq(1),
                *([write.ninth.eq(o.tag.to.ninths)] if machine.winograd else []),
                *([write.both.eq(1)] if machine.decodes_two_words else []),
                write.index.eq(o.index),
                write.data.eq(o.data),
                self.weight_written_bytes.eq(machine.decoded_bytes),
            ]
        return decoded.valid & o.last & o.tag.signals & ~halt
