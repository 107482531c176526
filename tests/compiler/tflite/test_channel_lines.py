"""Sums with a constant for each channel have numbers that give all levels, and only where there are such."""

import numpy as np
import pytest

from tilewright.compiler.tflite.numbers.channel_lines import channel_lines
from tilewright.compiler.tflite.numbers.litert_numbers import LEVELS, sum_of_levels
from tilewright.isa.numerics import pack_scale, requantise


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sign", [1, -1])
def test_a_channel_s_numbers_give_each_level(seed, sign):
    rng = np.random.default_rng(seed)
    scales, zeros = np.exp(rng.uniform(-5, -2, 2)).astype(np.float32), rng.integers(-128, 128, 3).tolist()
    ratios = scales / np.float32(scales.max() * rng.uniform(0.5, 2))
    table = sum_of_levels(ratios[0], ratios[1], zeros, sign)
    falling, rising = table[::64], table[:, ::64].T
    for wanted, zero, ratio in ((rising, zeros[0], float(ratios[0])), (falling, zeros[1], sign * float(ratios[1]))):
        lines = channel_lines(wanted, zero, zeros[2], ratio)
        assert lines is not None
        for row, (weight, bias, scale) in zip(wanted, lines, strict=True):
            mantissa, shift = pack_scale(float(scale))
            found = [requantise(weight * (int(level) - zero), bias=bias, mantissa=mantissa, shift=shift,
                                zero_point=zeros[2], low=-128, high=127) for level in LEVELS]
            assert np.array_equal(found, np.clip(row, -128, 127))


def test_a_function_that_is_no_line_has_none():
    wanted = np.where(LEVELS < 0, LEVELS, LEVELS + 3)[None].astype(np.int64)
    assert channel_lines(wanted, 0, 0, 1.0) is None
