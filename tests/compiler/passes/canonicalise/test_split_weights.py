"""uint8 weights that leave int8 in a few channels cost those alone, whoever else reads them; equal to ONNX Runtime."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder


def conv(model, x, outputs, wide, kernel=1, groups=1):
    """Add a convolution with uint8 weights of the zero point 111; those of input channels ``wide`` reach 144."""
    channels = x.shape[1]
    levels = model.rng.integers(1, 239, (outputs, channels // groups, kernel, kernel))
    for channel in wide:
        levels[channel % outputs, channel % (channels // groups)] = 255
    constants = [model.constant(each) for each in (levels.astype(np.uint8), np.float32(0.006), np.uint8(111))]
    real = model.node("DequantizeLinear", constants, f"weights{len(model.nodes)}")
    pad = kernel // 2
    product = model.node("Conv", [model.dequantised(x), real], f"product{len(model.nodes)}", group=groups,
                         pads=(pad,) * 4, kernel_shape=(kernel, kernel))
    out = model.value((1, outputs, *x.shape[2:]), np.float32(x.scale * 0.006 * kernel * np.sqrt(channels) * 2))
    model.quantised(product, out)
    return out


@pytest.mark.parametrize("kernel", [1, 3])
def test_a_channel_with_wide_weights_is_made_twice(kernel):
    model = ModelBuilder("qdq", seed=1, dtype=np.uint8, zero_point=None)
    x = conv(model, model.input((1, 3, 6, 7)), 10, ())
    network = assert_layers(model.finish(conv(model, x, 5, (4, 7), kernel)))
    assert [layer.in_shape[0] for layer in network.layers] == [3, 12]


def test_who_else_reads_it_reads_a_part():
    model = ModelBuilder("qdq", seed=2, dtype=np.uint8, zero_point=None)
    x = conv(model, model.input((1, 3, 6, 7)), 10, ())
    network = assert_layers(model.finish(model.add(conv(model, x, 10, (4,), 3), x)))
    assert [layer.in_shape[0] for layer in network.layers] == [3, 11]


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_of_what_no_convolution_makes_all_channels_are_repeated(groups):
    model = ModelBuilder("qdq", seed=3, dtype=np.uint8, zero_point=None)
    x = conv(model, model.input((1, 3, 6, 7)), 8, ()) if groups > 1 else model.input((1, 8, 6, 7))
    network = assert_layers(model.finish(conv(model, x, 8, (5,), 3, groups)))
    assert network.layers[-1].in_shape[0] == 16


def test_weights_of_which_every_channel_is_wide():
    model = ModelBuilder("qdq", seed=4, dtype=np.uint8, zero_point=None)
    x = conv(model, conv(model, model.input((1, 3, 6, 7)), 6, (0, 1, 2)), 9, range(6), 3)
    assert_layers(model.finish(conv(model, x, 4, range(9))))
