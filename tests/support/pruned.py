"""Networks with channels that do nothing: all weights of some outputs are zero, or nothing weighs them."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import Layer, Network

__all__ = ["pruned"]


def pruned(rng: np.random.Generator, network: Network, share: float = 0.5) -> Network:
    """Return ``network`` with about ``share`` of the channels of its convolutions pruned, as outputs or as inputs.

    The bias of an output is kept, zero, or such that the result is what the next layer pads with.
    """
    return replace(network, layers=tuple(_pruned(rng, layer, network, share) if isinstance(layer, Layer) else layer
                                         for layer in network.layers))


def _pruned(rng: np.random.Generator, layer: Layer, network: Network, share: float) -> Layer:
    if layer.weights is None or rng.random() < 0.2:
        return layer
    weights, bias = layer.weights.copy(), layer.bias.copy()
    outputs = rng.random(len(weights)) < share
    weights[outputs] = 0
    kind = rng.integers(3)
    pads = [each.pad_value for each in network.layers if isinstance(each, Layer) and each.input == layer.output]
    if kind == 1:
        bias[outputs] = 0
    elif kind == 2 and pads:
        wanted = (pads[0] - layer.requantisation.zero_point) / layer.requantisation.scale[outputs].astype(np.float64)
        bias[outputs] = np.clip(np.rint(wanted), -2**31, 2**31 - 1).astype(np.int32)
    if rng.random() < 0.5:
        weights[:, rng.random(weights.shape[1]) < share / 2] = 0
    return replace(layer, weights=weights, bias=bias)
