"""One output channel: 16 multipliers, the inverse transform, and four sums for each tile in flight."""

from amaranth import Cat, Module, Signal, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout, View
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.arithmetic.winograd import DATA, PRODUCT, WEIGHT, InverseTransform
from tilewright.rtl.array.sequencer.slots import DEPTH, AnySlot, Slot, sum_before
from tilewright.rtl.stream.stages import flow

__all__ = ["SUM", "Lane", "Multipliers"]

SUM = signed(32)


class Multipliers(Component):
    """Sixteen signed products with registers before and after: the place of the DSP blocks.

    ``products`` are ``a * b`` as they were two cycles ago; each bank of registers loads only where it is enabled.
    ``a_held`` is the register of the first operand, which a lane passes on to the next. Behaviour and timing are those
    of ECP5's MULT18X18D with input and output registers, one per product, and without reset: for that family synthesis
    puts hardware/synthesis/ecp5_multipliers.v in the place of this module, by its name and ports. There these
    registers load in every cycle: ``products_enable`` must follow ``a_enable`` by a cycle, and the products are to
    be read in the cycle after that.
    """

    LATENCY = 2

    a: In(ArrayLayout(DATA, 16))
    a_enable: In(1)
    a_held: Out(ArrayLayout(DATA, 16))
    b: In(ArrayLayout(WEIGHT, 16))
    b_enable: In(1)
    products: Out(ArrayLayout(PRODUCT, 16))
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
            m.d.sync += [products[k].eq(a_held[k] * b_held[k]) for k in range(16)]
        return m


class Lane(Component):
    """Multiply a tile by this lane's weights and add the result to the tile's sums; one tile slot per cycle.

    Data and slots go from lane to lane with a delay of one cycle (``o``). In the slot marked ``load`` the lane
    takes the weights that then stand at ``u`` and keeps them until the next.

    A slot's product is added ``LATENCY`` cycles after it has come. When a tile's sums are finished they are
    written to a second memory, `DEPTH` / ``tiles`` tile groups deep, in turn; they can be read from the next
    cycle on, all four at once and without delay. ``complete`` is high in the cycle in which a group's sums
    can first be read.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them.

    Members
    -------
    i, o : ``flow(...)``
        ``v`` (16 values), ``slot``.
    u : ``In(ArrayLayout(signed(12), 16))``
        Weights.
    complete : ``Out(1)``
    sums_address : ``In(4)``
        Tile, and above it the group's number modulo `DEPTH` / ``tiles``.
    sums : ``Out(ArrayLayout(signed(32), 4))``
    """

    LATENCY = Multipliers.LATENCY + InverseTransform.LATENCY

    def __init__(self, tiles: int, slot: type[AnySlot] = Slot) -> None:
        self.tile_bits = (tiles - 1).bit_length()
        self.slot = slot
        passed = flow(StructLayout({"v": ArrayLayout(DATA, 16), "slot": slot}))
        super().__init__({
            "i": In(passed),
            "o": Out(passed),
            "u": In(ArrayLayout(WEIGHT, 16)),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(SUM, 4)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.multipliers = multipliers = Multipliers()
        m.submodules.inverse = inverse = InverseTransform()
        slots = self._delayed_slots(m)
        m.d.comb += [
            self.o.valid.eq(slots[1].valid),
            self.o.payload.slot.eq(slots[1].slot),
            inverse.i.valid.eq(slots[2].present),
            inverse.i.payload.dot.eq(slots[2].slot.dot),
            inverse.i.payload.products.eq(multipliers.products),
            multipliers.a.eq(self.i.payload.v),
            multipliers.a_enable.eq(slots[0].present),
            multipliers.b.eq(self.u),
            multipliers.b_enable.eq(slots[0].valid & slots[0].slot.load),
            multipliers.products_enable.eq(slots[1].present),
            self.o.payload.v.eq(multipliers.a_held),
        ]
        self._accumulate(m, slots[4], inverse.o.payload.y)
        return m

    def _delayed_slots(self, m: Module) -> list["_Stage"]:
        """Return the slot as it stands in each of the lane's stages."""
        stages = [_Stage(self.i.valid, self.i.payload.slot)]
        for number in range(1, self.LATENCY + 1):
            before = stages[-1]
            stage = _Stage(Signal(name=f"valid_{number}"), Signal(self.slot, name=f"slot_{number}", reset_less=True))
            m.d.sync += stage.valid.eq(before.valid)
            with m.If(before.valid):
                m.d.sync += stage.slot.eq(before.slot)
            stages.append(stage)
        return stages

    def _accumulate(self, m: Module, stage: "_Stage", y: View) -> None:
        """Add ``y`` to the tile's sums; finished sums go to the other memory, where they can be read."""
        slot = stage.slot
        group = Signal(4 - self.tile_bits)
        complete = stage.valid & slot.complete
        m.d.sync += self.complete.eq(complete)
        with m.If(complete):
            m.d.sync += group.eq(group + 1)
        for k in range(4):
            m.submodules[f"running_{k}"] = running = Memory(shape=SUM, depth=DEPTH, init=[])
            m.submodules[f"finished_{k}"] = finished = Memory(shape=SUM, depth=DEPTH, init=[])
            old, new = running.read_port(domain="comb"), running.write_port()
            result, waiting = finished.write_port(), finished.read_port(domain="comb")
            total = Signal(SUM, name=f"total_{k}")
            m.d.comb += [
                old.addr.eq(slot.tile),
                total.eq(sum_before(slot, old.data) + y[k]),
                new.addr.eq(slot.tile),
                new.data.eq(total),
                new.en.eq(stage.present & ~slot.finish),
                result.addr.eq(Cat(slot.tile[:self.tile_bits], group)),
                result.data.eq(total),
                result.en.eq(stage.present & slot.finish),
                waiting.addr.eq(self.sums_address),
                self.sums[k].eq(waiting.data),
            ]


class _Stage:
    """A slot in one stage of the lane."""

    def __init__(self, valid: Value, slot: AnySlot) -> None:
        self.valid = valid
        self.slot = slot

    @property
    def present(self) -> Value:
        """There is a tile."""
        return self.valid & self.slot.present
