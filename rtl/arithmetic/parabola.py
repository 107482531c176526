"""A parabola of words of 16 bits, with an entry of the table for each word: `isa.words.word_curve`."""

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.words.curve_fields import CURVATURE, ENTRY_BYTES, PIECE, ROUNDINGS, SLOPE, UNITS, VALUE

__all__ = ["WordCurve"]

_ALONG = PIECE.bit_length() - 1
_LEAST, _MOST = -(1 << 15), (1 << 15) - 1


class WordCurve(Component):
    """Compute one result a cycle, ``LATENCY`` cycles after ``entry``. Two multipliers, of 9 bits by 16 and by 18.

    Attributes
    ----------
    along : In
        The lower bits of a word, with which ``entry`` was looked up.
    entry : In
        The piece that the word is in.
    o : Out
        The word that it becomes.
    """

    LATENCY = 5

    def __init__(self) -> None:
        super().__init__({"along": In(_ALONG), "entry": In(8 * ENTRY_BYTES), "o": Out(signed(16))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lost, gained = ROUNDINGS
        given = Cat(self.along[:-1], ~self.along[-1]).as_signed()
        value, slope, curvature = (self.entry[first:first + bits].as_signed() for first, bits in (
            (0, VALUE), (VALUE, SLOPE), (VALUE + SLOPE, CURVATURE)))
        bend = _register(m, "bend", curvature * given)
        slope, value, along = (_register(m, name, each) for name, each in (
            ("slope", slope), ("value", value), ("along_bend", given)))
        slope = _register(m, "bent", (slope + (bend + (1 << lost - 1) >> lost))[:SLOPE].as_signed())
        value, along = _register(m, "value_bent", value), _register(m, "along_bent", along)
        rise, value = _register(m, "rise", slope * along), _register(m, "value_rise", value)
        total = _register(m, "total", (value << gained) + rise + (1 << UNITS[1] - 1) >> UNITS[1])
        m.d.sync += self.o.eq(Mux(total < _LEAST, _LEAST, Mux(total > _MOST, _MOST, total)))
        return m


def _register(m: Module, name: str, value: Value) -> Signal:
    """Return ``value`` a cycle later."""
    found = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += found.eq(value)
    return found
