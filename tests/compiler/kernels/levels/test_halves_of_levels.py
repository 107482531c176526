"""Levels less a zero point, as two halves: the same in NumPy and in C, and nothing else is taken."""

import numpy as np
import pytest

from tests.support.core_kernels import call_of, run_c, same_bits
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.refusal import refusal_of

RNG = np.random.default_rng(4)
LEVELS = RNG.integers(0, 256, (1, 6, 4, 5)).astype(np.uint8)
ZERO = np.array(200, np.uint8)


@pytest.mark.parametrize(("shape", "groups"), [((1, 6, 4, 5), 1), ((1, 6, 4, 5), 3), ((20, 6), 1), ((120,), 1)])
@pytest.mark.parametrize("zero", [0, 90, 255])
def test_c_makes_the_same_halves(shape, groups, zero):
    axis = 1 if len(shape) == 4 else len(shape) - 1
    dims = (*shape[:axis], 2 * shape[axis], *shape[axis + 1:])
    arrays = [LEVELS.reshape(shape), np.array(zero, np.uint8)]
    call = call_of("HalvesOfLevels", arrays, dims, "int8", {"group": groups})
    (found,) = run_c([call], [arrays])
    assert same_bits(found, run_call(call, arrays))


@pytest.mark.parametrize(("arrays", "groups"), [
    ([LEVELS.astype(np.int8), ZERO], 1), ([LEVELS, ZERO.astype(np.int8)], 1), ([LEVELS, np.array([1, 2], np.uint8)], 1),
    ([LEVELS, ZERO], 4), ([LEVELS, ZERO], 0)])
def test_other_operands_are_refused(arrays, groups):
    call = call_of("HalvesOfLevels", arrays, (1, 12, 4, 5), "int8", {"group": groups})
    assert refusal_of(call) is not None
