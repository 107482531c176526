"""Weights and channel parameters as the baseline's C kernels read them: packed in the order of their loops."""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.network.layers import Layer, Requantisation, Shape
from tilewright.isa.numerics import MANTISSA_BITS, pack_scale

__all__ = [
    "Receptive", "block_shape", "channel_table", "common_shift", "packed_weights", "padded_shape", "receptive_field",
    "uses_simd",
]

_SPARE_BITS = 31 - MANTISSA_BITS
"""By how much a scale's mantissa can be shifted to the left in 31 bits."""


@dataclass(frozen=True, slots=True)
class Receptive:
    """The receptive field of an output pixel: ``rows`` times ``runs`` runs of ``bytes`` contiguous bytes."""

    rows: int
    row_step: int
    runs: int
    run_step: int
    bytes: int


def padded_shape(layer: Layer) -> Shape:
    """Return the shape of a layer's input with its padding."""
    channels, height, width = layer.in_shape
    top, left, bottom, right = layer.pads
    return channels, top + height + bottom, left + width + right


def receptive_field(layer: Layer) -> Receptive:
    """Return how a convolution reads its padded input: in the longest runs there are.

    Without dilation a kernel row is one run; where it is as wide as the input too, all rows together are.
    """
    channels, _, width = padded_shape(layer)
    (kernel_y, kernel_x), (dilation_y, dilation_x) = layer.kernel, layer.dilations
    line = width * channels
    if layer.groups > 1 or dilation_x > 1:
        return Receptive(kernel_y, dilation_y * line, kernel_x, dilation_x * channels, channels // layer.groups)
    if kernel_x == width and dilation_y == 1:
        return Receptive(1, 0, 1, 0, kernel_y * line)
    return Receptive(kernel_y, dilation_y * line, 1, 0, kernel_x * channels)


def uses_simd(layer: Layer) -> bool:
    """Return whether XPULP computes a layer's sums four products at a time: convolutions of one group, of int8."""
    return layer.kind == "conv" and layer.groups == 1 and (layer.weights is None or layer.weights.itemsize == 1)


def block_shape(layer: Layer, *, xpulp: bool = False) -> tuple[int, int]:
    """Return how many neighbouring pixels and output channels are computed at a time.

    Their sums, one activation per pixel and one weight per channel must fit into 31 registers, with pointers and
    a counter. The shapes are the fastest of those tried on the simulated cores.
    """
    outputs, _, width = layer.conv_shape
    outputs //= layer.groups
    if width == 1:
        return 1, min(outputs, 8)
    if xpulp and uses_simd(layer):
        return min(width, 4), min(outputs, 4)
    return 3 if width % 3 == 0 else 2, min(outputs, 4)


def packed_weights(layer: Layer, *, xpulp: bool = False) -> bytes:
    """Return a layer's weights in the order in which a convolution uses them.

    Blocks of output channels in order; in each, for every byte of the receptive field, one weight per channel. With
    SIMD, for every word of it, and zeros where a run ends within a word.
    """
    if layer.weights is None:
        return b""
    outputs, size = layer.weights.shape[0], 1
    terms = layer.weights.transpose(0, 2, 3, 1).reshape(outputs, -1)  # (O, kernel height · kernel width · C / groups)
    if xpulp and uses_simd(layer):
        run, size = receptive_field(layer).bytes, 4
        terms = np.pad(terms.reshape(outputs, -1, run), ((0, 0), (0, 0), (0, -run % size))).reshape(outputs, -1)
    per_group, block = outputs // layer.groups, block_shape(layer, xpulp=xpulp)[1]
    blocks = (terms[first + start:first + min(start + block, per_group)]
              for first in range(0, outputs, per_group) for start in range(0, per_group, block))
    return b"".join(each.reshape(len(each), -1, size).swapaxes(0, 1).tobytes() for each in blocks)


def common_shift(parameters: Requantisation) -> int | None:
    """Return the shift that all of a layer's scales have as ``mantissa * 2**-shift`` with 31 bits for the mantissa.

    None if the largest scale is so much larger than the smallest that 31 bits do not hold both mantissas.
    """
    shifts = [pack_scale(float(scale))[1] for scale in parameters.scale]
    return min(shifts) + _SPARE_BITS if max(shifts) - min(shifts) <= _SPARE_BITS else None


def channel_table(layer: Layer) -> bytes:
    """Return a layer's ``struct channel`` for each output channel: bias, mantissa, shift; or multiplier and addend."""
    table = np.empty((len(layer.bias), 3), "<u4")
    table[:, 0] = layer.bias.astype(np.int32).view(np.uint32)
    if (integers := layer.requantisation.integers) is not None:
        table[:, 1], table[:, 2] = integers.in_c[:2]
        return table.tobytes()
    common = common_shift(layer.requantisation)
    for row, scale in zip(table, layer.requantisation.scale, strict=True):
        mantissa, shift = pack_scale(float(scale))
        wanted = common or shift + _SPARE_BITS
        row[1:] = mantissa << wanted - shift, wanted
    return table.tobytes()
