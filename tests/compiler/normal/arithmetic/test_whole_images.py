"""Averages and maxima of whole images cost the same, however their pixels were counted before."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise

_BASE = {"s": scalar(.02), "e": scalar(.013), "z": zero(3)}


def _model(*nodes, **constants):
    """Return a model of ``nodes`` from a quantised ``a``, an image of 4 channels of 6 x 6, to ``b``."""
    pairs = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "a"), *nodes,
             node("QuantizeLinear", ["b", "e", "z"], "yq"), node("DequantizeLinear", ["yq", "e", "z"], "y")]
    return model(pairs, {**_BASE, **constants})


@pytest.mark.parametrize("pool", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("paired", [False, True], ids=["alone", "paired"])
@pytest.mark.parametrize("sizes", [(1, 4, 1, -1), (1, 4, 9, 4), (1, 4, -1), (1, 4, 2, 3, 6)])
def test_a_pooling_of_pixels_that_are_counted_otherwise_is_of_the_image(pool, paired, sizes):
    between = [node("QuantizeLinear", ["r", "s", "z"], "rq"), node("DequantizeLinear", ["rq", "s", "z"], "rd")]
    nodes = [node("Reshape", ["a", "sizes"], "r"), *(between if paired else []),
             node(pool, ["rd" if paired else "r"], "b")]
    proto = _model(*nodes, sizes=np.int64(sizes))
    form = normalise(proto)
    assert "whole images" in form.counts
    assert list(faults(form.proto)) == []
    assert ("Reshape" in operators(form.proto)) == (len(sizes) != 4)
    assert normalise(form.proto).counts == {}
    np.testing.assert_array_equal(computed(form.proto)[0], computed(proto)[0])
    assert_layers(form.proto.SerializeToString())


def test_a_pooling_of_other_channels_stays():
    proto = _model(node("Reshape", ["a", "sizes"], "r"), node("GlobalAveragePool", ["r"], "b"),
                   sizes=np.int64([1, 8, 3, 6]))
    assert "whole images" not in normalise(proto).counts
