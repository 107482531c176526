"""Patches of two neighbouring channels side by side, although only one patch arrives per cycle."""

from amaranth import Module, Mux, Signal
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.arithmetic.winograd import DATA
from tilewright.rtl.array.pair_multipliers import TILE
from tilewright.rtl.array.sequencer.slots import AnySlot, PairSlot
from tilewright.rtl.array.winograd_inner_lane import pairs_of
from tilewright.rtl.stream.stages import flow

__all__ = ["PatchPairs"]


class PatchPairs(Component):
    """Keep the transformed patches of the tiles in flight, and send them two and two; a slot a cycle.

    The steps of conv23 bring a channel each. In a step of an odd channel a slot's pair are the tile's patch of the
    channel before and the one that arrives, for the lanes' first output channels; in the step behind it the same pair
    again, for the second ones, while the patch of the next even channel arrives and is kept. So every cycle has a pair
    for 16 multipliers of a lane, from one patch a cycle. Of a run the bytes leave in pairs, twice: `WinogradInnerLane`.

    With ``four``, where each lane has a patch of its own, a slot's pair are zeros and the patch that arrives.

    The output follows the input by ``LATENCY`` cycles; it keeps its values in a slot without a product.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them.

    Members
    -------
    i : ``In(flow(...))``
        ``v`` (16 values of 10 bits), ``slot``.
    four : ``In(1)``
        Of machines whose lanes may have patches of their own.
    o : ``Out(pairs_of(slot))``
    """

    LATENCY = 1

    def __init__(self, tiles: int, slot: type[AnySlot] = PairSlot, *, takes_four: bool = False) -> None:
        self.tiles, self.slot, self.takes_four = tiles, slot, takes_four
        super().__init__({
            **({"four": In(1)} if takes_four else {}),
            "i": In(flow(StructLayout({"v": ArrayLayout(DATA, TILE.pairs), "slot": slot}))),
            "o": Out(pairs_of(slot)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        v, slot = self.i.payload.v, self.i.payload.slot
        comes = self.i.valid & slot.arrives & ~slot.dot
        tile = slot.tile[:(self.tiles - 1).bit_length()]
        kept = []
        for name, writes in (("even", slot.second), ("odd", ~slot.second)):
            m.submodules[name] = memory = Memory(shape=v.shape(), depth=self.tiles, init=[])
            port, before = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(tile), port.data.eq(v), port.en.eq(comes & writes), before.addr.eq(tile)]
            kept.append(before.data)
        even, odd = (Signal(v.shape(), name=name, reset_less=True) for name in ("even_patch", "odd_patch"))
        out = Signal(self.slot, name="slot_register", reset_less=True)
        half = TILE.pairs // 2
        from_kept = slot.second & ~self.four if self.takes_four else slot.second
        with m.If(self.i.valid & slot.present):
            for k in range(TILE.pairs):
                run = 2 * (k % half)
                m.d.sync += [
                    even[k].eq(Mux(slot.dot, v[run], kept[0][k])),
                    odd[k].eq(Mux(slot.dot, v[run + 1], Mux(from_kept, kept[1][k], v[k]))),
                ]
            if self.takes_four:
                with m.If(self.four):
                    m.d.sync += even.eq(0)
        with m.If(self.i.valid):
            m.d.sync += out.eq(slot)
        m.d.sync += self.o.valid.eq(self.i.valid)
        m.d.comb += [
            self.o.payload.even.eq(even),
            self.o.payload.odd.eq(odd),
            self.o.payload.slot.eq(out),
        ]
        return m
