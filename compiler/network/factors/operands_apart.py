"""Operands of products of two vectors that one layer computes together become layers of their own.

Gates of a recurrence come out of one product of the state, and each is multiplied by something else. Computed apart,
the first is written as weights, and these are loaded, while the array works on the others.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tilewright.compiler.network.layers import AnyLayer, ChannelFactor, Layer, Network, TensorInfo
from tilewright.compiler.network.layout import channels_of, layout_of, place_of
from tilewright.compiler.network.memory_map import root_of
from tilewright.isa.machine import Machine

__all__ = ["with_operands_apart"]


def with_operands_apart(network: Network, machine: Machine) -> Network:
    """Return ``network`` with a layer for each such operand; each has whole lane groups, so nothing takes longer."""
    operands = [network.tensors[name] for layer in network.layers for name in _multiplied(layer)]
    tensors = dict(network.tensors)
    layers: list[AnyLayer] = []
    for layer in network.layers:
        borders = _borders(layer, tensors, operands) if _divisible(layer) else []
        if len(borders) < 3 or any(border % machine.lanes for border in borders):
            layers.append(layer)
            continue
        layers += (_part(layer, first, stop, tensors) for first, stop in pairwise(borders))
    return network if len(layers) == len(network.layers) else replace(network, layers=tuple(layers), tensors=tensors)


def _multiplied(layer: AnyLayer) -> tuple[str, ...]:
    """Return the operands of a product of two vectors, none of them written as weights yet; none of another layer."""
    if isinstance(layer, Layer) and isinstance(layer.factor, ChannelFactor) and not layer.factor.images \
            and layer.in_shape[1:] == (1, 1):
        return layer.input, layer.factor.tensor
    return ()


def _divisible(layer: AnyLayer) -> bool:
    """Tell whether a layer is a product of one vector by constants whose outputs can be computed in parts."""
    return isinstance(layer, Layer) and layer.weights is not None and layer.groups == 1 and layer.images == 1 \
        and layer.conv_shape[1:] == (1, 1) and layer.out_shape == layer.conv_shape and not (
            layer.pool or layer.unit or layer.stage or layer.rows or layer.also or layer.words.outputs > 1)


def _borders(layer: AnyLayer, tensors: dict[str, TensorInfo], operands: Sequence[TensorInfo]) -> list[int]:
    """Return the channels of a layer's output at which operands begin and end, and the first and last."""
    assert isinstance(layer, Layer)
    output = tensors[layer.output]
    start, stop = place_of(output).offset, place_of(output).offset + layout_of(output).span
    inside = [(place_of(each).offset, place_of(each).offset + layout_of(each).span) for each in operands
              if root_of(each) == root_of(output)]
    return sorted({border - start for first, last in (*inside, (start, stop)) if start <= first < last <= stop
                   for border in (first, last)})


def _part(layer: AnyLayer, first: int, stop: int, tensors: dict[str, TensorInfo]) -> Layer:
    """Return the layer that computes channels ``first`` to ``stop``, and add the tensors that it reads and writes."""
    assert isinstance(layer, Layer)
    assert layer.weights is not None

    def part(name: str) -> str:
        info = channels_of(tensors[name], first, stop)
        tensors[info.name] = info
        return info.name

    shape, chosen = (stop - first, 1, 1), slice(first, stop)
    return replace(
        layer, name=f"{layer.name}[{first}:{stop}]", output=part(layer.output), conv_shape=shape, out_shape=shape,
        weights=layer.weights[chosen], bias=layer.bias[chosen],
        requantisation=layer.requantisation.of_channels(chosen),
        residual=layer.residual and replace(layer.residual, tensor=part(layer.residual.tensor)))
