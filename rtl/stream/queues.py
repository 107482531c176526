"""Streams through queues and across a halt: the handshakes that units have in common."""

from amaranth import Module, Value
from amaranth.lib.fifo import FIFOInterface
from amaranth.lib.wiring import PureInterface

__all__ = ["QUEUE_LATENCY", "dequeue", "enqueue", "pass_until"]

QUEUE_LATENCY = 1
"""Cycles through an empty `amaranth.lib.fifo.SyncFIFO`."""


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
