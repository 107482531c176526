"""Output of finished inner-product sums: subtracts xi, and divides four times a pixel by four."""

from amaranth import Cat, Module, Mux, Value
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.array.inner_lane import CHANNELS
from tilewright.rtl.array.lane import SUM
from tilewright.rtl.array.winograd_inner_lane import WIDE_SUM
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["RunSumsOut", "TileSumsOut"]


class RunSumsOut(Component):
    """Subtract a tile's xi from ``post_lanes`` of its sums; every cycle, ``LATENCY`` cycles later.

    What leaves is the dot product plus eta, modulo 2**32; the bias is less by eta (``fold_run_eta`` of
    `isa.semantics.inner_product`).

    Parameters
    ----------
    post_lanes : int

    Members
    -------
    i : ``In(flow(...))``
        ``sums`` (``post_lanes``), ``xi``: signed 32 bits.
    o : ``Out(flow(...))``
        ``values`` (``post_lanes`` signed 32-bit sums).
    """

    LATENCY = 1

    def __init__(self, post_lanes: int) -> None:
        self.post_lanes = post_lanes
        super().__init__({
            "i": In(flow(StructLayout({"sums": ArrayLayout(SUM, post_lanes), "xi": SUM}))),
            "o": Out(flow(StructLayout({"values": ArrayLayout(SUM, post_lanes)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o
        m.d.sync += o.valid.eq(self.i.valid)
        with m.If(self.i.valid):
            m.d.sync += [o.payload.values[lane].eq(i.sums[lane] - i.xi) for lane in range(self.post_lanes)]
        return m


class TileSumsOut(Component):
    """Make ``post_lanes`` sums, of a pixel or of a dot product, from the sums that lanes hold.

    Every cycle, ``LATENCY`` cycles later. Lane l has the channels 2 l and 2 l + 1.

    conv23: what leaves is ``floor((Y - xi) / 4)`` of the pixel: the pixel and ``floor(eta / 4)``, modulo 2**32, as Y
    and xi are known modulo 2**34. The bias is ``fold_tile_eta`` of `isa.semantics.inner_product`, a word a pixel.

    Dot products: both channels of a lane are in the sums of its first. What leaves is the dot product plus eta; the
    bias is ``fold_run_eta``.

    Parameters
    ----------
    post_lanes : int
        A power of two.

    Members
    -------
    i : ``In(flow(...))``
        ``sums`` (of the lanes of ``post_lanes`` channels, one lane at least: of 2 channels 4 each), ``xi`` (4), signed
        34 bits; ``winograd``; ``pixel`` (0 .. 3, for conv23); ``second`` (of a single channel: it is a lane's
        second).
    o : ``Out(flow(...))``
        ``values`` (``post_lanes`` signed 32-bit sums).
    """

    LATENCY = 3

    def __init__(self, post_lanes: int) -> None:
        self.post_lanes = post_lanes
        tile = ArrayLayout(WIDE_SUM, 4)
        super().__init__({
            "i": In(flow(StructLayout({
                "sums": ArrayLayout(ArrayLayout(tile, CHANNELS), -(-post_lanes // CHANNELS)), "xi": tile,
                "winograd": 1, "pixel": 2, "second": 1}))),
            "o": Out(flow(StructLayout({"values": ArrayLayout(SUM, post_lanes)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, width, lanes = self.i.payload, WIDE_SUM.width, range(self.post_lanes)
        pipe = Pipeline(m, self.i.valid, winograd=i.winograd)

        def chosen(first: Value, second: Value, of_pixels: Value) -> tuple[Value, Value]:
            """Return minuend and subtrahend: a pixel's sum and 0, or the two halves of a dot product."""
            pixel = of_pixels.as_value().word_select(i.pixel, width).as_signed()
            return Mux(i.winograd, pixel, first), Mux(i.winograd, 0, second)

        terms: dict[str, Value] = {}
        for number in lanes:
            upper, lower = chosen(*self._of_channel(number))
            terms |= {f"plus_{number}": upper, f"minus_{number}": lower}
        xi_plus, xi_minus = chosen(i.xi[0], i.xi[1], of_pixels=i.xi)
        pipe.step(**terms, xi_plus=xi_plus, xi_minus=xi_minus)
        pipe.step(xi=(pipe.xi_plus - pipe.xi_minus)[:width], **{
            f"sum_{lane}": (getattr(pipe, f"plus_{lane}") - getattr(pipe, f"minus_{lane}"))[:width] for lane in lanes})
        values = {f"value_{lane}": (getattr(pipe, f"sum_{lane}") - pipe.xi)[:width] for lane in lanes}
        pipe.step(**{name: Mux(pipe.winograd, value[2:], value[:SUM.width]) for name, value in values.items()})
        assert pipe.depth == self.LATENCY
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            self.o.payload.values.eq(Cat(getattr(pipe, name) for name in values)),
        ]
        return m

    def _of_channel(self, number: int) -> tuple[Value, Value, Value]:
        """Return minuend and subtrahend of a dot product of channel ``number``, and its sums of conv23."""
        i = self.i.payload
        lane, channel = divmod(number, CHANNELS)
        both, dot = i.sums[lane], i.sums[lane][0]
        if self.post_lanes == 1:
            of_pixels = ArrayLayout(WIDE_SUM, 4)(Mux(i.second, both[1].as_value(), both[0].as_value()))
            return Mux(i.second, dot[3], dot[0]), Mux(i.second, dot[2], dot[1]), of_pixels
        return *((dot[3], dot[2]) if channel else (dot[0], dot[1])), both[channel]
