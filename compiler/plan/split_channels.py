"""Cut layers that compute channels separately into ranges of channels where the whole does not fit the machine.

A global average needs all rows of an image at once, so its tile grows with the channels. A range of them is a part of
the tensor (``TensorInfo.place``), so cutting moves no data.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Layer, Network, TensorInfo
from tilewright.compiler.network.layout import LayerLayouts, channels_of
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.plan.planner import DoesNotFitError, plan_layer
from tilewright.isa.machine import Machine

__all__ = ["split_channels"]


def split_channels(network: Network, machine: Machine, options: Options = BEST) -> Network:
    """Return ``network`` with every layer that does not fit, and has channels of its own, in as few parts as fit.

    Raises
    ------
    DoesNotFitError
        If a layer does not fit even so.
    """
    tensors = dict(network.tensors)
    layers: list[Layer | CoreLayer] = []
    for layer in network.layers:
        if isinstance(layer, CoreLayer) or _fits(layer, tensors, machine, options):
            layers.append(layer)
            continue
        parts, new = _fitting(layer, tensors, machine, options)
        layers += parts
        tensors |= new
    return replace(network, layers=tuple(layers), tensors=tensors)


def _fits(layer: Layer, tensors: dict[str, TensorInfo], machine: Machine, options: Options) -> bool:
    try:
        plan_layer(layer, machine, options, LayerLayouts.of(layer, tensors))
    except DoesNotFitError:
        return False
    return True


def _fitting(layer: Layer, tensors: dict[str, TensorInfo], machine: Machine,
             options: Options) -> tuple[list[Layer], dict[str, TensorInfo]]:
    """Return the parts of a layer and the tensors that they read and write."""
    channels, lanes = layer.conv_shape[0], machine.lanes
    if layer.groups == channels == layer.in_shape[0] and layer.factor is None:
        for count in range(2, -(-channels // lanes) + 1):
            # Whole lane groups, so that no part leaves lanes idle that the next could use.
            step = -(-channels // (count * lanes)) * lanes
            parts, new = _cut(layer, tensors, step)
            if _fits(parts[0], {**tensors, **new}, machine, options):
                return parts, new
    plan_layer(layer, machine, options, LayerLayouts.of(layer, tensors))
    raise AssertionError("a layer that does not fit raises an error")


def _cut(layer: Layer, tensors: dict[str, TensorInfo], step: int) -> tuple[list[Layer], dict[str, TensorInfo]]:
    new: dict[str, TensorInfo] = {}
    parts = []

    def part(name: str, first: int, stop: int) -> str:
        info = channels_of(tensors[name], first, stop)
        new[info.name] = info
        return info.name

    channels = layer.conv_shape[0]
    for first in range(0, channels, step):
        stop = min(first + step, channels)
        size = stop - first
        residual = layer.residual and replace(layer.residual, tensor=part(layer.residual.tensor, first, stop))
        parts.append(replace(
            layer, name=f"{layer.name}[{first}:{stop}]", input=part(layer.input, first, stop),
            output=part(layer.output, first, stop), also=tuple(part(name, first, stop) for name in layer.also),
            in_shape=(size, *layer.in_shape[1:]), conv_shape=(size, *layer.conv_shape[1:]),
            out_shape=(size, *layer.out_shape[1:]), table=_table_from(layer, first), groups=size,
            bias=layer.bias[first:stop], residual=residual,
            weights=None if layer.weights is None else layer.weights[first:stop],
            requantisation=layer.requantisation.of_channels(slice(first, stop))))
    return parts, new


def _table_from(layer: Layer, first: int) -> np.ndarray | None:
    """Return the table of a part that begins at channel ``first``: with a stage, the parameters from there on."""
    if layer.stage is None or layer.table is None:
        return layer.table
    return np.roll(layer.table, -first * layer.stage.stage.parameter_bytes)
