"""Levels of the other type at a model's end are the same bytes: no layer makes them."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import model, node, scalar, zero
from tests.support.exactness import assert_layers

_RNG = np.random.default_rng(15)


@pytest.mark.parametrize(("scale", "zero_point"), [(.05, 131), (.05, 130), (.06, 131)])
@pytest.mark.parametrize("joined", [False, True])
def test_int8_levels_are_given_as_uint8(scale, zero_point, joined):
    constants = {"s": scalar(.02), "z": zero(), "w": _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8),
                 "t": scalar(.05), "tz": zero(3), "u": scalar(scale), "uz": zero(zero_point, np.uint8)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "xd"),
             node("DequantizeLinear", ["w", "s", "z"], "wd"), node("Conv", ["xd", "wd"], "c"),
             node("QuantizeLinear", ["c", "t", "tz"], "q"), node("DequantizeLinear", ["q", "t", "tz"], "d"),
             *([node("Concat", ["d", "d"], "f", axis=1)] if joined else []),
             node("QuantizeLinear", ["f" if joined else "d", "u", "uz"], "y")]
    network = assert_layers(model(nodes, constants, out="uint8").SerializeToString())
    kinds = [layer.kind for layer in network.layers]
    assert kinds[0] == "conv"
    assert len(kinds) <= (3 if joined else 1)      # a tensor that is joined with itself is copied


def test_levels_that_a_factor_gives_another_meaning_are_those_of_the_scale_before():
    constants = {"s": scalar(.02), "z": zero(), "w": _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8),
                 "t": scalar(.05), "tz": zero(3), "u": scalar(.025), "half": scalar(.5)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "xd"),
             node("DequantizeLinear", ["w", "s", "z"], "wd"), node("Conv", ["xd", "wd"], "c"),
             node("QuantizeLinear", ["c", "t", "tz"], "q"), node("DequantizeLinear", ["q", "t", "tz"], "d"),
             node("Mul", ["d", "half"], "m"), node("QuantizeLinear", ["m", "u", "tz"], "mq"),
             node("DequantizeLinear", ["mq", "u", "tz"], "md"), node("Relu", ["md"], "r"),
             node("QuantizeLinear", ["r", "u", "tz"], "y")]
    assert_layers(model(nodes, constants, out="int8").SerializeToString())
