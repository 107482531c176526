"""Requantisation by a long multiplier: against gemmlowp's roundings one behind the other, on arrays, and as words."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from tilewright.isa.integers import gemmlowp
from tilewright.isa.integers.long_requantise import (
    channel_word,
    long_levels,
    long_requantise,
    parameters_of_words,
)
from tilewright.isa.numerics import clamp
from tilewright.isa.semantics import array_arithmetic

INT32 = 1 << 31
WIDE = {"bias": 0, "zero_point": 0, "low": -128, "high": 127}


def multiplier(rng):
    """Draw one of 31 bits; every second one ends in zeros, so that there are ties."""
    drawn = rng.randrange(1 << 30, INT32)
    cut = rng.randrange(31) if rng.random() < 0.5 else 0
    return rng.choice((1 << 30, INT32 - 1, drawn >> cut << cut, drawn >> cut << cut))


def near_a_tie(rng, factor, shift):
    """Draw a sum whose product with ``factor`` is next to a half of a level."""
    half = (2 * rng.randrange(-130, 130) + 1) << shift - 1
    return clamp(half // factor + rng.randrange(-2, 4), -INT32, INT32 - 1)


def test_two_roundings_are_one_shift():
    """The derivation of the module: at every shift, next to ties, with bounds of int32 and at random."""
    rng = random.Random(0)
    for _ in range(60_000):
        factor, shift = multiplier(rng), rng.randrange(31, 63)
        total = rng.choice((near_a_tie(rng, factor, shift), rng.randrange(-INT32, INT32), -INT32, INT32 - 1, -1, 0, 1))
        for twice, rounded in ((1, gemmlowp.twice_rounded), (0, gemmlowp.once_rounded)):
            expected = clamp(rounded(total, factor, 31 - shift), -128, 127)
            assert long_requantise(total, multiplier=factor, shift=shift, twice=twice, **WIDE) == expected


def test_scales_from_one_half_on_shift_left_before_the_product():
    rng = random.Random(1)
    for _ in range(20_000):
        factor, shift = multiplier(rng), rng.randrange(17, 32)
        total = rng.choice((near_a_tie(rng, factor, shift), rng.randrange(-(1 << shift), 1 << shift)))
        expected = clamp(gemmlowp.twice_rounded(total, factor, 31 - shift), -128, 127)
        assert long_requantise(total, multiplier=factor, shift=shift, twice=1, **WIDE) == expected


def test_the_roundings_are_as_their_names_say():
    rng = random.Random(2)
    for _ in range(20_000):
        a, b, exponent = rng.randrange(-INT32, INT32), rng.randrange(-INT32, INT32), rng.randrange(0, 31)
        assert gemmlowp.high_product(a, b) == math.floor(Fraction(2 * a * b, 1 << 32) + Fraction(1, 2))
        x = rng.choice((a, a >> 31 - exponent << exponent >> 1))
        exact = Fraction(x, 1 << exponent)
        away = math.floor(abs(exact) + Fraction(1, 2))
        assert gemmlowp.divide_by_power(x, exponent) == (away if x >= 0 else -away)
    assert gemmlowp.high_product(-INT32, -INT32) == INT32 - 1


def test_two_roundings_differ_from_one():
    """By a sum in some thousands, so that a test of one must not pass for the other."""
    rng, differ = random.Random(3), 0
    for _ in range(4000):
        factor, shift = multiplier(rng), rng.randrange(32, 45)
        total = near_a_tie(rng, factor, shift)
        differ += gemmlowp.twice_rounded(total, factor, 31 - shift) != gemmlowp.once_rounded(total, factor, 31 - shift)
    assert differ > 100


def test_arrays_and_words_hold_the_same():
    rng = random.Random(4)
    factors, shifts = [multiplier(rng) for _ in range(500)], [rng.randrange(1, 64) for _ in range(500)]
    biases = [rng.randrange(-(1 << 27), 1 << 27) for _ in range(500)]
    words = np.array([channel_word(*each) for each in zip(biases, factors, shifts, strict=True)], np.uint64)
    for found, given in zip(parameters_of_words(words), (biases, factors, shifts), strict=True):
        assert found.tolist() == given
    sums = np.array([[clamp(near_a_tie(rng, f, s) - b, -INT32, INT32 - 1)
                      for f, s, b in zip(factors, shifts, biases, strict=True)] for _ in range(6)]
                    + [[rng.randrange(-INT32, INT32) for _ in range(500)] for _ in range(3)], np.int32)
    for twice in (0, 1):
        found = array_arithmetic.long_requantise(sums, words, -5, -120, 90, twice=bool(twice))
        assert found.tolist() == [[long_requantise(int(each), bias=b, multiplier=f, shift=s, twice=twice, zero_point=-5,
                                                   low=-120, high=90)
                                   for each, b, f, s in zip(row, biases, factors, shifts, strict=True)] for row in sums]


@pytest.mark.parametrize("twice", [False, True])
def test_half_a_million_sums_next_to_ties(twice):
    rng = np.random.default_rng(5)
    factors = rng.integers(1 << 30, INT32, 500_000) >> (cut := rng.integers(0, 31, 500_000)) << cut
    shifts = rng.integers(32, 55, 500_000)
    halves = (2 * rng.integers(-130, 130, 500_000) + 1) << (shifts - 1)
    totals = np.clip(halves // factors + rng.integers(-2, 4, 500_000), -INT32, INT32 - 1).astype(np.int32)
    high = (totals * factors + (1 << 30)) >> 31
    mask = (1 << shifts - 31) - 1
    expected = (high >> shifts - 31) + ((high & mask) > (mask >> 1) + (high < 0)) if twice else \
        (totals * factors + (1 << shifts - 1)) >> shifts
    assert np.array_equal(long_levels(totals, factors, shifts, twice=twice), expected)


@pytest.mark.parametrize(("numbers", "named"), [
    ((1 << 27, 1 << 30, 40), "28 bits"), ((0, 1 << 31, 40), "31 bits"), ((0, 5, 40), "31 bits"),
    ((0, 1 << 30, 0), "1..63"), ((0, 1 << 30, 64), "1..63")])
def test_words_hold_no_more_than_their_bits(numbers, named):
    with pytest.raises(ValueError, match=named):
        channel_word(*numbers)
