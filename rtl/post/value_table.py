"""Value tables after the requantisers: look up any function of an int8 value, with one copy of the tables per lane."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, Machine
from tilewright.isa.words.curve_fields import ENTRY_BYTES, PIECE
from tilewright.rtl.arithmetic.parabola import WordCurve
from tilewright.rtl.stream.stages import flow

__all__ = ["ValueTables"]

WORD_BITS = 2   # of a byte's place in a word of 32 bits


class ValueTables(Component):
    """Map vectors of ``post_lanes`` values by one of ``TABLE_SLOTS`` tables; one vector and one write per cycle.

    With a unit of rows all tables together are one of 256 little-endian words of 32 bits, too; with words of 16 bits
    they are a curve of 128 entries, and each word passes a parabola of its own.

    A copy is a memory of whole bus words, so that it is written as they come; the byte is chosen behind the read. It
    has a port to write and a synchronous one to read: a block RAM (where the bus is 16 bytes wide Yosys takes LUTs of
    Xilinx 7 instead, for only 64 words).

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    write : flow
        ``index`` of a bus word, counted over all tables, and its ``data``; bits of the index beyond are ignored.
    slot : In
        The table; must not change in the cycle of ``i`` or the one behind it.
    i : flow
        Values, signed bytes.
    o : list of bytes
        Entry 128 + value of each, ``LATENCY`` cycles later; they stay until the next ones come.
    wide : In
        With a unit of rows: ``i`` are numbers of words. It must not change either.
    words : list of 32 bits
        The words of those numbers, ``LATENCY`` cycles later; they stay until the next ones come.
    curved : In
        With a curve: ``given`` are looked up in it. It must not change until they have been.
    given : In
        Words of 16 bits, which come with ``i``.
    bent : list of 16 bits
        What they become, ``CURVE_LATENCY`` cycles later, for that cycle.
    """

    LATENCY = 3
    CURVE_LATENCY = LATENCY + WordCurve.LATENCY

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        values = ArrayLayout(8, machine.post_lanes)
        words = {"wide": In(1), "words": Out(ArrayLayout(8 << WORD_BITS, machine.post_lanes))}
        curves = {"curved": In(1), **{name: kind(ArrayLayout(16, machine.post_lanes)) for name, kind in (
            ("given", In), ("bent", Out))}}
        super().__init__({
            "write": In(flow(StructLayout({"index": 16, "data": 8 * machine.bus_bytes}))),
            "slot": In(range(TABLE_SLOTS)),
            "i": In(flow(values)),
            "o": Out(values),
            **(words if machine.normalises_rows else {}),
            **(curves if machine.bends_words else {}),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.machine.bus_bytes
        bits = exact_log2(bus)
        per_table = exact_log2(TABLE_BYTES // bus)
        arrived = Signal()
        chosen = Signal()
        m.d.sync += [arrived.eq(self.i.valid), chosen.eq(arrived)]
        for lane in range(self.machine.post_lanes):
            memory = Memory(shape=8 * bus, depth=TABLE_SLOTS * TABLE_BYTES // bus, init=[])
            m.submodules[f"copy_{lane}"] = memory
            write_port, read_port = memory.write_port(), memory.read_port()
            m.d.comb += [
                write_port.addr.eq(self.write.payload.index),
                write_port.data.eq(self.write.payload.data),
                write_port.en.eq(self.write.valid),
            ]
            value = self.i.payload[lane]
            entry = value ^ 0x80
            place, byte = (Signal(bits, name=f"{name}_{lane}", reset_less=True) for name in ("place", "byte"))
            word, mapped = (Signal(width, name=f"{name}_{lane}", reset_less=True)
                            for name, width in (("word", 8 * bus), ("mapped", 8)))
            address, part = entry[bits:] | (self.slot << per_table), entry[:bits]
            if self.machine.normalises_rows:
                address = Mux(self.wide, value[bits - WORD_BITS:], address)
                part = Mux(self.wide, value[:bits - WORD_BITS], part)
                self._choose_word(m, lane, word, byte[:bits - WORD_BITS], chosen)
            if self.machine.bends_words:
                address = self._follow(m, lane, address, word, chosen)
            m.d.comb += [
                read_port.addr.eq(address),
                read_port.en.eq(self.i.valid),
                self.o[lane].eq(mapped),
            ]
            with m.If(self.i.valid):
                m.d.sync += place.eq(part)
            with m.If(arrived):  # nothing between the block RAM and its register
                m.d.sync += [word.eq(read_port.data), byte.eq(place)]
            with m.If(chosen):
                m.d.sync += mapped.eq(word.word_select(byte, 8))
        return m

    def _follow(self, m: Module, lane: int, address: Value, word: Value, chosen: Value) -> Value:
        """Let a lane's word of 16 bits follow the curve; return the row that is read."""
        m.submodules[f"curve_{lane}"] = curve = WordCurve()
        parts = exact_log2(self.machine.bus_bytes // ENTRY_BYTES)
        given, below = self.given[lane], exact_log2(PIECE)
        place = Cat(given[below:-1], ~given[-1])
        held = Cat(given[:below], place[:parts])
        for stage in range(self.LATENCY - 1):
            later = Signal.like(held, name=f"along_{lane}_{stage}", reset_less=True)
            m.d.sync += later.eq(held)
            held = later
        entry, along = (Signal(width, name=f"{name}_{lane}", reset_less=True) for name, width in (
            ("piece", 8 * ENTRY_BYTES), ("along", below)))
        with m.If(chosen & self.curved):    # its multipliers rest while bytes are mapped
            m.d.sync += [entry.eq(word.word_select(held[below:], 8 * ENTRY_BYTES) if parts else word),
                         along.eq(held[:below])]
        m.d.comb += [curve.entry.eq(entry), curve.along.eq(along), self.bent[lane].eq(curve.o)]
        return Mux(self.curved, place[parts:], address)

    def _choose_word(self, m: Module, lane: int, word: Value, place: Value, chosen: Value) -> None:
        """Choose a lane's word of 32 bits of a bus word."""
        entry = Signal(8 << WORD_BITS, name=f"entry_{lane}", reset_less=True)
        with m.If(chosen):
            m.d.sync += entry.eq(word.word_select(place, 8 << WORD_BITS) if len(place) else word)
        m.d.comb += self.words[lane].eq(entry)
