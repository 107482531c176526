"""Random layers with inputs and results of 16 bits, side by side in one network."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.support.random_layers import Shape, build_layer
from tilewright.compiler.network.layer_uses import WordAddend, WordPlanes
from tilewright.compiler.network.layers import Layer, Network, Requantisation, TensorInfo
from tilewright.compiler.words.word_tensors import lower_name, plane_tensors, upper_name
from tilewright.isa.words.curve_fields import PIECES
from tilewright.isa.words.word_curve import curve_bytes

SHAPES = (
    ("conv", 9, 10, 1, (Shape(7, 3, 1, 1, 1, 1), Shape(9, 3, 1, 1, 1, 1))),     # conv23
    ("conv", 20, 21, 1, (Shape(6, 1, 1, 1, 0, 0), Shape(5, 1, 1, 1, 0, 0))),    # a pixel is a run
    ("conv", 3, 8, 1, (Shape(11, 3, 2, 1, 1, 1), Shape(9, 3, 2, 1, 1, 1))),     # rows are runs, which pairs take
    ("conv", 16, 16, 16, (Shape(8, 3, 1, 1, 1, 1), Shape(7, 3, 1, 1, 1, 1))),   # depthwise
    ("conv", 12, 12, 12, (Shape(9, 3, 2, 1, 1, 1), Shape(8, 3, 2, 1, 1, 1))),   # depthwise, of stride 2
    ("conv", 40, 17, 1, (Shape(1, 1, 1, 1, 0, 0), Shape(1, 1, 1, 1, 0, 0))),    # a vector
    ("average", 11, 11, 11, (Shape(5, 5, 1, 1, 0, 0), Shape(4, 4, 1, 1, 0, 0))),
    ("pass", 6, 6, 6, (Shape(5, 1, 1, 1, 0, 0), Shape(7, 1, 1, 1, 0, 0))),
)
"""Kind, input and output channels, groups, and the axes of layers of every way to compute them."""


def word_layer(rng: np.random.Generator, index: int, *, wide_in: bool, wide_out: bool, curved: bool = False) -> Layer:
    """Return the layer of `SHAPES` of that number, with words of 16 bits as its input, its result, or both.

    Its result may be ``curved``: by pieces that have nothing to do with one another.
    """
    kind, channels, outputs, groups, axes = SHAPES[index]
    made = build_layer(rng, kind, channels, outputs, groups, list(axes))
    weights = None if made.weights is None else np.clip(made.weights, -128, 127).astype(np.int8)
    scale = made.requantisation.scale * np.float32((1 if wide_in else 256) if wide_out else 1 / 256 if wide_in else 1)
    bounds = (-30_000, 32_767) if wide_out else (-120, 127)
    zero = int(rng.integers(-2_000, 2_000)) if wide_out else int(rng.integers(-9, 9))
    x, y = f"x {index}", f"y {index}"
    words = WordPlanes(lower_input=lower_name(x) if wide_in else "", lower_output=lower_name(y) if wide_out else "")
    return replace(
        made, name=f"layer {index}", input=upper_name(x) if wide_in else x, output=upper_name(y) if wide_out else y,
        weights=weights, pool=None, residual=None, table=_curve(rng) if curved else None, table_first=False,
        out_shape=made.conv_shape,
        words=words,
        pad_value=int(rng.integers(-3_000, 3_000)) if wide_in else made.pad_value,
        requantisation=replace(made.requantisation, scale=scale, zero_point=zero, low=bounds[0], high=bounds[1]))


def _curve(rng: np.random.Generator) -> np.ndarray:
    """Return a curve of random pieces, some of which leave 16 bits."""
    value, slope, curvature = (rng.integers(-1 << bits, 1 << bits, PIECES) for bits in (21, 16, 13))
    return curve_bytes(value, slope, curvature)


SUMS = ((12, 9, 7, (-3, 120, 77), True, True), (8, 4, 8, (1, -1), True, False), (10, 3, 5, (5, 90, 127), False, True))
"""Channels, rows and columns of weighted sums, their weights, and whether the own and the other operand are words."""


def word_sum(rng: np.random.Generator, index: int) -> Layer:
    """Return the sum of `SUMS` of that number, whose results are words."""
    channels, height, width, weights, own, other = SUMS[index]
    shape, x, y, z = (channels, height, width), f"own {index}", f"sum {index}", f"other {index}"
    taps = np.array(weights, np.int8)[None, None, :, None]
    words = WordPlanes(lower_input=lower_name(x) if own else "", lower_output=lower_name(y), addend=WordAddend(
        upper=upper_name(z) if other else z, lower=lower_name(z) if other else "", weights=weights))
    return Layer(name=y, kind="conv", onnx_nodes=(), input=upper_name(x) if own else x, output=upper_name(y),
                 in_shape=shape, conv_shape=shape, out_shape=shape, groups=channels, words=words, pad_value=0,
                 weights=np.broadcast_to(taps, (channels, 1, len(weights), 1)),
                 bias=np.full(channels, int(rng.integers(-9_000, 9_000)), np.int32),
                 requantisation=Requantisation(scale=np.full(channels, 0.7 / max(weights), np.float32), zero_point=-50,
                                               low=-32_000, high=32_767))


def word_network(layers: Sequence[Layer]) -> Network:
    """Return a network of such layers side by side."""
    tensors: dict[str, TensorInfo] = {}
    borders: list[list[TensorInfo]] = [[], []]
    for layer in layers:
        added = layer.words.addend
        also = () if added is None else ((borders[0], added.upper, layer.in_shape, added.lower),)
        for border, name, shape, wide in ((borders[0], layer.input, layer.in_shape, layer.words.lower_input), *also,
                                          (borders[1], layer.output, layer.out_shape, layer.words.lower_output)):
            plain = TensorInfo(name=name.removesuffix(":upper"), shape=shape, scale=np.float32(1), zero_point=0)
            found = plane_tensors(plain) if wide else (plain,)
            tensors |= {info.name: info for info in found}
            border.append(found[0])
    return Network(name="words", layers=tuple(layers), inputs=tuple(borders[0]), outputs=tuple(borders[1]),
                   tensors=tensors)
