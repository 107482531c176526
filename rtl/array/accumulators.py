"""The sums of the tiles in flight, and those that post-processing has not read yet."""

from amaranth import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib.data import ArrayLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.array.sequencer.slots import DEPTH, AnySlot, sum_before

__all__ = ["Accumulators", "SlotStages"]


class SlotStages:
    """A slot on its way through a lane: ``slots[n]`` is its state n cycles after it arrived, with ``valid[n]``.

    Parameters
    ----------
    m : Module
        Gets the registers.
    valid : Value
    slot : AnySlot
    count : int
        Stages behind the first.
    """

    def __init__(self, m: Module, valid: Value, slot: AnySlot, count: int) -> None:
        self.valid, self.slots = [valid], [slot]
        for number in range(1, count + 1):
            self.valid.append(Signal(name=f"valid_{number}"))
            self.slots.append(Signal(slot.shape(), name=f"slot_{number}", reset_less=True))
            m.d.sync += self.valid[number].eq(self.valid[number - 1])
            with m.If(self.valid[number - 1]):
                m.d.sync += self.slots[number].eq(self.slots[number - 1])

    def present(self, stage: int) -> Value:
        """Return whether there is a tile in ``stage``."""
        return self.valid[stage] & self.slots[stage].present


class Accumulators(Component):
    """Add a slot's values to its tile's sums, in the cycle in which they come; finished sums can be read in the next.

    Finished sums lie `DEPTH` / ``tiles`` tile groups deep, in turn, and are read without delay. Sums wrap. With two
    ``channels`` a tile has sums of either; ``second`` of the slot says which.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them; with two channels one that tells them apart.
    values : ArrayLayout
        Of the values that a slot adds, one to each sum of its tile.
    total : Shape
        Of a sum.
    channels : int
        1, or 2.

    Members
    -------
    valid : ``In(1)``
    slot : ``In(slot)``
    values : ``In(values)``
    complete : ``Out(1)``
        High in the cycle in which a group's sums can first be read.
    address : ``In(4)``
        Tile, and above it the group's number modulo `DEPTH` / ``tiles``.
    sums : ``Out(ArrayLayout(total, count))``, or with two channels an array of both
    """

    def __init__(self, tiles: int, slot: type[AnySlot], values: ArrayLayout, total: Shape, channels: int = 1) -> None:
        self.tile_bits = (tiles - 1).bit_length()
        self.channels = channels
        self.count = count = values.length
        sums = ArrayLayout(total, count)
        self.total = total
        super().__init__({
            "valid": In(1),
            "slot": In(slot),
            "values": In(values),
            "complete": Out(1),
            "address": In(4),
            "sums": Out(sums if channels == 1 else ArrayLayout(sums, channels)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slot = self.slot
        present, complete = self.valid & slot.present, self.valid & slot.complete
        group = Signal(4 - self.tile_bits)
        m.d.sync += self.complete.eq(complete)
        with m.If(complete):
            m.d.sync += group.eq(group + 1)
        second = slot.second if self.channels == 2 else Const(0)
        place = Cat(slot.tile[:self.tile_bits], second) if self.channels == 2 else slot.tile
        every = [Value.cast(self.sums).word_select(channel * self.count + k, self.total.width)
                 for channel in range(self.channels) for k in range(self.count)]
        for k in range(self.count):
            m.submodules[f"running_{k}"] = running = Memory(shape=self.total, depth=DEPTH, init=[])
            old, new = running.read_port(domain="comb"), running.write_port()
            total = Signal(self.total, name=f"total_{k}")
            m.d.comb += [
                old.addr.eq(place),
                total.eq(sum_before(slot, old.data) + self.values[k]),
                new.addr.eq(place),
                new.data.eq(total),
                new.en.eq(present & ~slot.finish),
            ]
            for channel in range(self.channels):
                name = f"finished_{k}" if self.channels == 1 else f"finished_{k}_{channel}"
                m.submodules[name] = finished = Memory(shape=self.total, depth=DEPTH, init=[])
                result, waiting = finished.write_port(), finished.read_port(domain="comb")
                m.d.comb += [
                    result.addr.eq(Cat(slot.tile[:self.tile_bits], group)),
                    result.data.eq(total),
                    result.en.eq(present & slot.finish & (second == channel)),
                    waiting.addr.eq(self.address),
                    every[channel * self.count + k].eq(waiting.data),
                ]
        return m
