"""Finished sums of inner products on their way out: xi comes off, and four times a pixel becomes the pixel."""

from amaranth import Cat, Module, Mux, Value
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.array.lane import SUM
from tilewright.rtl.array.winograd_inner_lane import WIDE_SUM
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["RunSumsOut", "TileSumsOut"]


class RunSumsOut(Component):
    """Subtract a tile's xi from ``post_lanes`` of its sums; every cycle, ``LATENCY`` cycles later.

    What leaves is the dot product and eta, modulo 2**32: the bias is ``fold_run_eta`` of `isa.semantics.inner_product`.

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
    """Make ``post_lanes`` sums of a pixel, or of output channels of a dot product, of those that lanes hold.

    Every cycle, ``LATENCY`` cycles later.

    conv23: ``post_lanes`` lanes have a channel each, and what leaves is ``floor((Y - xi) / 4)`` of the pixel: the pixel
    and ``floor(eta / 4)``, modulo 2**32, as Y and xi are known modulo 2**34. The bias is ``fold_tile_eta`` of
    `isa.semantics.inner_product`, a word for each pixel.

    Dot products: lane l has channels 2 l and 2 l + 1, so ``post_lanes`` lanes have twice as many as leave in a cycle;
    ``second`` says which half. What leaves is the dot product and eta: the bias is ``fold_run_eta``.

    Parameters
    ----------
    post_lanes : int
        A power of two.

    Members
    -------
    i : ``In(flow(...))``
        ``sums`` (of ``post_lanes`` lanes 4 each), ``xi`` (4), signed 34 bits; ``winograd``; ``pixel`` (0 .. 3, for
        conv23); ``second`` (for dot products).
    o : ``Out(flow(...))``
        ``values`` (``post_lanes`` signed 32-bit sums).
    """

    LATENCY = 3

    def __init__(self, post_lanes: int) -> None:
        self.post_lanes = post_lanes
        tile = ArrayLayout(WIDE_SUM, 4)
        super().__init__({
            "i": In(flow(StructLayout({
                "sums": ArrayLayout(tile, post_lanes), "xi": tile, "winograd": 1, "pixel": 2, "second": 1}))),
            "o": Out(flow(StructLayout({"values": ArrayLayout(SUM, post_lanes)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, width, lanes = self.i.payload, WIDE_SUM.width, range(self.post_lanes)
        pipe = Pipeline(m, self.i.valid, winograd=i.winograd)

        def chosen(first: Value, second: Value, of_pixels: Value) -> tuple[Value, Value]:
            """Return what is subtracted from what: nothing from the pixel's sum, or the halves of a dot product."""
            pixel = of_pixels.as_value().word_select(i.pixel, width).as_signed()
            return Mux(i.winograd, pixel, first), Mux(i.winograd, 0, second)

        terms: dict[str, Value] = {}
        for lane in lanes:
            upper, lower = chosen(*self._halves(lane), of_pixels=i.sums[lane])
            terms |= {f"plus_{lane}": upper, f"minus_{lane}": lower}
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

    def _halves(self, number: int) -> tuple[Value, Value]:
        """Return minuend and subtrahend of output channel ``number`` of the half that ``second`` says."""
        i, found = self.i.payload, []
        for half in range(2):
            lane, channel = divmod(half * self.post_lanes + number, 2)
            y = i.sums[lane]
            found.append((y[3], y[2]) if channel else (y[0], y[1]))
        first, second = found
        return Mux(i.second, second[0], first[0]), Mux(i.second, second[1], first[1])
