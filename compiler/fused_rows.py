"""Rows are rewritten behind the layer that makes them, in the result buffer, where a plan finds that cheaper.

A layer of rows alone loads what the layers before it have just stored, and sends it through the array once more. Where
nothing else reads those results, and each of their pixels has a whole row, the row unit does its work on them before
they are stored, while the array goes on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilewright.compiler.network.layers import Layer, Network, Place, TensorInfo
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.alike_layers import plan_once
from tilewright.compiler.plan.planner import DoesNotFitError, cycles_in_a_row
from tilewright.isa.machine import Machine
from tilewright.isa.rows.row_norm import RowNorm

__all__ = ["with_fused_rows"]


def with_fused_rows(network: Network, machine: Machine, options: Options) -> Network:
    """Return ``network`` with rows behind the layers that make them, where all of these can take them and it pays."""
    for rows in [layer for layer in network.layers if isinstance(layer, Layer) and layer.rows is not None]:
        network = _Fusion(network, rows, machine, options).network()
    return network


class _Fusion:
    """One layer of rows, and those that write what it reads."""

    def __init__(self, network: Network, rows: Layer, machine: Machine, options: Options) -> None:
        self.before, self.rows, self.machine, self.options = network, rows, machine, options
        self.source, self.target = (_place(network.tensors[name]) for name in (rows.input, rows.output))
        self.makers = [layer for layer in network.layers if any(
            _place(network.tensors[name]).parent == self.source.parent for name in layer.writes)]

    def network(self) -> Network:
        """Return the network with the rows fused, or as it was."""
        makers = [layer for layer in self.makers if isinstance(layer, Layer) and self._takes(layer)]
        if not makers or len(makers) < len(self.makers) or not self._alone():
            return self.before
        before = self.before.tensors
        tensors, fused = {name: info for name, info in before.items()     # the others are not made any more
                          if _place(info).parent != self.source.parent}, {}
        for maker in makers:
            info = self._moved(before[maker.output])
            tensors[info.name] = info
            fused[maker.name] = replace(maker, rows=self.rows.rows, output=info.name, exact=self.rows.exact,
                                        onnx_nodes=maker.onnx_nodes + self.rows.onnx_nodes)
        old = self._cycles(before, [*makers, self.rows])
        new = self._cycles(tensors, fused.values())
        if old is None or new is None or new >= old:
            return self.before
        layers = tuple(fused.get(layer.name, layer) for layer in self.before.layers if layer is not self.rows)
        return replace(self.before, layers=layers, tensors=tensors)

    def _alone(self) -> bool:
        """Tell whether the layer of rows alone reads what the makers write, and writes it in the same steps."""
        tensors = self.before.tensors
        seen = {info.name for info in (*self.before.inputs, *self.before.outputs)}
        readers = [layer for layer in self.before.layers for name in layer.reads if name in tensors
                   and _place(tensors[name]).parent == self.source.parent]
        same = (self.source.row_step, self.source.pixel_step) == (self.target.row_step, self.target.pixel_step)
        return same and readers == [self.rows] and self.source.parent not in seen and not any(
            _place(tensors[name]).parent == self.source.parent for name in seen)

    def _takes(self, layer: Layer) -> bool:
        """Tell whether a layer makes whole rows of bytes, and leaves table and parameters to the row unit."""
        if layer.kind not in ("conv", "pass", "average") or layer.also:
            return False
        info = self.before.tensors[layer.output]
        place, height, width = _place(info), info.shape[1], info.shape[2]
        steps = (height == 1 or place.row_step == self.source.row_step) and (
            width == 1 or place.pixel_step == self.source.pixel_step)
        idle = layer.table is None and layer.stage is None and layer.pool is None and layer.rows is None
        matrix = layer.factor is None or not isinstance(self.rows.rows, RowNorm)
        return steps and idle and matrix and layer.unit is None and not layer.whole \
            and layer.out_shape[0] == self.rows.out_shape[0] and info.images == 1

    def _moved(self, info: TensorInfo) -> TensorInfo:
        """Return where a maker's results lie as rows: as far from the rows' first as in what they were read from.

        What makes all that the rows were read from makes all that they were written to.
        """
        place, height = _place(info), info.shape[1]
        known = self.before.tensors[self.rows.output]
        if (info.name, info.shape) == (self.rows.input, known.shape):
            return known
        moved = replace(place, parent=self.target.parent, offset=place.offset - self.source.offset + self.target.offset,
                        row_step=place.row_step if height > 1 else self.target.row_step)
        return replace(known, name=f"{info.name}:as rows of {self.rows.name}", shape=info.shape, place=moved, dims=None,
                       onnx_name=None, onnx_dtype=None, onnx_shape=None)

    def _cycles(self, tensors: Mapping[str, TensorInfo], layers: Iterable[Layer]) -> int | None:
        """Return about how many cycles layers take; None if one does not fit."""
        try:
            return cycles_in_a_row([plan_once(layer, self.machine, self.options, LayerLayouts.of(layer, tensors))
                                    for layer in layers], self.machine)
        except DoesNotFitError:
            return None


def _place(info: TensorInfo) -> Place:
    """Return where a tensor lies, in itself if in no other."""
    channels, _, width = info.shape
    return info.place or Place(parent=info.name, offset=0, row_step=width * channels, pixel_step=channels)
