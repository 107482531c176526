"""Layers of a machine that has no float32 scales: each scale but 1 becomes whole numbers that are proved equal.

The sums that can occur are those of all int8 inputs with the layer's weights, or of all windows of an average. The
machine takes a scale for 1 where there are no whole numbers, so layers that copy, look up or add stay as they are. A
layer whose scale has no equal is refused.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError, raise_all
from tilewright.compiler.network.layers import AnyLayer, ChannelFactor, Layer, MatrixFactor, Network
from tilewright.compiler.scales.equal_integers import Sums, equal_integers

__all__ = ["sums_of", "with_integers_alone"]

_LEVELS = 255
"""Between the least and the greatest level."""


def with_integers_alone(network: Network) -> Network:
    """Return ``network`` without float32 scales other than 1.

    Raises
    ------
    UnsupportedNodeError
        For layers with scales that no whole numbers equal.
    """
    refused: list[UnsupportedNodeError] = []
    layers: list[AnyLayer] = []
    for layer in network.layers:
        if not isinstance(layer, Layer) or not _is_scaled(layer):
            layers.append(layer)
        elif (made := _in_integers(layer)) is not None:
            layers.append(made)
        else:
            refused.append(_refusal(layer))
    raise_all(refused)
    return replace(network, layers=tuple(layers))


def _is_scaled(layer: Layer) -> bool:
    return layer.requantisation.integers is None and bool((layer.requantisation.scale != 1).any())


def _in_integers(layer: Layer) -> Layer | None:
    """Return a layer in whole numbers with the same levels; None if there are none, or a bias has too many bits."""
    sums = sums_of(layer)
    if sums is None:
        return None
    number = layer.requantisation
    found = equal_integers(number, sums, moves=layer.factor is None)
    if found is None:
        return None
    integers, moved = found
    bias = layer.bias.astype(np.int64) + moved
    if not _in_int32(replace(sums, first=sums.first + moved)):
        return None
    try:
        integers.words(bias)
    except ValueError:
        return None
    return replace(layer, bias=bias.astype(np.int32), requantisation=replace(number, integers=integers))


def sums_of(layer: Layer) -> Sums | None:
    """Return all sums that a layer can have, its biases included; None if they are computed, or leave 32 bits."""
    bias = layer.bias.astype(np.int64)
    if isinstance(layer.factor, ChannelFactor):     # (x - z) w, whose bias is computed
        bias, terms, steps = np.zeros_like(bias), np.full(bias.size, _LEVELS), np.ones_like(bias)
        first, last = bias - terms * _LEVELS, 2 * terms * _LEVELS
    elif isinstance(layer.factor, MatrixFactor):    # of (x - z) (w - z), each maybe both
        channels, _, _ = layer.in_shape
        bias, terms, steps = np.zeros_like(bias), np.full(bias.size, channels * _LEVELS), np.ones_like(bias)
        first, last = bias - terms * _LEVELS, 2 * terms * _LEVELS
    elif layer.factor is not None:
        return None
    elif layer.weights is None:
        count = layer.kernel[0] * layer.kernel[1] if layer.kind == "average" else 1
        steps = np.ones_like(bias)
        first, last = bias - 128 * count, np.full(bias.size, _LEVELS * count)
    else:
        weights = layer.weights.reshape(bias.size, -1).astype(np.int64)
        steps = np.maximum(np.gcd.reduce(weights, axis=1), 1)
        above, below = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
        first, last = bias + 127 * below - 128 * above, _LEVELS * (above - below) // steps
    sums = Sums(first, steps, last)
    return sums if _in_int32(sums) else None


def _in_int32(sums: Sums) -> bool:
    return bool(sums.first.min() >= -1 << 31 and (sums.first + sums.step * sums.last).max() < 1 << 31)


def _refusal(layer: Layer) -> UnsupportedNodeError:
    why = "whose biases are computed or leave 32 bits" if sums_of(layer) is None else \
        "which no whole numbers equal for all of them"
    return UnsupportedNodeError(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.kind,
                                f"its sums are scaled in float32, {why}, and the machine requantises in whole numbers "
                                "alone",
                                "choose one that does both, as with --machine base,integer_requantise=true, or let a "
                                ".tflite file be computed with --reference tflm")
