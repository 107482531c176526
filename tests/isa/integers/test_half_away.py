"""Numbers of a long multiplier round halves away from zero, for every sum that may have them."""

import numpy as np
import pytest

from tilewright.isa.integers.half_away import half_away, half_away_numbers
from tilewright.isa.integers.long_requantise import long_levels

LEVELS = 256


def compared(multiplier, shift, sums):
    """Return levels by the definition, and by the datapath's, both where nothing is saturated yet."""
    found, way = half_away_numbers(multiplier, shift, int(np.abs(sums).max()))
    made = long_levels(sums.astype(np.int32), np.int64(found), np.int64(way), twice=False)
    wanted = np.array([half_away(int(each), multiplier, shift) for each in sums])
    return [np.clip(each, -LEVELS, LEVELS).tolist() for each in (wanted, made)]


def test_every_sum_of_twelve_bits_is_rounded_by_the_definition():
    sums = np.arange(-2048, 2049)
    for multiplier in (*range(1, 20), 255, 257, 511, 513, 1000, (1 << 30) - 1):
        for shift in (0, 1, 2, 3, 7, 12):
            wanted, made = compared(multiplier, shift, sums)
            assert wanted == made, (multiplier, shift)


def test_sums_of_any_size_are_rounded_by_it_next_to_where_levels_end():
    rng = np.random.default_rng(0)
    for bits, shift in ((1, 22), (3, 22), (9, 22), (9, 18), (5, 28), (1, 27), (10, 30), (31, 40)):
        multiplier = int(rng.integers(1 << bits - 1, 1 << bits)) | 1
        ends = [(2 * level + 1 << shift) // 2 // multiplier for level in range(-257, 257)]
        sums = np.unique([end + step for end in ends for step in (-1, 0, 1, 2)])
        limit = (1 << 31 - bits) - 1 if shift > 22 and bits < 10 else (1 << 31) - 1
        wanted, made = compared(multiplier, shift, sums[np.abs(sums) <= limit])
        assert wanted == made, (multiplier, shift)


@pytest.mark.parametrize(("multiplier", "shift", "largest"), [((1 << 40) + 1, 1, 9), (511, 40, 1 << 22),
                                                             (3, 40, 1), (0, 1, 1)])
def test_numbers_that_do_not_exist_are_refused(multiplier, shift, largest):
    with pytest.raises(ValueError, match="its"):
        half_away_numbers(multiplier, shift, largest)
