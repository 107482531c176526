"""The array that Winograd is compared with: lanes of 16 int8 multipliers, an adder tree, one sum per tile in flight.

It keeps our lane's contract wherever that has nothing to do with Winograd: activations and slots pass from lane to
lane, weights are held from one slot marked ``load`` to the next, every bank of registers loads by an enable, a product
is added as many cycles later, and sums lie in two memories. It is for comparison alone and no part of the product.
"""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.array.lane import SUM
from tilewright.rtl.array.sequencer.slots import DEPTH, Slot
from tilewright.rtl.stream.stages import flow

VALUES = 16
VALUE = signed(8)
PRODUCT = signed(16)
QUARTER, DOT = signed(18), signed(20)


class PlainLane(Component):
    """Multiply 16 activations by this lane's 16 weights and add their sum to the tile's; one tile slot per cycle.

    Parameters
    ----------
    tiles : int
        Tiles in flight.

    Members
    -------
    i, o : ``flow(...)``
        ``v`` (16 int8), ``slot`` (`Slot`).
    u : ``In(ArrayLayout(signed(8), 16))``
        Weights.
    complete : ``Out(1)``
    sums_address : ``In(4)``
    sums : ``Out(signed(32))``
    """

    LATENCY = 4

    def __init__(self, tiles):
        self.tile_bits = (tiles - 1).bit_length()
        passed = flow(StructLayout({"v": ArrayLayout(VALUE, VALUES), "slot": Slot}))
        super().__init__({
            "i": In(passed),
            "o": Out(passed),
            "u": In(ArrayLayout(VALUE, VALUES)),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(SUM),
        })

    def elaborate(self, platform):
        m = Module()
        valid, slots = [self.i.valid], [self.i.payload.slot]
        for number in range(1, self.LATENCY + 1):
            valid.append(Signal(name=f"valid_{number}"))
            slots.append(Signal(Slot, name=f"slot_{number}", reset_less=True))
            m.d.sync += valid[number].eq(valid[number - 1])
            with m.If(valid[number - 1]):
                m.d.sync += slots[number].eq(slots[number - 1])
        present = [each & slot.present for each, slot in zip(valid, slots, strict=True)]
        a, b = (Signal(ArrayLayout(VALUE, VALUES), name=name, reset_less=True) for name in ("a_register", "b_register"))
        products = Signal(ArrayLayout(PRODUCT, VALUES), name="products_register", reset_less=True)
        quarters = Signal(ArrayLayout(QUARTER, 4), reset_less=True)
        dot = Signal(DOT, reset_less=True)
        with m.If(present[0]):
            m.d.sync += a.eq(self.i.payload.v)
        with m.If(valid[0] & slots[0].load):
            m.d.sync += b.eq(self.u)
        with m.If(present[1]):
            m.d.sync += [products[k].eq(a[k] * b[k]) for k in range(VALUES)]
        with m.If(present[2]):
            m.d.sync += [quarters[k].eq(_sum(products[4 * k + each] for each in range(4))) for k in range(4)]
        with m.If(present[3]):
            m.d.sync += dot.eq(_sum(quarters[k] for k in range(4)))
        m.d.comb += [self.o.valid.eq(valid[1]), self.o.payload.slot.eq(slots[1]), self.o.payload.v.eq(a)]
        self._accumulate(m, slots[4], valid[4], dot)
        return m

    def _accumulate(self, m, slot, valid, dot):
        group = Signal(4 - self.tile_bits)
        complete = valid & slot.complete
        m.d.sync += self.complete.eq(complete)
        with m.If(complete):
            m.d.sync += group.eq(group + 1)
        m.submodules.running_0 = running = Memory(shape=SUM, depth=DEPTH, init=[])
        m.submodules.finished_0 = finished = Memory(shape=SUM, depth=DEPTH, init=[])
        old, new = running.read_port(domain="comb"), running.write_port()
        result, waiting = finished.write_port(), finished.read_port(domain="comb")
        total = Signal(SUM, name="total_0")
        m.d.comb += [
            old.addr.eq(slot.tile),
            total.eq(Mux(slot.clear, 0, old.data) + dot),
            new.addr.eq(slot.tile),
            new.data.eq(total),
            new.en.eq(valid & slot.present & ~slot.finish),
            result.addr.eq(Cat(slot.tile[:self.tile_bits], group)),
            result.data.eq(total),
            result.en.eq(valid & slot.present & slot.finish),
            waiting.addr.eq(self.sums_address),
            self.sums.eq(waiting.data),
        ]


def _sum(values):
    """Return the sum of four values, as two levels of adders."""
    a, b, c, d = values
    return (a + b) + (c + d)
