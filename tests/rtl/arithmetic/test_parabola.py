"""A word follows its piece of a curve as the definition of curves says."""

import numpy as np

from tests.support.streams import simulate
from tilewright.isa.words.curve_fields import CURVATURE, PIECE, PIECES, SLOPE, VALUE
from tilewright.isa.words.word_curve import curve_bytes, follow_curve
from tilewright.rtl.arithmetic.parabola import WordCurve


def test_results_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    edges = [np.concatenate(([-1 << bits - 1, (1 << bits - 1) - 1], rng.integers(-1 << bits - 1, 1 << bits - 1, 62),
                             rng.integers(-1 << bits - 4, 1 << bits - 4, 64))) for bits in (VALUE, SLOPE, CURVATURE)]
    table = curve_bytes(*edges).view("<u8")
    words = np.concatenate([np.arange(-512, 512), rng.integers(-32_768, 32_768, 1_000)]).astype(np.int16)
    found = []

    async def bench(ctx):
        for cycle in range(len(words) + dut.LATENCY):
            if cycle < len(words):
                place = int(words[cycle]) + (PIECES * PIECE >> 1)
                ctx.set(dut.along, place % PIECE)
                ctx.set(dut.entry, int(table[place // PIECE]))
            if cycle >= dut.LATENCY:
                found.append(ctx.get(dut.o))
            await ctx.tick()

    dut = WordCurve()
    simulate(dut, bench)
    np.testing.assert_array_equal(found, follow_curve(words, table))
