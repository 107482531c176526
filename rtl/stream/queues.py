"""Streams through queues and across a halt: the handshakes that units have in common."""

from amaranth import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.fifo import FIFOInterface
from amaranth.lib.memory import Memory, ReadPort
from amaranth.lib.wiring import PureInterface

__all__ = ["QUEUE_LATENCY", "FlaggedFIFO", "HeadedFIFO", "dequeue", "enqueue", "pass_until"]

QUEUE_LATENCY = 1
"""Cycles through an empty `FlaggedFIFO`."""


def enqueue(m: Module, source: PureInterface, queue: FIFOInterface) -> None:
    """Put what ``source``, a stream, offers into ``queue``."""
    m.d.comb += [
        queue.w_data.eq(source.payload),
        queue.w_en.eq(source.valid),
        source.ready.eq(queue.w_rdy),
    ]


def dequeue(m: Module, queue: FIFOInterface, target: PureInterface) -> None:
    """Offer the head of ``queue`` to ``target``, a stream."""
    m.d.comb += [
        Value.cast(target.payload).eq(queue.r_data),
        target.valid.eq(queue.r_rdy),
        queue.r_en.eq(target.ready),
    ]


def pass_until(m: Module, halt: Value, source: PureInterface, target: PureInterface) -> None:
    """Pass a stream on; while ``halt`` is high, take what comes and drop it."""
    m.d.comb += [
        target.payload.eq(source.payload),
        target.valid.eq(source.valid & ~halt),
        source.ready.eq(target.ready | halt),
    ]


class _CountedFIFO(Elaboratable, FIFOInterface):
    """A queue in a memory, and whether it has room or an entry, which registers tell.

    Both flags are used within the cycle in which they are read, so registers tell them, without a comparison. How the
    head is read is left to ``_read``.
    """

    def __init__(self, *, width: int, depth: int) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"Depth of a queue must be a power of two from 2 on, not {depth!r}")
        super().__init__(width=width, depth=depth)
        self.level = Signal(range(depth + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.storage = storage = Memory(shape=self.width, depth=self.depth, init=[])
        w_port = storage.write_port()
        r_port = storage.read_port(domain="comb")
        produce = Signal(range(self.depth))
        consume = Signal(range(self.depth))
        has_room = Signal(init=1)
        has_entry = Signal()
        writes, reads = self.w_en & has_room, self.r_en & has_entry
        m.d.comb += [
            self.w_rdy.eq(has_room),
            self.r_rdy.eq(has_entry),
            self.w_level.eq(self.level),
            self.r_level.eq(self.level),
        ]
        m.d.sync += [produce.eq(produce + writes), consume.eq(consume + reads)]
        with m.If(writes ^ reads):  # both come late, and the sums before them
            m.d.sync += [
                self.level.eq(Mux(reads, self.level - 1, self.level + 1)),
                has_room.eq(reads | (self.level != self.depth - 1)),
                has_entry.eq(~reads | (self.level != 1)),
            ]
        m.d.comb += [w_port.addr.eq(produce), w_port.data.eq(self.w_data), w_port.en.eq(writes)]
        self._read(m, r_port, reads, consume)
        return m

    def _read(self, m: Module, port: ReadPort, reads: Value, consume: Signal) -> None:
        """Show the head, which lies at ``consume``; it leaves in this cycle if ``reads``."""
        raise NotImplementedError


class FlaggedFIFO(_CountedFIFO):
    """A queue as `amaranth.lib.fifo.SyncFIFO`, in the same cycles, whose flags come from registers.

    Parameters
    ----------
    width
        Bits of an entry.
    depth
        Entries; a power of two, at least 2.
    """

    def _read(self, m: Module, port: ReadPort, reads: Value, consume: Signal) -> None:
        m.d.comb += [port.addr.eq(consume), self.r_data.eq(port.data)]


class HeadedFIFO(_CountedFIFO):
    """A queue as `FlaggedFIFO`, in the same cycles, whose head comes from registers, not from memory.

    The head is read, or taken from what is written, in the cycle before it is due: no path leads through the memory.

    Parameters
    ----------
    width
        Bits of an entry.
    depth
        Entries; a power of two, at least 2.
    """

    def _read(self, m: Module, port: ReadPort, reads: Value, consume: Signal) -> None:
        head = Signal(self.width)
        m.d.comb += [port.addr.eq(consume + 1), self.r_data.eq(head)]
        # With one entry or none the next head is what is written, if anything is.
        with m.If(reads | ~self.r_rdy):
            m.d.sync += head.eq(Mux(self.level <= 1, self.w_data, port.data))
