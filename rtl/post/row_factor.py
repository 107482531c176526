"""The factor of a row: how many levels stand for 1, divided by the sum of the row, two digits a cycle."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.limits import MAX_ROW_LENGTH
from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.rows.row_softmax import ENTRY_BITS

__all__ = ["RowFactor"]


class RowFactor(Component):
    """Divide digit by digit until 24 are significant, bit-exact with `isa.rows.row_softmax.row_factor`.

    Takes a division every ``CYCLES`` cycles at most. Its quotient stands from ``CYCLES`` cycles behind ``start`` until
    the next ``start``: as long for every sum, so that no time depends on data.

    Attributes
    ----------
    start : In
        ``mantissa`` and ``total`` are there, as ``row_factor`` takes them; a second one must not come earlier.
    left : Out
        Cycles until the quotient stands; 0 once it does.
    factor, places : Out
        The quotient.
    """

    TOTAL_BITS = ENTRY_BITS + MAX_ROW_LENGTH.bit_length()
    DIGITS = 2  # a cycle
    CYCLES = -(-(TOTAL_BITS + 1) // DIGITS)

    def __init__(self) -> None:
        super().__init__({
            "start": In(1),
            "mantissa": In(MANTISSA_BITS),
            "total": In(self.TOTAL_BITS),
            "left": Out(range(self.CYCLES + 1)),
            "factor": Out(MANTISSA_BITS),
            "places": Out(range(self.TOTAL_BITS + 1)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self.TOTAL_BITS + 2
        rest = Signal(width, reset_less=True)
        divisor = Signal(self.TOTAL_BITS, reset_less=True)
        digits = Signal.like(self.places, reset_less=True)  # one more than the places
        r, quotient, count = rest, self.factor, digits
        for _ in range(self.DIGITS):
            trial = (r - divisor)[:width]
            full = quotient[-1]
            r = (Mux(trial[-1], r, trial) << 1)[:width]
            count = Mux(full, count, count + 1)[:len(digits)]
            quotient = Mux(full, quotient, Cat(~trial[-1], quotient))[:MANTISSA_BITS]
        with m.If(self.start):
            m.d.sync += [rest.eq(self.mantissa), divisor.eq(self.total), self.factor.eq(0), digits.eq(0),
                         self.left.eq(self.CYCLES)]
        with m.Elif(self.left != 0):
            m.d.sync += [rest.eq(r), self.factor.eq(quotient), digits.eq(count), self.left.eq(self.left - 1)]
        m.d.comb += self.places.eq(digits - 1)
        return m
