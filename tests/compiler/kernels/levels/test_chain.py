"""Several operators in one loop give the bits that they give one by one, in NumPy and in C."""

import numpy as np
import pytest

from tests.support.core_kernels import call_of, compute, run_c, same_bits
from tilewright.compiler.kernels.refusal import refusal_of

RNG = np.random.default_rng(3)
SUMS = RNG.integers(-2**20, 2**20, (1, 4, 5, 6)).astype(np.int32)
SCALE, OFFSET = np.array(0.00037, np.float32), RNG.normal(size=(4, 1, 1)).astype(np.float32) * 50
STEPS = [["Cast", [0], ["to", 1]], ["Mul", [-1, 1], []], ["Add", [2, -1], []], ["Relu", [-1], []]]


def test_each_step_rounds_by_itself():
    call = call_of("Chain", [SUMS, SCALE, OFFSET], SUMS.shape, "float32", {"steps": STEPS})
    assert refusal_of(call) is None
    expected = np.maximum(SUMS.astype(np.float32) * SCALE + OFFSET, np.float32(0))
    assert same_bits(compute(call, [SUMS, SCALE, OFFSET]), expected)
    (found,) = run_c([call], [[SUMS, SCALE, OFFSET]])
    assert same_bits(found, expected)


@pytest.mark.parametrize("steps", [
    None, [], [["Softmax", [0], ["axis", 1]]], [["Nothing", [0], []]], [["Mul", [0, 1], []]],
    [["Relu", [0], []]] * 17])
def test_what_is_no_chain_is_refused(steps):
    call = call_of("Chain", [SUMS, SCALE, OFFSET], SUMS.shape, "float32", {"steps": steps})
    assert refusal_of(call) is not None
