# amaranth: UnusedElaboratable=no
"""Does a requantiser of whole numbers alone give what isa.integers gives, and sums themselves by a scale of 1?"""

import random

import pytest

from tests.rtl.arithmetic.test_requantise import META, SUMS, check, long, of_word, shifted
from tilewright.isa import numerics
from tilewright.isa.integers.long_requantise import long_requantise
from tilewright.isa.integers.shift_requantise import shift_requantise
from tilewright.rtl.arithmetic.requantise import Requantise


def alone():
    return Requantise(META, integers=True, floats=False)


def given(fields):
    """Return a request as the unit takes it, which is told ``integer`` once for all."""
    return {name: value for name, value in fields.items() if name != "integer"}


@pytest.mark.parametrize("shift", [0, 7, 24, 33, 63])
def test_sums_are_shifted(shift):
    rng = random.Random(f"alone {shift}")
    requests, expected = [], []
    for _ in range(500):
        drawn = shifted(rng, shift)
        expected.append(shift_requantise(**drawn, shift=shift))
        unread = {"mantissa": drawn.pop("multiplier") | rng.randrange(64) << 18, "shift": rng.randrange(128)}
        requests.append(drawn | unread)
    check(alone(), requests, expected, 0.1, rng, shift, integer=1)


@pytest.mark.parametrize("rounding", [1, 2])
def test_long_multipliers(rounding):
    rng = random.Random(f"alone long {rounding}")
    drawn = [long(rng) for _ in range(2000)]
    expected = [long_requantise(**each, twice=rounding == 2) for each in drawn]
    check(alone(), [given(of_word(each)) for each in drawn], expected, 0.1, rng, rng.randrange(64), rounding, integer=1)


@pytest.mark.parametrize("rounding", [None, 2])
def test_without_integers_each_sum_is_its_level_whatever_else_is_given(rounding):
    rng = random.Random("one")
    requests, expected = [], []
    for _ in range(800):
        total = rng.choice((rng.randrange(-300, 300), rng.choice(SUMS)))
        bias, zero = rng.choice((0, rng.randrange(-(1 << 31), 1 << 31))), rng.randrange(-128, 128)
        low, high = sorted(rng.choice(((-128, 127), (rng.randrange(-128, 128), rng.randrange(-128, 128)))))
        drawn = {"acc": numerics.wrap(total - bias, 32), "bias": bias, "zero_point": zero, "low": low, "high": high}
        expected.append(numerics.requantise(**drawn, mantissa=1 << 23, shift=23))
        requests.append(drawn | {"mantissa": rng.randrange(1 << 24), "shift": rng.randrange(128),
                                 "addend": rng.randrange(1 << 18)})
    check(alone(), requests, expected, 0.1, rng, rng.randrange(64), rounding, integer=0)
