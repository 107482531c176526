"""The store unit: from the result buffer to main memory or back to the activation buffer; also the status record.

The front turns commands into runs. The *reader* asks the result buffer for each run's bytes, already in the lanes
where memory wants them, and notes what they are for; the words that come back pass through a queue to the bus or
to a `RowWriter`. The reader asks only for what the queue has room for.
"""

from amaranth import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import exact_log2

from tilewright.isa.counters import FAULTS
from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.buffers.activation_port import activation_write_stream
from tilewright.rtl.bus.axi import BusRequest, write_beat
from tilewright.rtl.load.row_writer import BLOCKED, RowWriter, segment_layout
from tilewright.rtl.store.status_record import StatusRecord
from tilewright.rtl.store.store_front import StoreFront, run_layout
from tilewright.rtl.stream.commands import Command
from tilewright.rtl.stream.counter_walk import walk_signature
from tilewright.rtl.stream.queues import QUEUE_LATENCY, FlaggedFIFO, HeadedFIFO, dequeue, enqueue, pass_until
from tilewright.rtl.stream.stages import flow

__all__ = ["REQUESTS", "RUNS", "StoreUnit"]

REQUESTS = 2
"""Requests queued towards the bus; two, so that its ready is no part of a path through the front."""

RUNS = 2
"""Runs queued behind the front, for the same reason."""


def _word_layout(machine: Machine) -> StructLayout:
    """Return the layout of a word from the result buffer: to memory, or with chaining perhaps elsewhere."""
    chained = {"to_memory": 1} if machine.chaining else {}
    return StructLayout({"data": 8 * machine.bus_bytes, "strobe": machine.bus_bytes, **chained})


class _ResultReader(wiring.Component):
    """Read runs from the result buffer, a word per cycle, never more words than its user has room for.

    Members
    -------
    runs, read, data
        Runs in; requests to the result buffer, and its answers.
    o : flow of words with strobe and destination
    returned : ``In(1)``
        The user has room for one more.
    out_free_signal, res_free_signal : ``Out(1)``
    busy : ``Out(1)``
        A run is being read, or words have not been returned.
    """

    LATENCY = 1
    """From a run to its first read."""

    def __init__(self, machine: Machine, room: int) -> None:
        self.machine = machine
        self.bus_bytes = bus_bytes = machine.bus_bytes
        self.room = room
        super().__init__({
            "runs": In(stream.Signature(run_layout(machine))),
            "read": Out(stream.Signature(20)),
            "data": In(flow(8 * bus_bytes)),
            "o": Out(flow(_word_layout(machine))),
            "returned": In(1),
            "out_free_signal": Out(1),
            "res_free_signal": Out(1),
            "busy": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        run = Signal(run_layout(self.machine), reset_less=True)  # source and words count on
        active, on_first, on_last, asks, waits = (
            Signal(name=name) for name in ("active", "on_first", "on_last", "asks", "waits"))
        under_way, has_room = Signal(range(self.room + 1), name="under_way"), Signal(init=1, name="has_room")
        m.d.comb += [
            self.runs.ready.eq(~active | (asks & on_last)),
            self.read.valid.eq(active & has_room),
            self.read.payload.eq(run.source),
            asks.eq(self.read.valid & self.read.ready),
            self.busy.eq(active | waits),
        ]
        with m.If(self.runs.ready):
            m.d.sync += [
                active.eq(self.runs.valid),
                run.eq(self.runs.payload),
                on_first.eq(1),
                on_last.eq(self.runs.payload.words == 1),
            ]
        with m.Elif(asks):
            m.d.sync += [
                run.source.eq(run.source + self.bus_bytes),
                run.words.eq(run.words - 1),
                on_first.eq(0),
                on_last.eq(run.words == 2),
            ]
        with m.If(asks ^ self.returned):
            m.d.sync += [
                under_way.eq(Mux(asks, under_way + 1, under_way - 1)),
                has_room.eq(~asks | (under_way != self.room - 1)),
                waits.eq(asks | (under_way != 1)),
            ]

        chained = {"to_memory": 1} if self.machine.chaining else {}
        note = StructLayout({"strobe": self.bus_bytes, **chained, "out_free": 1, "res_free": 1})
        noted, arrived = (Signal(note, name=name) for name in ("noted", "arrived"))
        m.submodules.notes = notes = FlaggedFIFO(width=note.size, depth=self.room)
        ones = (1 << self.bus_bytes) - 1
        from_first = Mux(on_first, (ones << run.first_lane)[:self.bus_bytes], ones)
        up_to_last = Mux(on_last, Cat(lane <= run.last_lane for lane in range(self.bus_bytes)), ones)
        m.d.comb += [
            noted.strobe.eq(from_first & up_to_last),
            *([noted.to_memory.eq(run.to_memory)] if chained else []),
            noted.out_free.eq(run.out_free & on_last),
            noted.res_free.eq(run.res_free & on_last),
            notes.w_data.eq(noted),
            notes.w_en.eq(asks),
            arrived.eq(notes.r_data),
            notes.r_en.eq(self.data.valid),
            self.o.valid.eq(self.data.valid),
            self.o.payload.data.eq(self.data.payload),
            self.o.payload.strobe.eq(arrived.strobe),
            *([self.o.payload.to_memory.eq(arrived.to_memory)] if chained else []),
        ]
        m.d.sync += [
            self.out_free_signal.eq(self.data.valid & arrived.out_free),
            self.res_free_signal.eq(self.data.valid & arrived.res_free),
        ]
        return m


class _LocalWriter(wiring.Component):
    """Write runs to the activation buffer: a queue of runs, and a `RowWriter` for words that start at lane 0.

    Members
    -------
    runs, words
        Runs, and their words in the same order.
    o : stream of writes
    act_ready_signal : ``Out(1)``
    busy : ``Out(1)``
    """

    def __init__(self, machine: Machine, depth: int) -> None:
        self.bus_bytes = bus_bytes = machine.bus_bytes
        self.blocked = machine.winograd
        self.depth = depth
        super().__init__({
            "runs": In(stream.Signature(run_layout(machine))),
            "words": In(stream.Signature(8 * bus_bytes)),
            "o": Out(activation_write_stream(machine)),
            "act_ready_signal": Out(1),
            "busy": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = {"layout": 1} if self.blocked else {}
        kept = StructLayout({
            "target": 20, "words": 16, "last_lane": range(self.bus_bytes), **layout, "act_ready": 1})
        m.submodules.queue = queue = HeadedFIFO(width=kept.size, depth=self.depth)
        m.submodules.writer = writer = RowWriter(self.bus_bytes, tag=1, splits=False, blocked=self.blocked)
        pushed = Signal(kept)
        segment = Signal(segment_layout(self.bus_bytes, 1, blocked=self.blocked))
        head, write = kept(queue.r_data), writer.o.payload
        m.d.comb += [
            *[pushed[name].eq(self.runs.payload[name]) for name in kept.members],
            queue.w_data.eq(pushed),
            queue.w_en.eq(self.runs.valid),
            self.runs.ready.eq(queue.w_rdy),
            segment.address.eq(head.target),
            segment.words.eq(head.words),
            segment.last_lane.eq(head.last_lane),
            *([segment.layout.eq(head.layout)] if layout else []),
            segment.fresh.eq(1),
            *([segment.narrow.eq(1)] if self.bus_bytes > TILE_BYTES else []),
            segment.tag.eq(head.act_ready),
            writer.segments.payload.eq(segment),
            writer.segments.valid.eq(queue.r_rdy),
            queue.r_en.eq(writer.segments.ready),
            self.busy.eq(queue.r_rdy | writer.busy),

            self.o.valid.eq(writer.o.valid),
            *([self.o.payload.blocked.eq(write.layout == BLOCKED)] if self.blocked else []),
            *[self.o.payload[name].eq(write[name]) for name in ("address", "count", "data")],
            writer.o.ready.eq(self.o.ready),
        ]
        connect(m, wiring.flipped(self.words), writer.words)
        m.d.sync += self.act_ready_signal.eq(self.o.valid & self.o.ready & write.last & write.tag)
        self.observed = {"run_copied": self.o.valid & self.o.ready & write.last}
        return m


class StoreUnit(wiring.Component):
    """Carry out `sta` commands in order.

    A command takes one cycle of the front and one more per run. A run takes as many cycles as it touches bus words
    (`sta.memory`), or as it has bus words, or 16 bytes of them (`sta.linear`, `sta.blocked`), without a gap between
    runs; so also runs of 8 bytes are stored at one per cycle if memory takes them. A command with ``mem_ready``, and
    `sta.status`, are followed by the next only when memory has acknowledged everything.

    Counts (rows, chunks, bytes) must not be zero. The address of `sta.status` is a multiple of the bus width: lower
    bits are ignored.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    commands : ``In(stream.Signature(Command))``
        The commands of `isa.encoding` whose unit is ``store``.
    store_read : ``Out(stream.Signature(20))``
        Address of ``bus_bytes`` bytes of the result buffer.
    store_data : ``In(flow(8 * bus_bytes))``
        Those bytes, in order; after any latency, up to ``WORDS`` - 3 cycles without loss of rate.
    write_request : ``Out(stream.Signature(BusRequest))``
        Runs of aligned bus words to write.
    write_data : ``Out(stream.Signature(write_beat(bus_bytes)))``
        Those words, in order.
    writer_idle : ``In(1)``
        Memory has acknowledged all words of all requests taken.
    activation_write : ``Out(activation_write_stream(machine))``
    out_ready_available : ``In(1)``, out_ready_take : ``Out(1)``
        Taken in the cycle a command starts.
    out_free_signal, res_free_signal : ``Out(1)``
        The cycle after a command's last byte came out of the result buffer.
    act_ready_signal : ``Out(1)``
        The cycle after a command's last byte was written to the activation buffer.
    mem_ready_signal : ``Out(1)``
        Memory has acknowledged all that was stored.
    counters, fault, fault_address
        As of `StatusRecord`.
    halt : ``In(1)``
        Stop, from the next cycle on: commands are taken and dropped. Bursts that the bus has begun get the words they
        lack, with no byte of them enabled. The second cycle behind its last one finds everything as after reset.
    busy : ``Out(1)``
        A command is under way, up to the cycle of its signals; acknowledgements may be outstanding.
    activation_written_bytes, memory_written_bytes : ``Out``
        Bytes written in this cycle.
    """

    WORDS = 16
    SEGMENTS = 16
    READ_LATENCY = StoreFront.LATENCY + QUEUE_LATENCY + _ResultReader.LATENCY
    """From a command's start to its first read of the result buffer."""
    BUS_LATENCY = QUEUE_LATENCY + 1
    """From bytes that came out of the result buffer to ``write_data``: the queue of words and a register."""
    FREE_LATENCY = 1
    """From a command's last bytes out of the result buffer to ``out_free_signal`` and ``res_free_signal``."""
    LOCAL_LATENCY = QUEUE_LATENCY + RowWriter.WORD_LATENCY + 1
    """From a command's last bytes out of the result buffer to ``act_ready_signal``."""
    RECORD_LATENCY = StatusRecord.WALK_LATENCY + 1
    """From the beginning of a walk to a record's first ``write_data``, less the cycles in which its counters come."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        bus = machine.bus_bytes
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "store_read": Out(stream.Signature(20)),
            "store_data": In(flow(8 * bus)),
            "write_request": Out(stream.Signature(BusRequest)),
            "write_data": Out(stream.Signature(write_beat(bus))),
            "writer_idle": In(1),
            "activation_write": Out(activation_write_stream(machine)),
            "out_ready_available": In(1),
            "out_ready_take": Out(1),
            "out_free_signal": Out(1),
            "res_free_signal": Out(1),
            "act_ready_signal": Out(1),
            "mem_ready_signal": Out(1),
            "counters": Out(walk_signature()),
            "fault": In(range(max(FAULTS) + 1)),
            "fault_address": In(32),
            "halt": In(1),
            "busy": Out(1),
            "activation_written_bytes": Out(5),
            "memory_written_bytes": Out(max(5, bus.bit_length())),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.machine.bus_bytes
        halt = Signal(name="halts")  # a register here, which goes everywhere
        m.d.sync += halt.eq(self.halt)
        until_halt = ResetInserter(halt)
        word = _word_layout(self.machine)
        m.submodules.front = self._front = front = until_halt(StoreFront(self.machine))
        m.submodules.record = record = until_halt(StatusRecord(bus))
        m.submodules.reader = reader = until_halt(_ResultReader(self.machine, self.WORDS))
        m.submodules.requests = requests = until_halt(FlaggedFIFO(width=48, depth=REQUESTS))
        m.submodules.words = words = until_halt(HeadedFIFO(width=word.size, depth=self.WORDS))
        writer = self._writer = None
        if self.machine.chaining:
            m.submodules.writer = writer = self._writer = until_halt(_LocalWriter(self.machine, self.SEGMENTS))

        pass_until(m, halt, self.commands, front.commands)
        m.d.comb += [
            front.out_ready_available.eq(self.out_ready_available),
            self.mem_ready_signal.eq(front.mem_ready_signal),
        ]
        # In a register, for it comes late; the next command looks at the semaphore two cycles later at the earliest.
        m.d.sync += self.out_ready_take.eq(front.out_ready_take)
        self._connect_record(m, record, front)
        runs = until_halt(FlaggedFIFO(width=run_layout(self.machine).size, depth=RUNS))
        m.submodules.runs = runs
        self._begin(m, front, runs, reader, requests, writer, record_beats=record.words)

        connect(m, reader.read, wiring.flipped(self.store_read))
        connect(m, wiring.flipped(self.store_data), reader.data)
        head = word(words.r_data)
        bus_takes = self._send(m, head, words.r_rdy, record, halt=halt)
        m.d.comb += [
            words.w_data.eq(reader.o.payload),
            words.w_en.eq(reader.o.valid),
            words.r_en.eq(bus_takes if writer is None else Mux(head.to_memory, bus_takes, writer.words.ready)),
            reader.returned.eq(words.r_en & words.r_rdy),
        ]
        if writer is not None:
            m.d.comb += [
                writer.words.payload.eq(head.data),
                writer.words.valid.eq(words.r_rdy & ~head.to_memory),
            ]
            connect(m, writer.o, wiring.flipped(self.activation_write))

        empty, signals = (Signal(name=name) for name in ("empty", "signals"))
        m.d.comb += [
            empty.eq(~(runs.r_rdy | reader.busy | (0 if writer is None else writer.busy)
                       | requests.r_rdy | record.busy | self.write_data.valid)),
            front.settled.eq(empty & self.writer_idle),
            self.out_free_signal.eq(reader.out_free_signal),
            self.res_free_signal.eq(reader.res_free_signal),
            *([] if writer is None else [self.act_ready_signal.eq(writer.act_ready_signal)]),
            signals.eq(self.out_free_signal | self.res_free_signal | self.act_ready_signal),
            self.busy.eq((front.busy | ~empty | signals) & ~(self.halt | halt)),
            self.activation_written_bytes.eq(
                0 if writer is None else
                Mux(self.activation_write.valid & self.activation_write.ready, writer.o.payload.count, 0)),
        ]
        return m

    @property
    def observed(self) -> dict[str, Value]:
        """Its members of `rtl.port.command_watch.CommandEvents`, once it has been elaborated."""
        runs, writer = self._front.runs, self._writer
        return {
            "run_queued": runs.valid & runs.ready,
            "run_ends_command": self._front.is_end,
            "run_to_memory": Const(1) if writer is None else runs.payload.to_memory,
            "run_words": runs.payload.words,
            "record_begins": self._front.record,
            "word_sent": self.write_data.valid & self.write_data.ready,
            **({} if writer is None else writer.observed),
        }

    def _connect_record(self, m: Module, record: StatusRecord, front: StoreFront) -> None:
        """Let the front start the record, and give it what it tells of."""
        m.d.comb += [
            record.start.eq(front.record),
            record.fault.eq(self.fault),
            record.fault_address.eq(self.fault_address),
        ]
        connect(m, record.counters, wiring.flipped(self.counters))

    def _begin(self, m: Module, front: StoreFront, runs: FlaggedFIFO, reader: _ResultReader, requests: FlaggedFIFO,
               writer: _LocalWriter | None, *, record_beats: int) -> None:
        """Queue each run; then give it to the reader, and at once to the bus or to the activation buffer's writer."""
        bits = exact_log2(self.machine.bus_bytes)
        run = run_layout(self.machine)(runs.r_data)
        to_memory = Const(1) if writer is None else run.to_memory
        has_room = Signal()
        passes = Signal()
        asked = Signal(BusRequest)
        request = Signal(BusRequest)
        enqueue(m, front.runs, runs)
        m.d.comb += [
            has_room.eq(requests.w_rdy if writer is None else Mux(to_memory, requests.w_rdy, writer.runs.ready)),
            passes.eq(runs.r_rdy & has_room & reader.runs.ready),
            runs.r_en.eq(has_room & reader.runs.ready),
            reader.runs.payload.eq(run),
            reader.runs.valid.eq(runs.r_rdy & has_room),
            *([] if writer is None else [writer.runs.payload.eq(run), writer.runs.valid.eq(passes & ~to_memory)]),

            asked.address.eq(Mux(front.record, front.record_address, run.target)),
            asked.beats.eq(Mux(front.record, record_beats, run.words)),
            request.address.eq(Cat(Const(0, bits), asked.address[bits:])),
            request.beats.eq(asked.beats),
            requests.w_data.eq(request),
            requests.w_en.eq(front.record | (passes & to_memory)),
        ]
        dequeue(m, requests, self.write_request)

    def _send(self, m: Module, head: View, valid: Value, record: StatusRecord, *, halt: Signal) -> Signal:
        """Register words for the bus; return whether it takes the head of the queue.

        The register outlives the begin of a halt: a word offered must stay. Then come words without any byte, as long
        as the halt lasts; the bus takes those that its bursts lack.
        """
        bus = self.machine.bus_bytes
        to_memory = head.to_memory if self.machine.chaining else Const(1)
        free = Signal()
        takes = Signal()
        count = Signal(range(bus + 1))  # of the bytes in the register
        m.d.comb += [
            free.eq(~self.write_data.valid | self.write_data.ready),
            takes.eq(free & ~record.busy),
            record.o.ready.eq(free),
            self.memory_written_bytes.eq(Mux(self.write_data.valid & self.write_data.ready, count, 0)),
        ]
        with m.If(free):
            strobe = Mux(halt, 0, Mux(record.busy, (1 << bus) - 1, head.strobe))
            m.d.sync += [
                self.write_data.valid.eq(Mux(record.busy, record.o.valid, valid & to_memory) | halt),
                self.write_data.payload.data.eq(Mux(record.busy, record.o.payload, head.data)),
                self.write_data.payload.strobe.eq(strobe),
                count.eq(sum(strobe[k] for k in range(bus))),
            ]
        with m.If(halt & ~self.halt):
            m.d.sync += self.write_data.valid.eq(0)
        return takes
