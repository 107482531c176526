"""Floats that are a function of one byte, or of the difference of two: value tables on the datapath give their bytes.

The host core stores a word in half the latency of memory, so a table of floats takes it at least ten cycles an element.
The datapath looks up each byte of the floats for several elements at a time. The planes of bytes lie in one tensor, and
a 1x1 convolution whose weights are 0 and 1 puts them in order: pixels of g elements, plane by plane, become g floats.

The difference of two bytes, by which the softmax of a row of two is looked up, has nine bits. So it is looked up in
three parts: x - y, x - y - 254 and x - y + 254, each saturated to eight bits. Each part has the entries of its own
differences and zeros elsewhere, so that the same convolution adds them up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
from tilewright.isa.machine import TILE_BYTES, Machine, MemoryTiming
from tilewright.isa.program import DTYPES

__all__ = ["with_float_bytes"]

_FLOAT_BYTES = DTYPES["float32"]

_GROUPS = (4, 2, 1)
"""Elements of a pixel: of four, whose 16 bytes are one run of the array."""

_COLUMNS = 1024
"""Pixels of a row, at most; the planner cuts rows as it needs."""

_LAYER = 120
"""Cycles of a layer besides its pixels, at most, predicted for `base` and `nano`."""

_SPLIT = 254
"""Differences from 127 on are looked up less this, those from -128 down plus this."""


@dataclass(frozen=True, slots=True, eq=False)
class _LookedUp:
    """One table of 256 floats, looked up by the level itself, or by the difference of two plus ``offset``."""

    table: np.ndarray
    offset: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Plane:
    """Byte ``byte`` of a float, or zero where another part has it: a table of 256 bytes."""

    part: _LookedUp
    byte: int
    table: np.ndarray


def with_float_bytes(network: Network, machine: Machine) -> Network:
    """Return ``network`` with tables of floats on the datapath of ``machine``, where that is quicker."""
    if not machine.value_tables:
        return network
    layers: list[AnyLayer] = []
    tensors = dict(network.tensors)
    for layer in network.layers:
        made = _table_of_floats(layer, network, machine) if isinstance(layer, CoreLayer) else None
        if made is None:
            layers.append(layer)
            continue
        layers += made.layers()
        tensors |= {info.name: info for info in made.tensors}
    if len(layers) == len(network.layers):
        return network
    return replace(network, layers=tuple(layers), tensors=tensors)


def _table_of_floats(layer: CoreLayer, network: Network, machine: Machine) -> "_TableOfFloats | None":
    """Return the layers that stand for ``layer``; None if it looks up no floats, or few."""
    kernel = CORE_KERNELS.get(layer.op)
    if not isinstance(kernel, FloatTable) or layer.inputs[0] not in network.tensors:
        return None
    if any(name and name not in network.constants for name in layer.inputs[1:]):
        return None
    source, target = network.tensors[layer.inputs[0]], network.tensors[layer.output]
    if target.place is not None or target.dtype != "float32" or not layout_of(source).whole:
        return None
    tensors = {name: info.of_image for name, info in network.tensors.items() if name in (source.name, target.name)}
    call = core_call(layer, tensors, network.constants)
    table = kernel.float_table(call)
    if table is None:
        return None
    parts = _parts_of_difference(table) if table.size > 256 else [
        _LookedUp(np.roll(table, 128) if source.dtype == "uint8" else table)]
    made = _TableOfFloats(layer, source, target, parts, network.unused_name)
    on_core = target.images * call_cycles(call, MemoryTiming.default(machine))
    return made if made.planes and made.cycles(machine) < on_core else None


def _parts_of_difference(table: np.ndarray) -> list[_LookedUp]:
    """Return three parts of a table of 511 floats by differences from -255 on."""
    middle, high, low = np.zeros((3, 256), np.float32)
    middle[1:-1] = table[255 - 127:255 + 127]
    high[1:130] = table[255 + 127:]
    low[127:255] = table[:128]
    return [_LookedUp(middle, 0), _LookedUp(high, -_SPLIT), _LookedUp(low, _SPLIT)]


class _TableOfFloats:
    """The layers and tensors that stand for one table of floats."""

    def __init__(self, layer: CoreLayer, source: TensorInfo, target: TensorInfo, parts: Sequence[_LookedUp],
                 unused_name: Callable[[str], str]) -> None:
        self.layer, self.source, self.target, self.unused_name = layer, source, target, unused_name
        count = math.prod(source.shape)
        self.group = next(size for size in _GROUPS if count % size == 0)
        pixels = count // self.group
        columns = next(size for size in range(min(_COLUMNS, pixels), 0, -1) if pixels % size == 0)
        self.size = pixels // columns, columns
        self.planes = [plane for part in parts for plane in _planes(part)]
        self.tensors: list[TensorInfo] = []

    def cycles(self, machine: Machine) -> int:
        """Estimate the cycles of all layers: of the array, then of the bus, as if neither waited for the other."""
        group, planes = self.group, len(self.planes)
        runs = -(-planes * group // TILE_BYTES)
        array = planes * -(-group // machine.lanes) + runs * -(-_FLOAT_BYTES * group // machine.lanes)
        moved = (3 * planes + _FLOAT_BYTES) * group
        return (planes + 1) * _LAYER + math.prod(self.size) * (array + moved // machine.bus_bytes)

    def layers(self) -> list[AnyLayer]:
        """Return the layers: one for each plane, and one that puts their bytes in order."""
        levels = self._of(self.source, "levels", self._shape(1))
        planes = self._tensor(TensorInfo(name=f"{self.target.name}:planes", shape=self._shape(len(self.planes)),
                                         scale=np.float32(1), zero_point=0))
        words = self._of(self.target, "words", self._shape(_FLOAT_BYTES))
        found = [self._plane(plane, index, levels, planes) for index, plane in enumerate(self.planes)]
        return [*found, replace(self._layer("words", planes, words, self._order()), exact=self.layer.exact)]

    def _plane(self, plane: _Plane, index: int, levels: TensorInfo, planes: TensorInfo) -> Layer:
        """Return the layer that writes plane number ``index``."""
        channels, _, columns = planes.shape
        place = Place(parent=planes.name, offset=index * self.group, row_step=columns * channels, pixel_step=channels)
        part = self._tensor(replace(planes, name=f"{planes.name}[{index}]", shape=self._shape(1), place=place))
        offset, weights = plane.part.offset, None
        if offset is not None:
            weights = np.eye(self.group, dtype=np.int8) - np.eye(self.group, dtype=np.int8)[np.arange(self.group) ^ 1]
        layer = self._layer(f"byte {plane.byte}" + (f", {offset:+}" if offset else ""), levels, part, weights)
        return replace(layer, table=plane.table, bias=np.full(self.group, offset or 0, np.int32))

    def _order(self) -> np.ndarray:
        """Return the weights that add byte k of element e to channel 4 e + k."""
        weights = np.zeros((_FLOAT_BYTES * self.group, len(self.planes) * self.group), np.int8)
        for index, plane in enumerate(self.planes):
            elements = np.arange(self.group)
            weights[_FLOAT_BYTES * elements + plane.byte, index * self.group + elements] = 1
        return weights

    def _shape(self, elements: int) -> Shape:
        return elements * self.group, *self.size

    def _of(self, whole: TensorInfo, what: str, shape: Shape) -> TensorInfo:
        """Return all bytes of ``whole`` as a tensor of ``shape``."""
        start = whole.place or whole_place(whole.name, whole.shape)
        place = replace(whole_place(start.parent, shape), offset=start.offset)
        return self._tensor(TensorInfo(name=f"{self.target.name}:{what}", shape=shape, scale=whole.scale,
                                       zero_point=whole.zero_point, unsigned=whole.unsigned, place=place))

    def _tensor(self, info: TensorInfo) -> TensorInfo:
        info = replace(info, name=self.unused_name(info.name))
        self.tensors.append(info)
        return info

    def _layer(self, what: str, source: TensorInfo, target: TensorInfo, weights: np.ndarray | None) -> Layer:
        """Return the layer that multiplies a pixel's channels by ``weights``, (outputs, channels), or passes them."""
        channels = target.shape[0]
        return Layer(name=f"{self.layer.name}:{what}", kind="pass" if weights is None else "conv",
                     onnx_nodes=self.layer.onnx_nodes, input=source.name, output=target.name, in_shape=source.shape,
                     conv_shape=target.shape, out_shape=target.shape,
                     weights=None if weights is None else weights[:, :, None, None],
                     bias=np.zeros(channels, np.int32), groups=channels if weights is None else 1,
                     requantisation=Requantisation(scale=np.ones(channels, np.float32), zero_point=0))


def _planes(part: _LookedUp) -> list[_Plane]:
    """Return the planes of the bytes that are not zero in all of a part's floats."""
    tables = np.ascontiguousarray(part.table, "<f4").view(np.int8).reshape(-1, _FLOAT_BYTES).T
    return [_Plane(part, byte, table.copy()) for byte, table in enumerate(tables) if table.any()]
