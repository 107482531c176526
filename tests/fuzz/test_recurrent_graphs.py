"""Random recurrences, unrolled and quantised, are what ONNX Runtime computes."""

import numpy as np
import pytest

from tests.fuzz.recurrent_graphs import differing_floats, random_recurrence, run_one


@pytest.mark.parametrize("seed", range(12))
def test_an_unrolled_recurrence_computes_what_the_node_does(seed):
    rng = np.random.default_rng((99, seed))
    assert differing_floats(random_recurrence(rng), rng) == []


def test_a_quantised_recurrence_equals_onnx_runtime_in_every_tensor():
    verdict = run_one(99, 3)
    assert verdict.mismatches == []
    assert verdict.exact > 0
