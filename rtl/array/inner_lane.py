"""Two output channels of an array of inner products: 16 multipliers of 9 by 9 bits; also the lane of xi."""

from collections.abc import Sequence

from amaranth import Module, Signal, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out, Signature

from tilewright.isa.machine import TILE_BYTES
from tilewright.rtl.arithmetic.winograd import VALUE
from tilewright.rtl.array.accumulators import Accumulators, SlotStages
from tilewright.rtl.array.lane import SUM
from tilewright.rtl.array.pair_multipliers import RUN, PairMultipliers, PairProducts
from tilewright.rtl.array.sequencer.slots import AnySlot, Slot
from tilewright.rtl.stream.stages import flow

__all__ = ["CHANNELS", "InnerLane", "RunXiLane"]

CHANNELS = 2
"""Output channels of a lane: 16 multipliers make the 32 products of a run of 16 bytes with the weights of two."""



def _run(slot: type[AnySlot]) -> Signature:
    """Return a run with its slot."""
    return flow(StructLayout({"v": ArrayLayout(VALUE, TILE_BYTES), "slot": slot}))


class InnerLane(Component):
    """Multiply 16 activations by 16 weights of each of two channels; one tile slot, 32 MACs, per cycle.

    A sum of channel n is the dot product with ``u[n]``, plus xi of the activations and eta of the weights
    (`isa.semantics.inner_product`), modulo 2**32. Slots, weights and sums come and go as in
    `rtl.array.plain_lane.PlainLane`, but ``LATENCY``, from a slot to the addition of its product, is a cycle longer.

    Widths: a product of operands of -256..254 is at most 2**16, four of them 2**18, eight 2**19: 18, 20, 21 bits.

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
    u : ``In(ArrayLayout(ArrayLayout(signed(8), 16), 2))``
        Weights, by channel.
    complete : ``Out(1)``
    sums_address : ``In(4)``
    sums : ``Out(ArrayLayout(signed(32), 2))``
        By channel.
    """

    LATENCY = PairMultipliers.LATENCY + 2

    def __init__(self, tiles: int, slot: type[AnySlot] = Slot) -> None:
        self.tiles, self.slot = tiles, slot
        super().__init__({
            "i": In(_run(slot)),
            "o": Out(_run(slot)),
            "u": In(ArrayLayout(ArrayLayout(VALUE, TILE_BYTES), CHANNELS)),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(SUM, CHANNELS)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pairs = multipliers = PairMultipliers(RUN, CHANNELS)
        stages = SlotStages(m, self.i.valid, self.i.payload.slot, self.LATENCY)
        for pair in range(RUN.pairs):
            m.d.comb += [
                multipliers.even[pair].eq(self.i.payload.v[2 * pair]),
                multipliers.odd[pair].eq(self.i.payload.v[2 * pair + 1]),
                self.o.payload.v[2 * pair].eq(multipliers.even_held[pair]),
                self.o.payload.v[2 * pair + 1].eq(multipliers.odd_held[pair]),
            ]
            for channel in range(CHANNELS):
                m.d.comb += [
                    multipliers.weight_even[channel * RUN.pairs + pair].eq(self.u[channel][2 * pair]),
                    multipliers.weight_odd[channel * RUN.pairs + pair].eq(self.u[channel][2 * pair + 1]),
                ]
        m.d.comb += [
            multipliers.data_enable.eq(stages.present(0)),
            multipliers.weight_enable.eq(stages.valid[0] & stages.slots[0].load),
            multipliers.operand_enable.eq(stages.present(1)),
            multipliers.product_enable.eq(stages.present(2)),
            self.o.valid.eq(stages.valid[1]),
            self.o.payload.slot.eq(stages.slots[1]),
        ]
        products = [multipliers.products[k] for k in range(CHANNELS * RUN.pairs)]
        dots = [_dot(m, f"dot_{channel}", products[channel * RUN.pairs:(channel + 1) * RUN.pairs], stages,
                     PairMultipliers.LATENCY) for channel in range(CHANNELS)]
        _accumulate(m, self, dots, stages)
        return m


class RunXiLane(Component):
    """Sum the products of neighbouring activations of runs: xi of every tile; one tile slot per cycle.

    It takes every slot that the first lane takes. Of a tile it makes one sum, with eight multipliers of int8, where a
    lane makes two. Its sums are finished a cycle before those of the first lane.

    Widths: a product is at most 2**14, four of them 2**16, eight 2**17: 16, 18, 19 bits.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them.

    Members
    -------
    i : ``flow(...)``
        ``v`` (16 int8), ``slot``.
    complete : ``Out(1)``
    sums_address : ``In(4)``
    sums : ``Out(ArrayLayout(signed(32), 1))``
    """

    LATENCY = PairProducts.LATENCY + 2

    def __init__(self, tiles: int, slot: type[AnySlot] = Slot) -> None:
        self.tiles, self.slot = tiles, slot
        super().__init__({
            "i": In(_run(slot)),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(SUM, 1)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.products = multipliers = PairProducts(RUN)
        stages = SlotStages(m, self.i.valid, self.i.payload.slot, self.LATENCY)
        m.d.comb += [
            *(multipliers.even[pair].eq(self.i.payload.v[2 * pair]) for pair in range(RUN.pairs)),
            *(multipliers.odd[pair].eq(self.i.payload.v[2 * pair + 1]) for pair in range(RUN.pairs)),
            multipliers.enable.eq(stages.present(0)),
            multipliers.product_enable.eq(stages.present(1)),
        ]
        products = [multipliers.products[k] for k in range(RUN.pairs)]
        _accumulate(m, self, [_dot(m, "xi", products, stages, PairProducts.LATENCY)], stages)
        return m


def _dot(m: Module, name: str, products: Sequence[Value], stages: SlotStages, stage: int) -> Signal:
    """Return the sum of eight products that stand in ``stage``, two stages later."""
    width = products[0].shape().width
    quarters = Signal(ArrayLayout(signed(width + 2), 2), name=f"{name}_quarters", reset_less=True)
    dot = Signal(signed(width + 3), name=name, reset_less=True)
    with m.If(stages.present(stage)):
        for k in range(2):
            a, b, c, d = products[4 * k:4 * k + 4]
            m.d.sync += quarters[k].eq((a + b) + (c + d))
    with m.If(stages.present(stage + 1)):
        m.d.sync += dot.eq(quarters[0] + quarters[1])
    return dot


def _accumulate(m: Module, lane: InnerLane | RunXiLane, dots: Sequence[Signal], stages: SlotStages) -> None:
    """Add the dot products to the tile's sums, which leave through the lane's members."""
    m.submodules.sums = accumulators = Accumulators(
        lane.tiles, lane.slot, ArrayLayout(dots[0].shape(), len(dots)), SUM)
    m.d.comb += [
        accumulators.valid.eq(stages.valid[-1]),
        accumulators.slot.eq(stages.slots[-1]),
        accumulators.address.eq(lane.sums_address),
        lane.complete.eq(accumulators.complete),
        lane.sums.eq(accumulators.sums),
        *(accumulators.values[k].eq(dot) for k, dot in enumerate(dots)),
    ]
