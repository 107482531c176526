"""A float32 scale that is found gives the levels of a shift for every sum, and none is found where there is none."""

import numpy as np
import pytest

from tilewright.compiler.network.layers import Requantisation
from tilewright.compiler.network.reference import requantise
from tilewright.compiler.pulp.exact_scale import exact_scale
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

REACH = 20_000


@pytest.mark.parametrize(("low", "high"), [(0, 255), (-128, 127), (-8, 7)])
def test_a_found_scale_gives_every_sum_its_level(low, high):
    rng = np.random.default_rng(high)
    sums, found, down = np.arange(-REACH, REACH + 1), 0, 128 if low == 0 else 0
    for _ in range(30):
        shift = int(rng.integers(4, 20))
        multiplier = int(rng.integers(1, 1 << min(shift, 12)))
        addend = int(rng.integers(-3, 4)) * multiplier + (1 << shift >> 1)
        shifted = ShiftRequantisation((multiplier,), (addend,), shift, low, high)
        for zero in (0, low):
            scale = exact_scale(shifted, 0, (-REACH, REACH), zero)
            if scale is not None:
                own = Requantisation(scale=np.array([scale[1]]), zero_point=zero - down, low=low - down,
                                     high=high - down)
                made = requantise(own, (sums + scale[0])[None, None].astype(np.int32))[0, 0].astype(np.int64)
                assert np.array_equal(made + down, np.clip((sums * multiplier + addend) // 2**shift, low, high))
                found += 1
                break
    assert found > 9


def test_an_addend_between_two_sums_has_no_scale():
    assert exact_scale(ShiftRequantisation((246,), (1_263_414,), 15, 0, 255), 0, (-REACH, REACH)) is None


def test_few_reachable_sums_need_few_levels_to_agree():
    requantisation = ShiftRequantisation((246,), (1_263_414,), 15, 0, 255)
    assert exact_scale(requantisation, 0, (-200, 200)) is not None


def test_a_half_goes_up_as_deeploy_has_it():
    """16,384 · 514 is halfway between 128 and 129, which is rounded to even by a scale of 514 / 65,536."""
    scale = exact_scale(ShiftRequantisation((514,), (1 << 15,), 16, 0, 255), 0, (-REACH, REACH))
    assert scale is not None
    assert np.rint(np.float32(16_384 + scale[0]) * scale[1]) == 129
