"""The unit of an extension on the activation buffer: reads items word by word, and writes a result over each."""

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.extension import BufferUnit
from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.buffers.activation_buffer import spare_write
from tilewright.rtl.stream.commands import Command, flag, views
from tilewright.rtl.stream.extension_component import checked_component, fields_layout
from tilewright.rtl.stream.queues import dequeue
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["ExtensionUnit", "item_words", "unit_component"]


def item_words() -> StructLayout:
    """Return the words of an item as the unit receives them: 16 bytes, of which ``count`` belong to the item."""
    return StructLayout({"data": ArrayLayout(signed(8), TILE_BYTES), "count": 5, "first": 1, "last": 1})


def unit_component(unit: BufferUnit) -> Component:
    """Return the component of ``unit``; :exc:`~tilewright.isa.extension.ExtensionError` if it breaks the contract."""
    return checked_component(unit, (), {
        "i": In(stream.Signature(item_words())), "settings": In(fields_layout(unit.fields[1])),
        "o": Out(stream.Signature(ArrayLayout(signed(8), unit.result_bytes)))})


class ExtensionUnit(Component):
    """Take run_unit commands of an extension, one at a time.

    Rate: one word per cycle, as long as the component takes them. The writes may be held up, and then so are the reads.

    Parameters
    ----------
    machine : Machine
    unit : BufferUnit
    read_latency : int
        Cycles from ``read`` to ``data``.

    Members
    -------
    commands : ``In(stream.Signature(Command))``
    act_ready_available, act_ready_take
        The semaphore waited for; taken in the cycle in which the command begins.
    clear : ``In(1)``
        The array reads nothing: a command may begin.
    read : ``Out(flow(20))``
        Byte address of 16 bytes.
    data : ``In(ArrayLayout(signed(8), 16))``
        Those bytes, ``read_latency`` cycles later.
    answers : ``Out(1)``
        High in that cycle.
    write : ``Out(stream.Signature(spare_write(machine)))``
    busy, waits : ``Out(1)``
        A command is under way; one waits for the semaphore.
    """

    WORDS = 8
    """Words on their way from the buffer to the component, at most."""

    def __init__(self, machine: Machine, unit: BufferUnit, read_latency: int) -> None:
        self.machine, self.unit, self.read_latency = machine, unit, read_latency
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "act_ready_available": In(1),
            "act_ready_take": Out(1),
            "clear": In(1),
            "read": Out(flow(20)),
            "data": In(ArrayLayout(signed(8), TILE_BYTES)),
            "answers": Out(1),
            "write": Out(stream.Signature(spare_write(machine))),
            "busy": Out(1),
            "waits": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = self.unit
        m.submodules.component = component = unit_component(unit)
        item_bytes = Signal(12)
        own = Signal(fields_layout(unit.fields[1]))
        place = Signal(20)
        target = Signal(20)
        items = Signal(12)  # to be read
        left = Signal(12)   # to be written
        started = self._take(m, (item_bytes, own, place, target, items, left))

        fresh = Signal(init=1)
        rest = Signal(12)
        here = Mux(fresh, item_bytes, rest)
        last = here <= TILE_BYTES
        room = Signal(range(self.WORDS + 1), init=self.WORDS)
        m.d.comb += [self.read.valid.eq((items != 0) & (room != 0)), self.read.payload.eq(place)]
        with m.If(self.read.valid):
            m.d.sync += [fresh.eq(last), rest.eq(here - TILE_BYTES), place.eq(place + Mux(last, here, TILE_BYTES)),
                         items.eq(items - last)]
        pipe = Pipeline(m, self.read.valid, prefix="read_", count=Mux(last, here, TILE_BYTES)[:5], first=fresh,
                        last=last)
        for _ in range(self.read_latency):
            pipe.step()
        m.submodules.words = words = SyncFIFO(width=item_words().size, depth=self.WORDS)
        m.d.comb += [
            self.answers.eq(pipe.valid),
            words.w_en.eq(pipe.valid),
            words.w_data.eq(Cat(self.data, pipe.count, pipe.first, pipe.last)),
            component.settings.eq(own),
        ]
        dequeue(m, words, component.i)
        m.d.sync += room.eq(room + (component.i.valid & component.i.ready) - self.read.valid)

        written = Signal()
        m.d.comb += [
            written.eq(self.write.valid & self.write.ready),
            self.write.valid.eq(component.o.valid & (left != 0)),
            component.o.ready.eq(self.write.ready & (left != 0)),
            self.write.payload.address.eq(target),
            self.write.payload.count.eq(unit.result_bytes),
            self.write.payload.data.eq(Cat(component.o.payload)),
            self.busy.eq((left != 0) | started),
        ]
        self.observed = {"array_begins": self.commands.valid & self.commands.ready,
                         "array_ends": written & (left == 1)}
        with m.If(written):
            m.d.sync += [target.eq(target + item_bytes), left.eq(left - 1)]
        return m

    def _take(self, m: Module, registers: tuple[Signal, ...]) -> Value:
        """Take a command once the array is at rest and its semaphore there; return whether one has just ended or not.

        A command begins some cycles after the last write of the one before, so that its reads see that write.
        """
        item_bytes, own, place, target, items, left = registers
        head = self.commands.payload
        first, second = views(head, "extension", "run_unit")
        waits = head.flags[flag("extension", "run_unit", "wait_act_ready")]
        resting = Signal(2)
        free = (left == 0) & (resting == 0)
        begin = Signal()
        m.d.comb += [
            begin.eq(self.commands.valid & free & self.clear & (self.act_ready_available | ~waits)),
            self.commands.ready.eq(begin),
            self.act_ready_take.eq(begin & waits),
            self.waits.eq(self.commands.valid & free & waits & ~self.act_ready_available),
        ]
        with m.If(left != 0):
            m.d.sync += resting.eq(3)
        with m.Elif(resting != 0):
            m.d.sync += resting.eq(resting - 1)
        with m.If(begin):
            m.d.sync += [place.eq(first.base), target.eq(first.base), items.eq(first.items), left.eq(first.items),
                         item_bytes.eq(second.item_bytes), own.eq(second.own[:len(Value.cast(own))])]
        return resting != 0
