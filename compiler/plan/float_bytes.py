"""Floats that are a function of one byte: four value tables on the datapath give the four bytes of each float.

The host core stores a word in half the latency of memory, so a table of floats takes it at least ten cycles an element.
The datapath looks up each byte of several elements at a time, and a 1x1 convolution with one 1 per row brings the
bytes into their order: pixels of g elements, first the lowest bytes of all g, then the next, become g floats.
"""

import math
from dataclasses import replace

import numpy as np

from tilewright.compiler.kernels.language.look_up_run import FloatTable
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.kernels.staging import call_cycles
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import (
    AnyLayer,
    CoreLayer,
    Layer,
    Network,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.compiler.network.layout import layout_of
from tilewright.compiler.network.strided_views import whole_place
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.program import DTYPES, Call

__all__ = ["with_float_bytes"]

_FLOAT_BYTES = DTYPES["float32"]

_GROUPS = (4, 2, 1)
"""Elements of a pixel: of four, whose 16 bytes are one run of the array."""

_COLUMNS = 1024
"""Pixels of a row, at most; the planner cuts rows as it needs."""

_LAYERS, _ELEMENT = 500, 10
"""Cycles of five small layers and of an element, as predicted for `nano`; `base` takes three an element."""


def with_float_bytes(network: Network, machine: Machine) -> Network:
    """Return ``network`` with tables of floats on the datapath of ``machine``, where that is quicker."""
    if not machine.value_tables:
        return network
    layers: list[AnyLayer] = []
    tensors = dict(network.tensors)
    for layer in network.layers:
        table = _table(layer, network, MemoryTiming.default(machine)) if isinstance(layer, CoreLayer) else None
        if table is None:
            layers.append(layer)
            continue
        assert isinstance(layer, CoreLayer)
        made = _TableOfFloats(layer, tensors[layer.inputs[0]], tensors[layer.output])
        layers += made.layers(table)
        tensors |= {info.name: info for info in made.tensors}
    if len(layers) == len(network.layers):
        return network
    return replace(network, layers=tuple(layers), tensors=tensors)


def _table(layer: CoreLayer, network: Network, memory: MemoryTiming) -> np.ndarray | None:
    """Return the 256 float32 by ascending int8 value that ``layer`` looks up; None if it is another, or small."""
    kernel = CORE_KERNELS.get(layer.op)
    if not isinstance(kernel, FloatTable) or layer.inputs[0] not in network.tensors:
        return None
    source, target = network.tensors[layer.inputs[0]], network.tensors[layer.output]
    if target.place is not None or target.dtype != "float32" or not layout_of(source).whole:
        return None
    tensors = {name: info.of_image for name, info in network.tensors.items() if name in (source.name, target.name)}
    call = core_call(layer, tensors, network.constants)
    table = kernel.float_table(call)
    if table is None or not _is_quicker(call, target.images, memory):
        return None
    return np.roll(table, 128) if call.inputs[0].dtype == "uint8" else table


def _is_quicker(call: Call, images: int, memory: MemoryTiming) -> bool:
    """Tell whether the host core takes longer for ``images`` calls than the datapath."""
    return images * (call_cycles(call, memory) - _ELEMENT * call.output.elements) > _LAYERS


class _TableOfFloats:
    """The layers and tensors that stand for one table of floats."""

    def __init__(self, layer: CoreLayer, source: TensorInfo, target: TensorInfo) -> None:
        self.layer, self.source, self.target = layer, source, target
        count = math.prod(source.shape)
        self.group = next(size for size in _GROUPS if count % size == 0)
        pixels = count // self.group
        columns = next(size for size in range(min(_COLUMNS, pixels), 0, -1) if pixels % size == 0)
        self.size = pixels // columns, columns
        self.tensors: list[TensorInfo] = []

    def layers(self, table: np.ndarray) -> list[AnyLayer]:
        """Return the layers for a ``table`` of 256 float32."""
        levels = self._of(self.source, "levels", self._shape(1))
        planes = self._tensor(TensorInfo(name=f"{self.target.name}:planes", shape=self._shape(_FLOAT_BYTES),
                                         scale=np.float32(1), zero_point=0))
        words = self._of(self.target, "words", planes.shape)
        found: dict[bytes, Layer] = {}
        for byte, values in enumerate(np.ascontiguousarray(table, "<f4").view(np.int8).reshape(-1, _FLOAT_BYTES).T):
            part = self._plane(planes, byte)
            known = found.get(values.tobytes())
            found[values.tobytes()] = replace(known, also=(*known.also, part.name)) if known else replace(
                self._layer(f"byte {byte}", levels, part), table=values.copy())
        joined = replace(self._layer("words", planes, words), kind="conv", weights=self._order(), groups=1,
                         exact=self.layer.exact)
        return [*found.values(), joined]

    def _shape(self, elements: int) -> Shape:
        return elements * self.group, *self.size

    def _order(self) -> np.ndarray:
        """Return the weights that put byte k of element e, the channel k · g + e, to channel 4 e + k."""
        channels = _FLOAT_BYTES * self.group
        byte, element = np.divmod(np.arange(channels), self.group)
        weights = np.zeros((channels, channels, 1, 1), np.int8)
        weights[_FLOAT_BYTES * element + byte, np.arange(channels)] = 1
        return weights

    def _of(self, whole: TensorInfo, what: str, shape: Shape) -> TensorInfo:
        """Return all bytes of ``whole`` as a tensor of ``shape``."""
        start = whole.place or whole_place(whole.name, whole.shape)
        place = replace(whole_place(start.parent, shape), offset=start.offset)
        return self._tensor(TensorInfo(name=f"{self.target.name}:{what}", shape=shape, scale=whole.scale,
                                       zero_point=whole.zero_point, unsigned=whole.unsigned, place=place))

    def _plane(self, planes: TensorInfo, byte: int) -> TensorInfo:
        channels, _, columns = planes.shape
        place = Place(parent=planes.name, offset=byte * self.group, row_step=columns * channels, pixel_step=channels)
        return self._tensor(replace(planes, name=f"{planes.name}[{byte}]", shape=self._shape(1), place=place))

    def _tensor(self, info: TensorInfo) -> TensorInfo:
        self.tensors.append(info)
        return info

    def _layer(self, what: str, source: TensorInfo, target: TensorInfo) -> Layer:
        channels = target.shape[0]
        return Layer(name=f"{self.layer.name}:{what}", kind="pass", onnx_nodes=self.layer.onnx_nodes,
                     input=source.name, output=target.name, in_shape=source.shape, conv_shape=target.shape,
                     out_shape=target.shape, weights=None, bias=np.zeros(channels, np.int32), groups=channels,
                     requantisation=Requantisation(scale=np.ones(channels, np.float32), zero_point=0))
