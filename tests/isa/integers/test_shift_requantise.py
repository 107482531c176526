"""Requantisation by a shift: against its definition in fractions, on arrays, and as words in memory."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from tilewright.isa.integers.shift_requantise import (
    channel_word,
    parameters_of_words,
    shift_requantise,
    split_addend,
)
from tilewright.isa.numerics import clamp
from tilewright.isa.semantics import array_arithmetic

WIDE = {"zero_point": 0, "low": -128, "high": 127}


def test_all_narrow_numbers_are_as_defined():
    """Sums of 6 bits, multipliers of 4 with every addend below, shifts up to 8; halves up as Deeploy writes them."""
    for multiplier in range(1, 16):
        for shift in range(9):
            for total in range(-32, 32):
                for addend in range(multiplier):
                    exact = Fraction(total * multiplier + addend, 2**shift)
                    found = shift_requantise(total, bias=0, multiplier=multiplier, addend=addend, shift=shift, **WIDE)
                    assert found == clamp(math.floor(exact), -128, 127)
                bias, addend = split_addend(1 << shift >> 1, multiplier)
                assert 0 <= addend < multiplier
                found = shift_requantise(total, bias=bias, multiplier=multiplier, addend=addend, shift=shift, **WIDE)
                assert found == clamp(math.floor(Fraction(total * multiplier, 2**shift) + Fraction(1, 2) * (shift > 0)),
                                      -128, 127)


def test_a_datapath_of_magnitudes_gives_the_same():
    """What the module says of sums below 0, which the gateware does."""
    rng = random.Random(0)
    for _ in range(20_000):
        total, multiplier = rng.randrange(-(1 << 31), 0), rng.randrange(1, 1 << 18)
        addend, shift = rng.randrange(multiplier), rng.randrange(64)
        numerator = -total * multiplier - addend - 1
        assert 0 <= numerator < 1 << 50
        assert ~(numerator >> shift) == total * multiplier + addend >> shift


def test_arrays_and_words_hold_the_same():
    rng = np.random.default_rng(1)
    bits = rng.integers(1, 19, 500)
    multipliers = np.array([int(rng.integers(1, 1 << each)) for each in bits])
    addends, biases = rng.integers(0, multipliers), rng.integers(-(1 << 27), 1 << 27, 500)
    words = np.array([channel_word(*map(int, each)) for each in zip(biases, multipliers, addends, strict=True)],
                     np.uint64)
    for found, given in zip(parameters_of_words(words), (biases, multipliers, addends), strict=True):
        assert np.array_equal(found, given)
    sums = rng.integers(-(1 << 31), 1 << 31, (4, 500)).astype(np.int32)
    for shift in (0, 20, 40, 63):
        found = array_arithmetic.shift_requantise(sums, words, shift, -5, -120, 90)
        assert found.tolist() == [[shift_requantise(int(each), bias=int(b), multiplier=int(m), addend=int(a),
                                                    shift=shift, zero_point=-5, low=-120, high=90)
                                   for each, b, m, a in zip(row, biases, multipliers, addends, strict=True)]
                                  for row in sums]


@pytest.mark.parametrize(("numbers", "named"), [
    ((1 << 27, 5, 0), "28 bits"), ((0, 1 << 18, 0), "262143"), ((0, 0, 0), "262143"), ((0, 5, 5), "0..4")])
def test_words_hold_no_more_than_their_bits(numbers, named):
    with pytest.raises(ValueError, match=named):
        channel_word(*numbers)
