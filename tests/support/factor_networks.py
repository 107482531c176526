"""A network that multiplies its input, channel by channel, by a vector that is another input."""

import numpy as np

from tilewright.compiler.network.layers import ChannelFactor, Layer, Network, Place, Requantisation, TensorInfo


def product_network(channels: int, size: tuple[int, int] = (3, 5), x_zero: int = -128, s_zero: int = -128,
                    place: Place | None = None) -> Network:
    """Return x · s, s being all or part of an input."""
    x = TensorInfo(name="x", shape=(channels, *size), scale=np.float32(1), zero_point=x_zero)
    vector = TensorInfo(name="s", shape=(channels, 1, 1), scale=np.float32(1), zero_point=s_zero, place=place)
    y = TensorInfo(name="y", shape=x.shape, scale=np.float32(1), zero_point=0)
    factor = ChannelFactor(tensor="s", zero_point=s_zero, negated=s_zero == -128)
    layer = Layer(name="scale", kind="conv", onnx_nodes=("mul",), input="x", output="y", in_shape=x.shape,
                  conv_shape=x.shape, out_shape=x.shape, weights=None, bias=np.zeros(channels, np.int32),
                  kernel=(1, factor.halves), dilations=(1, 2 - factor.halves), pad_value=x_zero, groups=channels,
                  requantisation=Requantisation(scale=np.full(channels, 1 / 300, np.float32), zero_point=3),
                  factor=factor)
    whole = [] if place is None else [TensorInfo(name=place.parent, shape=(channels + 7, 1, 1), scale=np.float32(1),
                                                 zero_point=s_zero)]
    inputs = (x, *(whole or [vector]))
    return Network(name="n", layers=(layer,), inputs=inputs, outputs=(y,),
                   tensors={info.name: info for info in (x, vector, y, *whole)})
