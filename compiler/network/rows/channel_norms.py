"""Normalisation of whole channels, or of groups of them, in layers of the datapath and a few numbers of the host core.

Rows of InstanceNormalization and GroupNormalization are images, of any length, and their elements lie apart, channel
beside channel. Two value tables make the halves of squares, the array sums up levels and halves by channel
(`compiler.kernels.levels.parameters_of_sums` takes these whole sums), and what is left of each channel is a line: a
requantisation whose bias and scale the host core writes. The line has its bias in steps of a level over the weight of
an element, so an element counts as several taps of 127.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tilewright.compiler.kernels.language.c_loops import merged
from tilewright.compiler.kernels.levels.parameters_of_sums import HALVES, LONGEST_ROW, halves_of_squares
from tilewright.compiler.kernels.operators.normalisation import RowNormalisation
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.network.layers import (
    AnyLayer,
    ComputedScale,
    CoreLayer,
    Layer,
    Network,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.compiler.network.strided_views import whole_place
from tilewright.isa.machine import SUM_BYTES, TILE_BYTES, Machine
from tilewright.isa.program import Call, Operand

__all__ = ["channel_norm"]

_KINDS = ("InstanceNormalization", "GroupNormalization")
_TAPS = 8
_LEAST = 256
"""Elements below which these layers take longer than the host core."""

_WINDOW = 32
"""Rows and columns that are summed up at a time."""


def channel_norm(layer: CoreLayer, call: Call, network: Network, tensors: dict[str, TensorInfo],
                 machine: Machine) -> tuple[list[AnyLayer], dict[str, np.ndarray]] | None:
    """Return the layers that stand for a normalisation of channels, and their constants; add their ``tensors``.

    None for what is none, and where the host core keeps it.
    """
    kind, source, target = call.attrs.get("kind"), tensors[layer.inputs[0]], tensors[layer.output]
    if kind not in _KINDS or "factors" in call.attrs or not (machine.whole_sums and machine.value_tables):
        return None
    if (call.inputs[0].dtype, call.output.dtype) != ("int8", "int8") or source.images > 1 or math.prod(
            call.inputs[0].dims) < _LEAST:
        return None
    pixels = [_pixel_step(each) for each in (call.inputs[0], call.output)]
    if None in pixels or source.shape != target.shape or source.shape[0] != call.inputs[0].dims[1]:
        return None
    found = _ChannelNorm(layer, call, (source, target), network, machine)
    return found.made(tensors) if found.refusal() is None else None


def _pixel_step(operand: Operand) -> int | None:
    """Return the bytes between pixels that lie one behind the other, of a single image; None for other tensors."""
    batch, channels, *image = operand.dims
    if batch != 1 or (channels > 1 and operand.strides[1] != 1):
        return None
    extents, (steps,) = merged(tuple(image), [operand.strides[2:]])
    return None if len(extents) > 1 else steps[0] if extents else channels


class _ChannelNorm:
    """The layers, tensors and constants of one normalisation."""

    def __init__(self, layer: CoreLayer, call: Call, ends: tuple[TensorInfo, TensorInfo], network: Network,
                 machine: Machine) -> None:
        self.layer, self.call, self.machine, self.network = layer, call, machine, network
        self.source, self.target = ends
        self.channels, height, width = self.source.shape
        self.pixels = height * width
        self.layers: list[AnyLayer] = []
        self.made_tensors: dict[str, TensorInfo] = {}
        attrs = call.attrs
        rows, axes = RowNormalisation(attrs["kind"]).rows_of(call)
        self.rows = rows.count
        each = rows.dims[1:2] if axes == (1,) else rows.dims[1:3]
        self.gains, self.shifts = (np.broadcast_to(np.array(attrs[name], np.float64).reshape(each), each).ravel()
                                   / attrs["y_scale"] for name in ("gains", "shifts"))
        self.length = rows.length
        self.extra = max(1, round(self.length**2 * attrs.get("epsilon", 1e-5) / attrs["scale_value"]**2))
        self.parts = sum(height * width for (height, width), _, _ in self._windows())

    def refusal(self) -> str | None:
        """Return why the host core's part does not take it, None if it does."""
        if not self.length <= LONGEST_ROW:
            return f"rows of up to {LONGEST_ROW} elements"
        core = self._core("", "")
        return CORE_KERNELS[core.op].refusal(Call(
            core.op, (Operand(0, "int32", (HALVES * self.parts, self.channels), ()),),
            Operand(0, "int32", (self.channels, 2), ()), core.attrs))

    def made(self, tensors: dict[str, TensorInfo]) -> tuple[list[AnyLayer], dict[str, np.ndarray]]:
        """Return all layers, and the constants; add the tensors to ``tensors``."""
        sums, parameters = (self._words(what, shape) for what, shape in (
            ("sums", (HALVES * self.parts, self.channels)), ("parameters", (self.channels, 2))))
        levels = [self.source]
        for what, table in zip(("upper squares", "lower squares"), halves_of_squares(), strict=True):
            squares = self._add(TensorInfo(name=self._name(what), shape=self.source.shape, scale=np.float32(1),
                                           zero_point=0))
            self.layers.append(replace(self._passed(what, self.source.name, squares.name, self.source.shape),
                                       table=table))
            levels.append(squares)
        for index, info in enumerate(levels):
            self._summed(index, info, sums)
        self.layers.append(self._core(sums.name, parameters.name))
        weights = self._weights()
        self.layers.append(self._line(weights.name, parameters.name))
        tensors |= self.made_tensors
        return self.layers, {weights.name: self._weight_bytes(weights)}

    def _core(self, sums: str, parameters: str) -> CoreLayer:
        attrs = {"rows": self.rows, "length": self.length, "extra": self.extra, "weight": 127 * _TAPS,
                 "gains": self.gains.tolist(), "shifts": self.shifts.tolist()}
        return CoreLayer(name=f"{self.layer.name}:parameters", onnx_nodes=self.layer.onnx_nodes, op="ParametersOfSums",
                         inputs=(sums,), output=parameters, attrs=attrs,
                         reason="means and deviations are a few numbers for each channel")

    def _windows(self) -> Iterator[tuple[tuple[int, int], tuple[int, int], int]]:
        """Yield windows that together hold all pixels: how many, their rows and columns, and the first pixel."""
        whole, first = _WINDOW * _WINDOW, 0
        if count := self.pixels // whole:
            yield (count, 1), (_WINDOW, _WINDOW), 0
            first = count * whole
        if rows := (self.pixels - first) // _WINDOW:
            yield (1, 1), (rows, _WINDOW), first
            first += rows * _WINDOW
        if left := self.pixels - first:
            yield (1, 1), (1, left), first

    def _summed(self, index: int, info: TensorInfo, sums: TensorInfo) -> None:
        """Add the layers that write the sums of one of the three tensors."""
        place = info.place or whole_place(info.name, info.shape)
        part = index * self.parts
        for (rows, columns), (height, width), first in self._windows():
            shape = self.channels, rows * height, columns * width
            source = self._add(replace(
                info, name=self._name(f"pixels {index} {first}"), shape=shape, dims=None, onnx_name=None,
                onnx_dtype=None, onnx_shape=None,
                place=Place(parent=place.parent, offset=place.offset + first * place.pixel_step,
                            row_step=width * place.pixel_step, pixel_step=place.pixel_step)))
            size = SUM_BYTES * self.channels
            target = self._add(TensorInfo(
                name=self._name(f"sums {index} {first}"), shape=(size, rows, columns), scale=np.float32(1),
                zero_point=0, place=Place(parent=sums.name, offset=part * size, row_step=columns * size,
                                          pixel_step=size)))
            part += rows * columns
            passed = self._passed(f"sums {index} {first}", source.name, target.name, shape)
            self.layers.append(replace(
                passed, kind="average", conv_shape=(self.channels, rows, columns), out_shape=target.shape,
                kernel=(height, width), strides=(height, width), whole=True))

    def _line(self, weights: str, parameters: str) -> Layer:
        attrs = self.call.attrs
        layer = self._passed("", self.source.name, self.target.name, self.source.shape)
        how = Requantisation(scale=np.ones(self.channels, np.float32), zero_point=attrs["y_zero_point"],
                             low=max(-128, int(attrs.get("low", -128))))
        factor = ComputedScale(tensor=parameters, weights=weights, taps=_TAPS,
                               negative=tuple((self.gains < 0).tolist()))
        return replace(layer, name=self.layer.name, kind="conv", kernel=(1, _TAPS), dilations=(1, 0), factor=factor,
                       requantisation=how, exact=self.layer.exact)

    def _passed(self, what: str, source: str, target: str, shape: Shape) -> Layer:
        return Layer(name=f"{self.layer.name}:{what}", kind="pass", onnx_nodes=self.layer.onnx_nodes, input=source,
                     output=target, in_shape=shape, conv_shape=shape, out_shape=shape, weights=None,
                     bias=np.zeros(shape[0], np.int32), groups=shape[0],
                     requantisation=Requantisation(scale=np.ones(shape[0], np.float32), zero_point=0))

    def _runs(self) -> int:
        """Return the runs that hold a byte of every channel of a lane group, of which there may be fewer than lanes."""
        return -(-min(self.channels, self.machine.lanes) // TILE_BYTES)

    def _weights(self) -> TensorInfo:
        """Return the tensor of the words of every lane group, a row each."""
        groups = -(-self.channels // self.machine.lanes)
        size = TILE_BYTES * _TAPS * self._runs() * self.machine.lanes
        return self._add(TensorInfo(name=self._name("weights"), shape=(size, groups, 1), scale=np.float32(1),
                                    zero_point=0))

    def _weight_bytes(self, info: TensorInfo) -> np.ndarray:
        """Return the weights as they lie in memory: of each lane's words, one byte a tap is not zero."""
        machine, (size, groups, _) = self.machine, info.shape
        each, clusters = machine.lanes_per_cluster, machine.clusters
        words = np.zeros((groups, size), np.int8)
        for channel in range(self.channels):
            group, lane = divmod(channel, machine.lanes)
            cluster, inner = divmod(lane, each)
            run, place = divmod(lane, TILE_BYTES)
            for tap in range(_TAPS):
                step = tap * self._runs() + run
                words[group, ((step * each + inner) * clusters + cluster) * TILE_BYTES + place] = \
                    -127 if self.gains[channel] < 0 else 127
        return words.reshape(groups, 1, size)

    def _words(self, what: str, dims: tuple[int, int]) -> TensorInfo:
        """Add a tensor of int32."""
        return self._add(TensorInfo(name=self._name(what), shape=(math.prod(dims), 1, 1), scale=np.float32(1),
                                    zero_point=0, dtype="int32", dims=dims))

    def _add(self, info: TensorInfo) -> TensorInfo:
        self.made_tensors[info.name] = info
        return info

    def _name(self, what: str) -> str:
        return self.network.unused_name(f"{self.layer.name}:{what}")
