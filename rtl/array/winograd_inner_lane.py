"""F(2x2, 3x3) and the inner product in one lane: 16 multipliers of 12 by 12 bits; also the lane of xi.

A lane has two output channels. For conv23 it multiplies two neighbouring input channels, patches and kernels, ``even``
and ``odd``, for its first output channel, and the same patches for its second in a slot of its own: `PatchPairs`. Of a
run ``even[k]`` is byte 2 (k % 8) and ``odd[k]`` the one behind it, so that all 16 multipliers have pairs of it, with
weights of a lane's first output channel for k < 8 and of its second for the others.

Widths of what a slot adds. Of two channels, e and o, Aᵀ M A is 4 S_e + 4 S_o + xi + eta. A pixel's S is at most
9 * 2**14. Its xi is a sum of nine V_e V_o, at most the larger sum of nine squares (Cauchy and Schwarz), and that is a
convex function of the patch, largest where every byte is -128 or 127: `XI_BOUND` is its maximum over those. So with
eta and kernels: `ETA_BOUND`. In all 5,433,356, which 24 bits hold, where nine products of 1664**2 would want 26.
Registers on the way there may wrap.
"""

from collections.abc import Sequence

from amaranth import Module, Mux, Shape, Signal, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out, Signature

from tilewright.rtl.array.accumulators import Accumulators, SlotStages
from tilewright.rtl.array.pair_multipliers import TILE, PairMultipliers, PairProducts, signed_within
from tilewright.rtl.array.sequencer.slots import AnySlot, PairSlot, Slot
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["ETA_BOUND", "WIDE_SUM", "XI_BOUND", "PairInverseTransform", "TileXiLane", "WinogradInnerLane",
           "pairs_of"]

WIDE_SUM = signed(34)
"""A sum of four times a pixel, and of eta: two bits above the 32 that count, see `isa.semantics.inner_product`."""

XI_BOUND, ETA_BOUND = 1_042_444, 3_211_264
"""Largest magnitudes of a pixel's xi and eta of two channels; a test computes both."""

_PIXEL = signed_within(2 * 4 * 9 * 128 * 128 + XI_BOUND + ETA_BOUND)
_XI = signed_within(XI_BOUND)

_VALUES = ArrayLayout(TILE.data, TILE.pairs)


def pairs_of(slot: type[AnySlot]) -> Signature:
    """Return a slot with its two transformed patches, or with the pairs of its run twice.

    ``slot`` stands between the two: side by side, Amaranth would join them to one port of the multipliers, and
    synthesis replaces that module by one with the two ports.
    """
    return flow(StructLayout({"even": _VALUES, "slot": slot, "odd": _VALUES}))


class PairInverseTransform(Component):
    """Y = Aᵀ M A of the products M of two channels' tile, not divided; one per cycle, ``LATENCY`` cycles later.

    With ``dot`` the terms that two outputs share are left to one of them: ``y[0] - y[1]`` is the sum of the upper two
    rows' products, ``y[3] - y[2]`` that of the lower two: the two output channels of a dot product.

    Parameters
    ----------
    product, pixel : Shape
        Of products, and of outputs, modulo whose width everything is computed.

    Members
    -------
    i : ``In(flow(...))``
        ``products`` (16), ``dot``.
    o : ``Out(flow(...))``
        ``y`` (4 values: pixels (0, 0), (0, 1), (1, 0), (1, 1)).
    """

    LATENCY = 2

    def __init__(self, product: Shape, pixel: Shape) -> None:
        self.pixel = pixel
        super().__init__({
            "i": In(flow(StructLayout({"products": ArrayLayout(product, 16), "dot": 1}))),
            "o": Out(flow(StructLayout({"y": ArrayLayout(pixel, 4)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, width = self.i.payload, self.pixel.width
        pipe = Pipeline(m, self.i.valid, dot=i.dot)
        columns = [_inverse_rows([i.products[4 * y + x] for y in range(4)], i.dot) for x in range(4)]
        pipe.step(**{f"r{y}{x}": columns[x][y][:width].as_signed() for y in range(2) for x in range(4)})
        y = [value for y in range(2)
             for value in _inverse_rows([getattr(pipe, f"r{y}{x}") for x in range(4)], pipe.dot)]
        pipe.step(**{f"y{k}": y[k][:width].as_signed() for k in range(4)})
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            *(self.o.payload.y[k].eq(getattr(pipe, f"y{k}")) for k in range(4)),
        ]
        return m


class WinogradInnerLane(Component):
    """Multiply a tile of two channels, or a run, by this lane's weights; one tile slot per cycle.

    A cycle's 16 products are 72 MACs of conv23 (two channels of four pixels) or 32 of a run (two output channels):
    4.5 or 2 for each multiplier. The four sums of a tile and output channel are, modulo 2**34, Aᵀ M A of all its
    products, in which are four times the pixel, xi, and eta (`isa.semantics.inner_product`). Of a dot product the
    first channel's sums hold both channels: `PairInverseTransform`.

    Data and slots go from lane to lane with a delay of one cycle (``o``). In the slot marked ``load`` the lane takes
    the weights that then stand at ``u`` and keeps them until the next. A slot's product is added ``LATENCY`` cycles
    after it has come.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them.

    Members
    -------
    i, o : ``flow(...)``
        ``even``, ``odd`` (16 values of 10 bits each), ``slot``.
    u : ``In(StructLayout(...))``
        Weights ``even``, ``odd`` (16 values of 12 bits each).
    complete : ``Out(1)``
    sums_address : ``In(4)``
    sums : ``Out(ArrayLayout(ArrayLayout(signed(34), 4), 2))``
        By output channel.
    """

    LATENCY = PairMultipliers.LATENCY + PairInverseTransform.LATENCY

    def __init__(self, tiles: int, slot: type[AnySlot] = PairSlot) -> None:
        self.tiles, self.slot = tiles, slot
        weights = ArrayLayout(TILE.weight, TILE.pairs)
        super().__init__({
            "i": In(pairs_of(slot)),
            "o": Out(pairs_of(slot)),
            "u": In(StructLayout({"even": weights, "odd": weights})),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(ArrayLayout(WIDE_SUM, 4), 2)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.tile_factors = multipliers = PairMultipliers(TILE, 1)
        stages = SlotStages(m, self.i.valid, self.i.payload.slot, self.LATENCY)
        m.d.comb += [
            multipliers.even.eq(self.i.payload.even),
            multipliers.odd.eq(self.i.payload.odd),
            multipliers.weight_even.eq(self.u.even),
            multipliers.weight_odd.eq(self.u.odd),
            multipliers.data_enable.eq(stages.present(0)),
            multipliers.weight_enable.eq(stages.valid[0] & stages.slots[0].load),
            multipliers.operand_enable.eq(stages.present(1)),
            multipliers.product_enable.eq(stages.present(2)),
            self.o.valid.eq(stages.valid[1]),
            self.o.payload.even.eq(multipliers.even_held),
            self.o.payload.odd.eq(multipliers.odd_held),
            self.o.payload.slot.eq(stages.slots[1]),
        ]
        _transform_and_accumulate(m, self, multipliers, _PIXEL, stages, channels=2)
        return m


class TileXiLane(Component):
    """Sum the products of two channels' transformed values, or of a run's pairs: xi of every tile.

    One tile slot per cycle, in the slots of the lanes' first output channels; the second ones have the same xi. Its
    sums are finished a cycle before those of the first lane. Of a dot product both halves of the sums are the same xi.

    Parameters
    ----------
    tiles : int
        Tiles in flight.
    slot : type
        What goes with them.

    Members
    -------
    i : ``flow(...)``
        ``even``, ``odd`` (16 values of 10 bits each), ``slot``.
    complete : ``Out(1)``
    sums_address : ``In(4)``
    sums : ``Out(ArrayLayout(signed(34), 4))``
    """

    LATENCY = PairProducts.LATENCY + PairInverseTransform.LATENCY

    def __init__(self, tiles: int, slot: type[AnySlot] = PairSlot) -> None:
        self.tiles, self.slot = tiles, slot
        super().__init__({
            "i": In(pairs_of(slot)),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(WIDE_SUM, 4)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.products = multipliers = PairProducts(TILE)
        first = Signal(self.slot)
        m.d.comb += [first.eq(self.i.payload.slot), first.present.eq(self.i.payload.slot.present
                                                                     & ~self.i.payload.slot.second)]
        stages = SlotStages(m, self.i.valid, first, self.LATENCY)
        m.d.comb += [
            multipliers.even.eq(self.i.payload.even),
            multipliers.odd.eq(self.i.payload.odd),
            multipliers.enable.eq(stages.present(0)),
            multipliers.product_enable.eq(stages.present(1)),
        ]
        _transform_and_accumulate(m, self, multipliers, _XI, stages, channels=1)
        return m


def _transform_and_accumulate(m: Module, lane: WinogradInnerLane | TileXiLane,
                              multipliers: PairMultipliers | PairProducts, pixel: Shape, stages: SlotStages, *,
                              channels: int) -> None:
    """Bring the products to the tile's sums, which leave through the lane's members."""
    m.submodules.inverse = inverse = PairInverseTransform(
        multipliers.products.shape().elem_shape, pixel)
    # With one channel `second` is not needed, and a PairSlot begins with the members of a Slot.
    slot = Slot if channels == 1 and lane.slot is PairSlot else lane.slot
    m.submodules.sums = accumulators = Accumulators(lane.tiles, slot, ArrayLayout(pixel, 4), WIDE_SUM, channels)
    multiplied = multipliers.LATENCY
    m.d.comb += [
        inverse.i.valid.eq(stages.present(multiplied)),
        inverse.i.payload.products.eq(multipliers.products),
        inverse.i.payload.dot.eq(stages.slots[multiplied].dot),
        accumulators.valid.eq(stages.valid[-1]),
        accumulators.slot.eq(stages.slots[-1]),
        accumulators.values.eq(inverse.o.payload.y),
        accumulators.address.eq(lane.sums_address),
        lane.complete.eq(accumulators.complete),
        lane.sums.eq(accumulators.sums),
    ]


def _inverse_rows(p: Sequence[Value], dot: Value) -> tuple[Value, Value]:
    """Return Aᵀ p of a column p; with ``dot``, what of it lies in its upper half and, negated, in its lower."""
    return p[0] + p[1] + Mux(dot, 0, p[2]), Mux(dot, 0, p[1]) - p[2] - p[3]
