"""Ranges of layers are read as written, and balanced as well as can be."""

import re
from itertools import combinations, pairwise

import numpy as np
import pytest

from tilewright.errors import InputError
from tilewright.runtime.ranges.ranges import LayerRange, balance, parse_range


@pytest.mark.parametrize(("text", "first", "stop"),
                         [("0:1", 0, 1), ("2:5", 2, 5), (":3", 0, 3), ("4:", 4, 5), (":", 0, 5)])
def test_ranges_are_read(text, first, stop):
    assert parse_range(text, 5) == LayerRange(first, stop)
    assert parse_range(str(LayerRange(first, stop)), 5) == LayerRange(first, stop)


@pytest.mark.parametrize("text", ["", "3", "2:2", "3:2", "0:6", "-1:2", "a:b", "1:2:3", "١:٢", "1 :2"])
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match=rf"A:B .*5.*not {re.escape(repr(text))}$"):
        parse_range(text, 5)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_cut_has_a_shorter_longest_range(seed):
    rng = np.random.default_rng(seed)
    cycles = rng.integers(0, 100, rng.integers(1, 9)).tolist()
    parts = int(rng.integers(1, 5))
    ranges = balance(LayerRange(0, len(cycles)), cycles, parts)
    assert [each.first for each in ranges] == [0, *(each.stop for each in ranges[:-1])]
    assert ranges[-1].stop == len(cycles)
    assert len(ranges) <= parts
    best = min(max(sum(cycles[a:b]) for a, b in pairwise((0, *cut, len(cycles))))
               for count in range(parts) for cut in combinations(range(1, len(cycles)), count))
    assert max(sum(cycles[each.first:each.stop]) for each in ranges) == best


def test_part_of_a_network_is_cut_too():
    assert balance(LayerRange(1, 4), [1000, 5, 5, 5, 1000], 3) == [LayerRange(1, 2), LayerRange(2, 3), LayerRange(3, 4)]
