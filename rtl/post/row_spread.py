"""The deviation of a row times its length: the root of n² times the variance, two digits a cycle."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.rows.row_norm import (
    COARSE,
    FINE,
    LEAST_ROOT,
    LONG_LESS,
    LONG_SPREAD_BITS,
    MAX_NORM_LENGTH,
    PRODUCT_BITS,
    ROOT_BITS,
    SPREAD_BITS,
)

__all__ = ["SQUARES_BITS", "SUM_BITS", "RowSpread"]

SUM_BITS = (MAX_NORM_LENGTH * 255).bit_length()
"""Of the sum of a row's elements, each with 128 more."""

MEAN_BITS = (MAX_NORM_LENGTH << 7).bit_length()
"""Of the sum of its elements as they are, signed."""

SQUARES_BITS = (MAX_NORM_LENGTH << 14).bit_length()
"""Of the sum of their squares."""


class RowSpread(Component):
    """Make the root of a row of its sums, bit-exact with `isa.rows.row_norm.row_root`, and what is taken from n x.

    They stand from ``CYCLES`` cycles behind ``start``, when ``done`` is high, until the next ``start``. A spread that
    the root has no digits for leaves any root.

    Attributes
    ----------
    start : In
        ``length``, ``sum`` and ``squares`` are there; the sum is of elements with 128 more. A second one must not
        come before ``done``.
    extra, offset, centred, fine : In
        Operands of ``act.set_norm``, which must not change meanwhile.
    long : In
        The row has more than ``isa.rows.row_norm.LONG_TERMS`` elements; must not change meanwhile.
    done : Out
    centre : Out
        The sum of the row, or of a long one its half, cut off; or ``offset``.
    odd : Out
        One half was cut off.
    root : Out
    """

    DIGITS = 2  # a cycle
    CYCLES = 3 + ROOT_BITS // DIGITS

    def __init__(self) -> None:
        super().__init__({
            "start": In(1),
            "length": In(range(MAX_NORM_LENGTH + 1)),
            "sum": In(SUM_BITS),
            "squares": In(SQUARES_BITS),
            "extra": In(SPREAD_BITS),
            "offset": In(signed(PRODUCT_BITS)),
            "centred": In(1),
            "fine": In(1),
            "long": In(1),
            "done": Out(1),
            "centre": Out(signed(PRODUCT_BITS)),
            "odd": Out(1),
            "root": Out(ROOT_BITS),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ready, spread = self._spread(m)
        radicand = Signal(2 * ROOT_BITS, reset_less=True)
        rest = Signal(ROOT_BITS + 2, reset_less=True)
        root = Signal(ROOT_BITS, reset_less=True)
        left = Signal(range(ROOT_BITS // self.DIGITS + 1))
        r, made, bits = rest, root, radicand
        for _ in range(self.DIGITS):
            whole = Cat(bits[-2:], r)[:ROOT_BITS + 3]
            trial = (whole - Cat(Const(1, 2), made))[:ROOT_BITS + 4]
            r = Mux(trial[-1], whole, trial)[:ROOT_BITS + 2]
            made, bits = Cat(~trial[-1], made)[:ROOT_BITS], (bits << 2)[:2 * ROOT_BITS]
        with m.If(ready):
            fine, coarse = (Mux(self.long, spread << 2 * (digits - less), spread << 2 * digits)
                            for digits, less in zip((FINE, COARSE), LONG_LESS, strict=True))
            m.d.sync += [radicand.eq(Mux(self.fine, fine, coarse)), rest.eq(0), root.eq(0),
                         left.eq(ROOT_BITS // self.DIGITS)]
        with m.Elif(left != 0):
            m.d.sync += [rest.eq(r), root.eq(made), radicand.eq(bits), left.eq(left - 1)]
        m.d.sync += self.done.eq(~ready & (left == 1))
        m.d.comb += self.root.eq(Mux(root[exact_log2(LEAST_ROOT):].any(), root, LEAST_ROOT))
        return m

    def _spread(self, m: Module) -> tuple[Signal, Value]:
        """Return when the spread is there, and the spread: two products, one a cycle behind the other."""
        mean = Signal(signed(MEAN_BITS), reset_less=True)
        product = Signal(signed(LONG_SPREAD_BITS + 1), reset_less=True)
        scaled = Signal(LONG_SPREAD_BITS, reset_less=True)
        summed = Signal()
        multiplied = Signal()
        m.d.sync += [summed.eq(self.start), multiplied.eq(summed)]
        with m.If(self.start):
            m.d.sync += [mean.eq(self.sum - (self.length << 7)), scaled.eq(self.squares * self.length)]
        with m.If(summed):
            squared = mean * Mux(self.centred, mean, self.offset << 1)
            m.d.sync += [product.eq(Mux(self.long & ~self.centred, squared << 1, squared)),
                         scaled.eq(scaled + Mux(self.long, self.extra << 2, self.extra))]
        m.d.comb += [self.centre.eq(Mux(self.centred, Mux(self.long, mean >> 1, mean), self.offset)),
                     self.odd.eq(self.long & self.centred & mean[0])]
        return multiplied, (scaled - product)[:LONG_SPREAD_BITS]
