"""The record that sta.status stores: a snapshot of the counters, and the fault, as bus words."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from tilewright.isa.counters import COUNTERS, FAULT_ADDRESS_WORD, FAULT_WORD, FAULTS, RECORD_WORDS


class StatusRecord(wiring.Component):
    """Hold the counters of one cycle and send them word by word.

    The first word is there in the cycle after ``start``, then one per cycle. All counters are those of the cycle
    of ``start``, so that causes still add up to cycles; they leave through a shift register, which costs no more
    logic than choosing among them.

    Parameters
    ----------
    bus_bytes
        Bytes of a word: 4, 8 or 16.

    Members
    -------
    start : ``In(1)``
        Take a snapshot; only while ``o`` is not valid.
    counters : ``In(ArrayLayout(32, len(COUNTERS)))``
    fault : ``In(...)``
        Fault code, a key of `isa.counters.FAULTS`.
    fault_address : ``In(32)``
    o : ``Out(stream.Signature(8 * bus_bytes))``
        ``WORDS`` bus words.
    """

    def __init__(self, bus_bytes):
        self.bus_bytes = bus_bytes
        self.words = 4 * RECORD_WORDS // bus_bytes
        super().__init__({
            "start": In(1),
            "counters": In(ArrayLayout(32, len(COUNTERS))),
            "fault": In(range(max(FAULTS) + 1)),
            "fault_address": In(32),
            "o": Out(stream.Signature(8 * bus_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self.bus_bytes
        shape = self.counters.shape()
        snapshot = Signal(shape.size, reset_less=True)
        word = Signal(range(self.words))

        with m.If(self.start):
            m.d.sync += [snapshot.eq(self.counters.as_value()), self.o.valid.eq(1)]
        with m.Elif(self.o.valid & self.o.ready):
            # Zeros follow the counters, and the words beside the fault's are zero too.
            m.d.sync += [snapshot.eq(snapshot >> bits), word.eq(word + 1)]
            with m.If(word == self.words - 1):
                m.d.sync += self.o.valid.eq(0)

        m.d.comb += self.o.payload.eq(snapshot[:bits])
        tail = {FAULT_WORD: self.fault, FAULT_ADDRESS_WORD: self.fault_address}
        each = self.bus_bytes // 4
        for index in sorted({position // each for position in tail}):
            values = [tail.get(each * index + i, Const(0, 32)) for i in range(each)]
            with m.If(word == index):
                m.d.comb += self.o.payload.eq(Cat((value | Const(0, 32))[:32] for value in values))
        return m
