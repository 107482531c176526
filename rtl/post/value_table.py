"""Value tables after the requantisers: look up any function of an int8 value, with one copy of the tables per lane."""

from amaranth import Module, Signal
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, Machine
from tilewright.rtl.stream.stages import flow

__all__ = ["ValueTables"]


class ValueTables(Component):
    """Map vectors of ``post_lanes`` values by one of ``TABLE_SLOTS`` tables; one vector and one write per cycle.

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
    """

    LATENCY = 3

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        values = ArrayLayout(8, machine.post_lanes)
        super().__init__({
            "write": In(flow(StructLayout({"index": 16, "data": 8 * machine.bus_bytes}))),
            "slot": In(range(TABLE_SLOTS)),
            "i": In(flow(values)),
            "o": Out(values),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.machine.bus_bytes
        bits = exact_log2(bus)
        per_table = exact_log2(TABLE_BYTES // bus)
        arrived, chosen = Signal(), Signal()
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
            entry = self.i.payload[lane] ^ 0x80
            place, byte = (Signal(bits, name=f"{name}_{lane}", reset_less=True) for name in ("place", "byte"))
            word, mapped = (Signal(width, name=f"{name}_{lane}", reset_less=True)
                            for name, width in (("word", 8 * bus), ("mapped", 8)))
            m.d.comb += [
                read_port.addr.eq(entry[bits:] | (self.slot << per_table)),
                read_port.en.eq(self.i.valid),
                self.o[lane].eq(mapped),
            ]
            with m.If(self.i.valid):
                m.d.sync += place.eq(entry[:bits])
            with m.If(arrived):  # nothing between the block RAM and its register
                m.d.sync += [word.eq(read_port.data), byte.eq(place)]
            with m.If(chosen):
                m.d.sync += mapped.eq(word.word_select(byte, 8))
        return m
