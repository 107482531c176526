"""Weights that a file holds as floats are the levels that a quantiser made them of, with its scale, to the bit."""

import numpy as np
import pytest
from onnx.numpy_helper import from_array
from onnx.numpy_helper import to_array as onnx_array

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise

_RNG = np.random.default_rng(7)
_SHAPE = (8, 4, 3, 3)
_LEVELS = _RNG.integers(-63, 64, _SHAPE).astype(np.int8)
_EVEN = np.where(np.arange(8)[:, None, None, None] % 3 == 0, _LEVELS // 2 * 2, _LEVELS).astype(np.int8)
_WIDE = _RNG.integers(0, 256, _SHAPE).astype(np.uint8)
_SCALES = np.float32(_RNG.uniform(.003, .012, 8))
_BIAS = np.arange(-4, 4, dtype=np.int32) * 90
_INPUT = scalar(.02)
_CASES = {
    "one scale": (_EVEN, scalar(.007), zero(), False), "one scale and a bias": (_EVEN, scalar(.007), zero(), True),
    "scales and a bias": (_EVEN, _SCALES, np.zeros(8, np.int8), True),
    "uint8 beyond int8": (_WIDE, scalar(.007), zero(158, np.uint8), False),
    "uint8 beyond int8 with a bias": (_WIDE, _SCALES, np.full(8, 101, np.uint8), True),
    "uint8 of channels": (_WIDE, _SCALES, np.full(8, 0, np.uint8), False),
}


def _model(levels, scale, zero_point, bias, floats):
    """Return a convolution between Q and DQ by levels, or by the floats that these stand for."""
    given = {"s": _INPUT, "e": scalar(.05), "z": zero(3)}
    steps = scale.reshape([-1, 1, 1, 1]) if scale.ndim else scale
    if floats:
        given["wd"] = (levels.astype(np.int32) - int(zero_point.flat[0])).astype(np.float32) * steps
        weights = []
    else:
        given |= {"w": levels, "ws": scale, "wz": zero_point}
        weights = [node("DequantizeLinear", ["w", "ws", "wz"], "wd", **({"axis": 0} if scale.ndim else {}))]
    if bias:
        given |= {"b": _BIAS, "bs": scale * _INPUT}
        weights.append(node("DequantizeLinear", ["b", "bs"], "bd", **({"axis": 0} if scale.ndim else {})))
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "xd"),
             *weights, node("Conv", ["xd", "wd", *(["bd"] if bias else [])], "c", pads=[1] * 4),
             node("QuantizeLinear", ["c", "e", "z"], "cq"), node("DequantizeLinear", ["cq", "e", "z"], "y")]
    return model(nodes, given)


def _weights(proto):
    """Return the weights' differences from their zero point and their scale, in the normal form."""
    held = {each.name: each for each in proto.graph.initializer}
    conv = next(each for each in proto.graph.node if each.op_type == "Conv")
    maker = next(each for each in proto.graph.node if conv.input[1] in each.output)
    levels, scale, point = (onnx_array(held[name]) for name in maker.input)
    return levels.astype(np.int32) - point.flat[0], np.broadcast_to(scale, 8)


@pytest.mark.parametrize("case", _CASES)
def test_their_levels_and_scales_are_those_of_the_quantiser(case):
    plain, floats = (_model(*_CASES[case], floats) for floats in (False, True))
    form = normalise(floats)
    assert "weights" in form.counts
    assert list(faults(form.proto)) == []
    assert operators(form.proto).count("Conv") == 1
    for found, expected in zip(_weights(form.proto), _weights(normalise(plain).proto), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(computed(form.proto)[0], computed(plain)[0])
    network = assert_layers(form.proto.SerializeToString())
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("places", [(58.6,), (299,), (200, -200)], ids=["no level", "too far", "too far apart"])
def test_floats_that_no_levels_of_eight_bits_hold_stay(places):
    proto = _model(*_CASES["one scale"], floats=True)
    tensor = next(each for each in proto.graph.initializer if each.name == "wd")
    values = np.array(onnx_array(tensor))
    values[1, 0, 0, :len(places)] = np.float32(places) * scalar(.007)
    tensor.CopyFrom(from_array(values, "wd"))
    assert "weights" not in normalise(proto).counts
