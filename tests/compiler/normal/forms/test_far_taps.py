"""A convolution whose taps lie far apart keeps every value, and runs on the datapath."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise


def network(shape, kernel, point=0, **attributes):
    """Return a Conv of levels with ``attributes`` and a ReLU behind it."""
    weights = np.random.default_rng(7).integers(-127, 128, (8, shape[1], *kernel)).astype(np.int8)
    constants = {"xs": scalar(2**-5), "ws": scalar(2**-8), "ys": scalar(2**-2), "z": zero(), "zx": zero(point),
                 "w": weights}
    return model([
        node("QuantizeLinear", ["x", "xs", "zx"], "xq"), node("DequantizeLinear", ["xq", "xs", "zx"], "xd"),
        node("DequantizeLinear", ["w", "ws", "z"], "wd"), node("Conv", ["xd", "wd"], "c", **attributes),
        node("Relu", ["c"], "r"), node("QuantizeLinear", ["r", "ys", "z"], "rq"),
        node("DequantizeLinear", ["rq", "ys", "z"], "y")], constants, shape)


CASES = {
    "causal": network((1, 4, 1300), (3,), point=-9, dilations=[512], pads=[1024, 0]),
    "no padding": network((1, 4, 1300), (2,), dilations=[1100], strides=[3]),
    "most taps in the padding": network((1, 4, 60, 1), (5, 1), dilations=[512, 1], pads=[1024, 0, 1024, 0]),
    "a kernel across": network((1, 4, 1100, 5), (2, 3), point=5, dilations=[1030, 1], pads=[1000, 1, 30, 1]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_value_changes_and_the_datapath_computes_it(case):
    proto = CASES[case]
    form = normalise(proto)
    assert form.counts["far taps"] == 1
    assert list(faults(form.proto)) == []
    (before,), (after,) = computed(proto), computed(form.proto)
    np.testing.assert_array_equal(after, before)
    assert len(np.unique(before)) > 6
    network = assert_layers(proto.SerializeToString())
    assert "core" not in {layer.kind for layer in network.layers}


def test_near_taps_are_read_in_place():
    proto = network((1, 4, 200), (3,), dilations=[64])
    assert "far taps" not in normalise(proto).counts
