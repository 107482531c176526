"""Long scales tell whether they treat sums of either sign alike."""

import numpy as np
import pytest

from tilewright.compiler.network.integer_scale import LongScale

CASES = [(1 << 30, 31, False), (1 << 30, 33, True), (3 << 29, 36, True), (3 << 29, 40, False), (0x55555556, 32, True),
         (0x40000001, 12, False), (0x7FFFFFFF, 10, True), (5 << 28, 31, True), (1 << 30, 8, False)]


@pytest.mark.parametrize(("multiplier", "shift", "twice"), CASES)
def test_sums_are_odd_up_to_the_first_whose_levels_are_no_opposites(multiplier, shift, twice):
    scale = LongScale((multiplier,), (shift,), twice)
    sums = np.arange(1, 1 << 13, dtype=np.int32).reshape(1, 1, -1)
    unlike = np.flatnonzero(scale.levels(sums) != -scale.levels(-sums))
    first = int(unlike[0]) + 1 if unlike.size else None
    assert scale.is_odd((1 << 13) - 1) == (first is None)
    if first is not None:
        assert scale.is_odd(first - 1)
        assert not scale.is_odd(first)
