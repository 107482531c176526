"""Transposed convolutions: the phases together are what the definition says, element by element."""

import numpy as np
import pytest

from tests.support.transposed import sums_by_definition
from tilewright.compiler.network.layers import Requantisation, TensorInfo
from tilewright.compiler.network.reference import accumulate
from tilewright.compiler.network.transposed import TransposedConvolution, phases, transposed_shape

CASES = [
    # channels, outputs, groups, height, width, kernel, strides, pads, dilations, output padding
    (3, 4, 1, 5, 6, (4, 4), (2, 2), (1, 1, 1, 1), (1, 1), (0, 0)),
    (3, 4, 1, 5, 6, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (0, 0)),
    (4, 6, 2, 3, 7, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), (1, 1)),
    (2, 2, 2, 4, 4, (3, 5), (1, 3), (2, 0, 0, 1), (1, 1), (0, 2)),
    (2, 3, 1, 4, 3, (1, 1), (3, 2), (0, 0, 0, 0), (1, 1), (2, 1)),
    (2, 3, 1, 6, 6, (3, 2), (2, 2), (2, 1, 2, 1), (2, 3), (0, 0)),
    (1, 1, 1, 1, 1, (5, 5), (4, 4), (2, 2, 0, 0), (1, 1), (0, 0)),
    (2, 2, 1, 5, 5, (3, 3), (1, 1), (2, 2, 2, 2), (1, 1), (0, 0)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("zero_point", [0, -37])
def test_phases_make_up_the_definition(case, zero_point):
    channels, outputs, groups, height, width, kernel, strides, pads, dilations, extra = case
    rng = np.random.default_rng(5)
    shape = transposed_shape((channels, height, width), outputs, kernel, strides, pads, dilations, extra)
    source = TensorInfo(name="x", shape=(channels, height, width), scale=np.float32(1), zero_point=zero_point)
    output = TensorInfo(name="y", shape=shape, scale=np.float32(1), zero_point=0)
    weights = rng.integers(-128, 128, (channels, outputs // groups, *kernel), dtype=np.int8)
    bias = rng.integers(-1000, 1000, outputs).astype(np.int32)
    x = rng.integers(-128, 128, source.shape, dtype=np.int8)
    convolution = TransposedConvolution(
        name="up", onnx_nodes=("up",), source=source, output=output, weights=weights, bias=bias, strides=strides,
        pads=pads, dilations=dilations, groups=groups,
        requantisation=Requantisation(scale=np.ones(outputs, np.float32), zero_point=0))
    layers, parts = convolution.layers()
    whole = np.full(outputs * shape[1] * shape[2], 1 << 40, np.int64)
    for layer in layers:
        place = parts[layer.output].place
        assert min(layer.pads) >= 0
        sums = accumulate(layer, x)
        assert sums.shape == layer.conv_shape
        for (c, y, z), value in np.ndenumerate(sums):
            whole[place.offset + y * place.row_step + z * place.pixel_step + c] = value
    expected = sums_by_definition(x.astype(np.int64) - zero_point, weights, bias, shape, strides, pads, dilations,
                                  groups)
    np.testing.assert_array_equal(whole.reshape(shape[1], shape[2], outputs).transpose(2, 0, 1), expected)


def test_phases_take_every_tap_once():
    taps = [tap for phase in phases(9, 19, 5, 3, 1) for tap in phase.taps if tap >= 0]
    assert sorted(taps) == list(range(5))
