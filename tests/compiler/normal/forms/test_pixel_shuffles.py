"""Q and DQ between the three moves of a shuffle are left out only where they change nothing."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tilewright.compiler.normal.rules.normal_form import normalise

_CONSTANTS = {"s": scalar(2**-3), "z": zero(5, np.uint8), "coarse": scalar(2**-2), "other": zero(3, np.uint8),
              "six": np.int64([1, 4, 2, 2, 6, 6]), "image": np.int64([1, 4, 12, 12])}
_TURN = [0, 1, 4, 2, 5, 3]


def _pair(x, y, scale="s", point="z"):
    return [node("QuantizeLinear", [x, scale, point], f"{x} levels"),
            node("DequantizeLinear", [f"{x} levels", scale, point], y)]


@pytest.mark.parametrize(("nodes", "shuffled"), [
    ([node("Reshape", ["x", "six"], "a"), *_pair("a", "b"), node("Transpose", ["b"], "t", perm=_TURN),
      node("Reshape", ["t", "image"], "y")], True),
    ([node("Reshape", ["x", "six"], "a"), node("Transpose", ["a"], "t", perm=_TURN), *_pair("t", "b"),
      node("Reshape", ["b", "image"], "y")], True),
    ([node("QuantizeLinear", ["x", "s", "z"], "q"), node("Reshape", ["q", "six"], "a"),
      node("DequantizeLinear", ["a", "s", "z"], "b"), node("Transpose", ["b"], "t", perm=_TURN),
      node("QuantizeLinear", ["t", "s", "z"], "p"), node("Reshape", ["p", "image"], "o"),
      node("DequantizeLinear", ["o", "s", "z"], "y")], True),
    ([node("QuantizeLinear", ["x", "s", "z"], "q"), node("Reshape", ["q", "six"], "a"),
      node("DequantizeLinear", ["a", "s", "z"], "b"), node("Transpose", ["b"], "t", perm=_TURN),
      node("Reshape", ["t", "image"], "y")], False),
    ([*_pair("x", "b"), node("Reshape", ["b", "six"], "a"), node("Transpose", ["a"], "t", perm=_TURN),
      *_pair("t", "c", "coarse", "other"), node("Reshape", ["c", "image"], "y")], False),
], ids=["floats before the turn", "floats behind the turn", "levels", "levels become floats", "another scale"])
def test_values_stay_whatever_is_quantised_in_between(nodes, shuffled):
    proto = model(nodes, _CONSTANTS, (1, 16, 6, 6))
    form = normalise(proto).proto
    for before, after in zip(computed(proto), computed(form), strict=True):
        np.testing.assert_array_equal(before, after)
    assert "DepthToSpace" in operators(form) or not shuffled
