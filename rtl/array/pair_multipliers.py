"""The multipliers of the inner product of 1968: each takes two activations and two weights, and does the work of two.

    (even + weight_odd) (odd + weight_even)  =  even weight_even + odd weight_odd  +  even odd + weight_even weight_odd

The last two terms are xi and eta of `isa.semantics.inner_product`: xi is subtracted as sums leave, eta is in the bias.

Bounds, from which all widths follow. With ``bound`` the largest magnitude of an operand, a product's is its square.

    runs    |int8 + int8| <= 256, from -256 to 254: 9 bits; product <= 2**16: 18 bits
    tiles   |V| <= 4 * 128 = 512 and |U| <= 9 * 128 = 1152, so |V + U| <= 1664: 12 bits; product <= 2,768,896: 23 bits
    xi      |int8 * int8| <= 2**14: 16 bits; |V * V| <= 2**18: 20 bits
"""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal, signed
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.arithmetic.winograd import DATA, VALUE, WEIGHT

__all__ = ["RUN", "TILE", "Factors", "PairMultipliers", "PairProducts", "signed_within"]


def signed_within(bound: int) -> Shape:
    """Return the signed shape of values from ``-bound`` to ``bound``, of which a power of two may be the upper end."""
    return signed(bound.bit_length() + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Kind of products of a lane.

    Attributes
    ----------
    data, weight, operand : Shape
        Of an activation, of a weight, and of the sum of the two.
    pairs : int
        Pairs of activations in a slot.
    data_bound, operand_bound : int
        Largest magnitudes of an activation and of an operand.
    """

    data: Shape
    weight: Shape
    operand: Shape
    pairs: int
    data_bound: int
    operand_bound: int


RUN = Factors(data=VALUE, weight=VALUE, operand=signed(9), pairs=8, data_bound=128, operand_bound=256)
"""Eight pairs of a run of 16 bytes."""

TILE = Factors(data=DATA, weight=WEIGHT, operand=signed(12), pairs=16, data_bound=512, operand_bound=512 + 1152)
"""Two transformed patches, value by value; or the pairs of a run twice."""


class PairMultipliers(Component):
    """Products ``(even + weight_odd) * (odd + weight_even)`` with registers before the adders, between and behind.

    Rate: 16 products in every cycle. ``products`` are those of the data three cycles ago. Each bank of registers
    loads only where it is enabled. ``even_held``, ``odd_held`` are the first registers, from which a chain of lanes
    passes the data on. The registers between adders and multipliers, and those behind, are the input and output
    registers of an FPGA's DSP block, and have no reset. On ECP5 these load in every cycle: ``product_enable`` must
    follow ``operand_enable`` by a cycle, and products be taken in the next.

    Parameters
    ----------
    factors : Factors
    channels : int
        Output channels, each with weights of its own: product ``channel * pairs + pair``.

    Members
    -------
    even, odd : ``In(ArrayLayout(data, pairs))``
    data_enable : ``In(1)``
    even_held, odd_held : ``Out(ArrayLayout(data, pairs))``
    weight_even, weight_odd : ``In(ArrayLayout(weight, channels * pairs))``
    weight_enable, operand_enable, product_enable : ``In(1)``
    products : ``Out(ArrayLayout(signed_within(operand_bound ** 2), channels * pairs))``
    """

    LATENCY = 3

    def __init__(self, factors: Factors, channels: int) -> None:
        self.factors = factors
        self.channels = channels
        data = ArrayLayout(factors.data, factors.pairs)
        weights = ArrayLayout(factors.weight, channels * factors.pairs)
        super().__init__({
            "even": In(data), "odd": In(data), "data_enable": In(1),
            "even_held": Out(data), "odd_held": Out(data),
            "weight_even": In(weights), "weight_odd": In(weights), "weight_enable": In(1),
            "operand_enable": In(1), "product_enable": In(1),
            "products": Out(ArrayLayout(signed_within(factors.operand_bound ** 2), channels * factors.pairs)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pairs, count = self.factors.pairs, self.channels * self.factors.pairs
        operands = ArrayLayout(self.factors.operand, count)
        even, odd, weight_even, weight_odd, a, b, products = (
            Signal(shape, name=name, reset_less=True) for name, shape in (
                ("even_register", self.even.shape()), ("odd_register", self.odd.shape()),
                ("weight_even_register", self.weight_even.shape()), ("weight_odd_register", self.weight_odd.shape()),
                ("a_register", operands), ("b_register", operands), ("products_register", self.products.shape())))
        m.d.comb += [self.even_held.eq(even), self.odd_held.eq(odd), self.products.eq(products)]
        with m.If(self.data_enable):
            m.d.sync += [even.eq(self.even), odd.eq(self.odd)]
        with m.If(self.weight_enable):
            m.d.sync += [weight_even.eq(self.weight_even), weight_odd.eq(self.weight_odd)]
        with m.If(self.operand_enable):
            m.d.sync += [a[k].eq(even[k % pairs] + weight_odd[k]) for k in range(count)]
            m.d.sync += [b[k].eq(odd[k % pairs] + weight_even[k]) for k in range(count)]
        with m.If(self.product_enable):
            m.d.sync += [products[k].eq(a[k] * b[k]) for k in range(count)]
        return m


class PairProducts(Component):
    """Products ``even * odd``, two cycles later; xi is their sum.

    Parameters
    ----------
    factors : Factors

    Members
    -------
    even, odd : ``In(ArrayLayout(data, pairs))``
    enable, product_enable : ``In(1)``
    products : ``Out(ArrayLayout(signed_within(data_bound ** 2), pairs))``
    """

    LATENCY = 2

    def __init__(self, factors: Factors) -> None:
        self.factors = factors
        data = ArrayLayout(factors.data, factors.pairs)
        super().__init__({
            "even": In(data), "odd": In(data), "enable": In(1), "product_enable": In(1),
            "products": Out(ArrayLayout(signed_within(factors.data_bound ** 2), factors.pairs)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        even, odd, products = (Signal(shape, name=name, reset_less=True) for name, shape in (
            ("even_register", self.even.shape()), ("odd_register", self.odd.shape()),
            ("products_register", self.products.shape())))
        m.d.comb += self.products.eq(products)
        with m.If(self.enable):
            m.d.sync += [even.eq(self.even), odd.eq(self.odd)]
        with m.If(self.product_enable):
            m.d.sync += [products[k].eq(even[k] * odd[k]) for k in range(self.factors.pairs)]
        return m
