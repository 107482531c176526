"""One output channel of a plain array: 16 multipliers of int8, an adder tree, and one sum for each tile in flight."""

from collections.abc import Sequence

from amaranth import Cat, Module, Signal, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.machine import TILE_BYTES
from tilewright.rtl.arithmetic.winograd import VALUE
from tilewright.rtl.array.lane import SUM
from tilewright.rtl.array.sequencer.slots import DEPTH, AnySlot, Slot, sum_before
from tilewright.rtl.stream.stages import flow

__all__ = ["PlainLane", "PlainMultipliers"]

_PRODUCT = signed(16)
_QUARTER, _DOT = signed(18), signed(20)


class PlainMultipliers(Component):
    """Sixteen signed products of int8 with registers before and after, as `rtl.array.lane.Multipliers` has them."""

    LATENCY = 2

    a: In(ArrayLayout(VALUE, TILE_BYTES))
    a_enable: In(1)
    a_held: Out(ArrayLayout(VALUE, TILE_BYTES))
    b: In(ArrayLayout(VALUE, TILE_BYTES))
    b_enable: In(1)
    products: Out(ArrayLayout(_PRODUCT, TILE_BYTES))
    products_enable: In(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a_held, b_held, products = (
            Signal(shape, name=name, reset_less=True) for name, shape in (
                ("a_register", self.a_held.shape()), ("b_register", self.b.shape()),
                ("products_register", self.products.shape())))
        m.d.comb += [self.a_held.eq(a_held), self.products.eq(products)]
        with m.If(self.a_enable):
            m.d.sync += a_held.eq(self.a)
        with m.If(self.b_enable):
            m.d.sync += b_held.eq(self.b)
        with m.If(self.products_enable):
            m.d.sync += [products[k].eq(a_held[k] * b_held[k]) for k in range(TILE_BYTES)]
        return m


class PlainLane(Component):
    """Multiply 16 activations by this lane's 16 weights and add their sum to the tile's; one tile slot per cycle.

    Data, slots, weights and sums come and go as in `rtl.array.lane.Lane`, whose ``LATENCY`` this has too.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them.

    Members
    -------
    i, o : ``flow(...)``
        ``v`` (16 int8), ``slot``.
    u : ``In(ArrayLayout(signed(8), 16))``
        Weights.
    complete : ``Out(1)``
    sums_address : ``In(4)``
    sums : ``Out(ArrayLayout(signed(32), 1))``
    """

    LATENCY = PlainMultipliers.LATENCY + 2

    def __init__(self, tiles: int, slot: type[AnySlot] = Slot) -> None:
        self.tile_bits = (tiles - 1).bit_length()
        self.slot = slot
        passed = flow(StructLayout({"v": ArrayLayout(VALUE, TILE_BYTES), "slot": slot}))
        super().__init__({
            "i": In(passed),
            "o": Out(passed),
            "u": In(ArrayLayout(VALUE, TILE_BYTES)),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(SUM, 1)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.products = multipliers = PlainMultipliers()
        valid, slots = [self.i.valid], [self.i.payload.slot]
        for number in range(1, self.LATENCY + 1):
            valid.append(Signal(name=f"valid_{number}"))
            slots.append(Signal(self.slot, name=f"slot_{number}", reset_less=True))
            m.d.sync += valid[number].eq(valid[number - 1])
            with m.If(valid[number - 1]):
                m.d.sync += slots[number].eq(slots[number - 1])
        present = [each & slot.present for each, slot in zip(valid, slots, strict=True)]
        quarters = Signal(ArrayLayout(_QUARTER, 4), reset_less=True)
        dot = Signal(_DOT, reset_less=True)
        products = multipliers.products
        with m.If(present[2]):
            m.d.sync += [quarters[k].eq(_sum([products[4 * k + each] for each in range(4)])) for k in range(4)]
        with m.If(present[3]):
            m.d.sync += dot.eq(_sum([quarters[k] for k in range(4)]))
        m.d.comb += [
            multipliers.a.eq(self.i.payload.v),
            multipliers.a_enable.eq(present[0]),
            multipliers.b.eq(self.u),
            multipliers.b_enable.eq(valid[0] & slots[0].load),
            multipliers.products_enable.eq(present[1]),
            self.o.valid.eq(valid[1]),
            self.o.payload.slot.eq(slots[1]),
            self.o.payload.v.eq(multipliers.a_held),
        ]
        self._accumulate(m, slots[-1], valid[-1], dot)
        return m

    def _accumulate(self, m: Module, slot: AnySlot, valid: Value, dot: Value) -> None:
        """Add ``dot`` to the tile's sum; finished sums go to the other memory, where they can be read."""
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
            total.eq(sum_before(slot, old.data) + dot),
            new.addr.eq(slot.tile),
            new.data.eq(total),
            new.en.eq(valid & slot.present & ~slot.finish),
            result.addr.eq(Cat(slot.tile[:self.tile_bits], group)),
            result.data.eq(total),
            result.en.eq(valid & slot.present & slot.finish),
            waiting.addr.eq(self.sums_address),
            self.sums[0].eq(waiting.data),
        ]


def _sum(values: Sequence[Value]) -> Value:
    """Return the sum of four values, as two levels of adders."""
    a, b, c, d = values
    return (a + b) + (c + d)
