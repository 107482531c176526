"""The record that sta.status stores: the counters of one cycle, and the fault, as bus words."""

from collections.abc import Iterator

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.isa.counters import (
    COUNTERS,
    CYCLES_HIGH_WORD,
    FAULT_ADDRESS_WORD,
    FAULT_WORD,
    FAULTS,
    RECORD_WORDS,
)
from tilewright.rtl.stream.counter_walk import walk_signature

__all__ = ["StatusRecord"]


class StatusRecord(wiring.Component):
    """Keep the counts of a walk of the counters and send them, each word as soon as all of it is there.

    The walk, which sets the cycle of all counts, begins 1 to 1 + ``len(COUNTERS)`` cycles after ``start``; the first
    word is there 2 + ``bus_bytes`` / 4 cycles after that. Each has ``bus_bytes`` / 4 counters, which come one per
    cycle; the words behind them follow one per cycle. So without back-pressure a record takes, with the walk's first
    cycle, 35 (4 bytes), 31 (8), 29 (16) or 28 (32 and 64) cycles. Later walks do not touch it.

    Parameters
    ----------
    bus_bytes
        Bytes of a word: 4 to 64.

    Members
    -------
    start : ``In(1)``
        Make a record; only while not ``busy``.
    counters : ``Out(walk_signature())``
    fault : ``In(...)``
        Fault code, a key of `isa.counters.FAULTS`.
    fault_address : ``In(32)``
    o : ``Out(stream.Signature(8 * bus_bytes))``
        ``words`` bus words.
    busy : ``Out(1)``
        From the cycle after ``start`` until the last word is taken.

    Attributes
    ----------
    banks : list of Memory
        The counts; one for each 32 bits of a word.
    """

    REQUEST_LATENCY = 1
    """From ``start`` until the counters are asked for."""
    WALK_LATENCY = 2
    """From the beginning of a walk to the first word, less the cycles in which its counters come."""

    def __init__(self, bus_bytes: int) -> None:
        self.bus_bytes = bus_bytes
        self.words = 4 * RECORD_WORDS // bus_bytes
        self.banks = [Memory(shape=32, depth=self.words, init=[]) for _ in range(bus_bytes // 4)]
        super().__init__({
            "start": In(1),
            "counters": Out(walk_signature()),
            "fault": In(range(max(FAULTS) + 1)),
            "fault_address": In(32),
            "o": Out(stream.Signature(8 * bus_bytes)),
            "busy": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counters, count = self.counters, self.counters.sums.payload
        recording = Signal()
        there = Signal()
        word = Signal(range(self.words))
        cycles_high = Signal.like(counters.cycles_high)
        with m.If(self.start):
            m.d.sync += [counters.request.eq(1), self.busy.eq(1)]
        with m.If(counters.sums.valid & (count.index == len(COUNTERS) - 1)):
            m.d.sync += recording.eq(0)
            with m.If(recording):
                m.d.sync += cycles_high.eq(counters.cycles_high)
        # The last sum of the walk before may come in the cycle in which ours begins.
        with m.If(counters.request & counters.begins):
            m.d.sync += [counters.request.eq(0), recording.eq(1)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += word.eq(word + 1)
            with m.If(word == self.words - 1):
                m.d.sync += self.busy.eq(0)

        bits = exact_log2(len(self.banks))
        m.d.comb += [
            # It may catch up with the walk but never overtakes it.
            there.eq(~recording | (counters.sums.valid & (word != count.index[bits:]))),
            self.o.valid.eq(self.busy & ~counters.request & there),
            self.o.payload.eq(Cat(self._keep(m, recording & counters.sums.valid, word, cycles_high))),
        ]
        return m

    def _keep(self, m: Module, keeps: Value, word: Value, cycles_high: Value) -> Iterator[Value]:
        """Keep the counts in the banks; return each bank's part of ``word``: a count, or what follows them."""
        each = len(self.banks)
        bits = exact_log2(each)
        count = self.counters.sums.payload
        tail = {CYCLES_HIGH_WORD: cycles_high, FAULT_WORD: self.fault, FAULT_ADDRESS_WORD: self.fault_address}
        for place, bank in enumerate(self.banks):
            m.submodules[f"bank_{place}"] = bank
            read, write = bank.read_port(domain="comb"), bank.write_port()
            m.d.comb += [
                read.addr.eq(word),
                write.addr.eq(count.index[bits:]),
                write.data.eq(count.count),
                write.en.eq(keeps & (count.index[:bits] == place)),
            ]
            value = Mux(word <= (len(COUNTERS) - 1 - place) // each, read.data, Const(0, 32))
            for position, field in tail.items():
                if position % each == place:
                    value = Mux(word == position // each, field, value)
            yield value
