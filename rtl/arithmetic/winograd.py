"""Winograd's F(2x2, 3x3) in hardware: the three transforms, each with a bypass for dot products.

    U = 2G g 2Gᵀ        V = Bᵀ d B        Y = Aᵀ (U ⊙ V) A / 4

The matrices are those of `isa.numerics`, with the reason why everything is exact. A dot product of 16 values
takes the same way: U and V are then the values themselves, and the inverse transform leaves out the terms
that would cancel, so that its four outputs hold disjoint parts of the sum (see `InverseTransform`).
"""

from collections.abc import Sequence

from amaranth import Module, Mux, ShapeLike, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["DATA", "PIXEL", "PRODUCT", "VALUE", "WEIGHT", "InputTransform", "InverseTransform", "WeightTransform"]

VALUE = signed(8)
DATA = signed(10)
WEIGHT = signed(12)
PRODUCT = signed(21)
PIXEL = signed(20)
"""Width of one tile's contribution to an output: |9 * 128 * 128| for a 3x3 kernel, |16 * 128 * 128| for a run."""


class InputTransform(Component):
    """V = Bᵀ d B of a 4x4 patch, or the 16 bytes as they are; one per cycle, ``LATENCY`` cycles later.

    Members
    -------
    i : ``In(flow(...))``
        ``patch`` (4 rows of 4 int8), ``present`` (else the result is left as it was), ``dot``: pass through; ``meta``.
    o : ``Out(flow(...))``
        ``v`` (16 values), ``meta``.
    """

    LATENCY = 1

    def __init__(self, meta_shape: ShapeLike) -> None:
        super().__init__({
            "i": In(flow(StructLayout({
                "patch": ArrayLayout(VALUE, 16), "present": 1, "dot": 1, "meta": meta_shape}))),
            "o": Out(flow(StructLayout({"v": ArrayLayout(DATA, 16), "meta": meta_shape}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        rows = [[i.patch[4 * y + x] for x in range(4)] for y in range(4)]
        columns = [_input_rows([row[x] for row in rows]) for x in range(4)]
        v = [value for y in range(4) for value in _input_rows([column[y] for column in columns])]
        m.d.sync += self.o.valid.eq(self.i.valid)
        with m.If(self.i.valid):
            m.d.sync += o.meta.eq(i.meta)
        with m.If(self.i.valid & i.present):
            m.d.sync += [o.v[k].eq(Mux(i.dot, i.patch[k], v[k])) for k in range(16)]
        return m


class WeightTransform(Component):
    """U = 2G g 2Gᵀ of the nine weights of a kernel, or 16 weights as they are; one per cycle.

    Members
    -------
    i : ``In(flow(...))``
        ``weights`` (16 int8; of a kernel, its first nine, row by row), ``dot``: pass through.
    o : ``Out(flow(...))``
        ``u`` (16 values), ``LATENCY`` cycles later.
    """

    LATENCY = 2

    def __init__(self) -> None:
        super().__init__({
            "i": In(flow(StructLayout({"weights": ArrayLayout(VALUE, 16), "dot": 1}))),
            "o": Out(flow(StructLayout({"u": ArrayLayout(WEIGHT, 16)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = self.i.payload
        pipe = Pipeline(m, self.i.valid, weights=i.weights, dot=i.dot)
        columns = [_weight_rows([i.weights[3 * y + x] for y in range(3)]) for x in range(3)]
        pipe.step(**{f"g{y}{x}": columns[x][y] for y in range(4) for x in range(3)})
        u = [value for y in range(4) for value in _weight_rows([getattr(pipe, f"g{y}{x}") for x in range(3)])]
        passed = pipe.weights
        pipe.step(**{f"u{k}": Mux(pipe.dot, passed[k], u[k])[:12].as_signed() for k in range(16)})
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            *(self.o.payload.u[k].eq(getattr(pipe, f"u{k}")) for k in range(16)),
        ]
        return m


class InverseTransform(Component):
    """Y = Aᵀ M A / 4 of the products M of a tile; one per cycle, ``LATENCY`` cycles later.

    With ``dot`` the terms M1 - M2 of A's second row are left out in both directions and nothing is divided:
    the outputs hold disjoint parts of the sum of all products, signed so that
    ``y[0] - y[1] - y[2] + y[3]`` is that sum. It is linear, so it may be formed once after many tiles.

    Members
    -------
    i : ``In(flow(...))``
        ``products`` (16), ``dot``.
    o : ``Out(flow(...))``
        ``y`` (4 values: pixels (0, 0), (0, 1), (1, 0), (1, 1)).
    """

    LATENCY = 2

    def __init__(self) -> None:
        super().__init__({
            "i": In(flow(StructLayout({"products": ArrayLayout(PRODUCT, 16), "dot": 1}))),
            "o": Out(flow(StructLayout({"y": ArrayLayout(PIXEL, 4)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = self.i.payload
        pipe = Pipeline(m, self.i.valid, dot=i.dot)
        # Only bits 2..21 of the result are wanted, so everything may be taken modulo 2**22.
        columns = [_inverse_rows([i.products[4 * y + x] for y in range(4)], i.dot) for x in range(4)]
        pipe.step(**{f"r{y}{x}": columns[x][y][:22].as_signed() for y in range(2) for x in range(4)})
        y = [value for y in range(2)
             for value in _inverse_rows([getattr(pipe, f"r{y}{x}") for x in range(4)], pipe.dot)]
        pipe.step(**{f"y{k}": Mux(pipe.dot, y[k][:20], y[k][2:22]).as_signed() for k in range(4)})
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            *(self.o.payload.y[k].eq(getattr(pipe, f"y{k}")) for k in range(4)),
        ]
        return m


def _input_rows(d: Sequence[Value]) -> tuple[Value, ...]:
    """Return Bᵀ d of a column d."""
    return d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]


def _weight_rows(g: Sequence[Value]) -> tuple[Value, ...]:
    """Return 2G g of a column g."""
    outer = g[0] + g[2]
    return g[0] << 1, outer + g[1], outer - g[1], g[2] << 1


def _inverse_rows(p: Sequence[Value], dot: Value) -> tuple[Value, ...]:
    """Return Aᵀ p of a column p; with ``dot`` without the terms that a sum of the outputs must not hold twice."""
    return p[0] + p[1] + p[2], Mux(dot, 0, p[1] - p[2]) - p[3]
