"""Tables from bytes to bytes that were left to the host core: on the datapath, whatever the rank of their tensors.

The front end makes layers of functions of images and vectors. Of other shapes, as exporters leave them between Squeeze
and Unsqueeze, a table of 256 bytes reaches the host core, at 18 cycles an element; but it asks for no shape at all.
"""

import math
from dataclasses import replace

import numpy as np

from tilewright.compiler.kernels.language.look_up_run import is_run
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, Network, Requantisation, TensorInfo
from tilewright.compiler.network.layout import layout_of
from tilewright.compiler.network.strided_views import whole_place
from tilewright.isa.machine import Machine

__all__ = ["with_flat_tables"]

_CHANNELS = (16, 8, 4, 2, 1)
_COLUMNS = 1024
"""Pixels of a row, at most; the planner cuts rows as it needs."""

_LEAST = 32
"""Elements below which a layer takes longer than the host core."""


def with_flat_tables(network: Network, machine: Machine) -> Network:
    """Return ``network`` with the tables of bytes of its core layers on the datapath of ``machine``."""
    if not machine.value_tables:
        return network
    tensors = dict(network.tensors)
    layers: list[AnyLayer] = [_on_datapath(layer, network, tensors) for layer in network.layers]
    if len(tensors) == len(network.tensors):
        return network
    return replace(network, layers=tuple(layers), tensors=tensors)


def _on_datapath(layer: AnyLayer, network: Network, tensors: dict[str, TensorInfo]) -> AnyLayer:
    """Return the layer of the datapath that stands for ``layer``, and add its tensors; or ``layer`` if none does."""
    if not isinstance(layer, CoreLayer) or layer.op != "LookUp" or layer.inputs[0] not in tensors:
        return layer
    source, target = tensors[layer.inputs[0]], tensors[layer.output]
    count = math.prod(source.shape)
    if target.dtype != "int8" or target.images > 1 or count < _LEAST \
            or not (layout_of(source).whole and layout_of(target).whole):
        return layer
    call = core_call(layer, tensors, network.constants)
    if not is_run(call):
        return layer
    table = np.array(call.attrs["table"]).astype(call.output.dtype).view(np.int8)
    channels = next(size for size in _CHANNELS if count % size == 0)
    pixels = count // channels
    columns = next(size for size in range(min(_COLUMNS, pixels), 0, -1) if pixels % size == 0)
    shape = channels, pixels // columns, columns
    names = [network.unused_name(f"{layer.name}:{what}") for what in ("levels", "results")]
    for whole, name in zip((source, target), names, strict=True):
        start = whole.place or whole_place(whole.name, whole.shape)
        tensors[name] = TensorInfo(name=name, shape=shape, scale=whole.scale, zero_point=whole.zero_point,
                                   unsigned=whole.unsigned,
                                   place=replace(whole_place(start.parent, shape), offset=start.offset))
    return Layer(name=layer.name, kind="pass", onnx_nodes=layer.onnx_nodes, input=names[0],
                 output=names[1], in_shape=shape, conv_shape=shape, out_shape=shape, weights=None,
                 bias=np.zeros(channels, np.int32), groups=channels, exact=layer.exact,
                 table=np.roll(table, 128) if source.dtype == "uint8" else table,
                 requantisation=Requantisation(scale=np.ones(channels, np.float32), zero_point=0))
