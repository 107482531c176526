"""A matrix that the array itself transposes on its way to the weights, so that no byte is moved alone.

The front end transposes the values of an attention by a copy of single bytes. Where only products of matrices read the
copy, the rows that it reads become weights instead, and constant pixels choose elements of them: the sum of pixel j and
output t is element j of row t, so the outputs are columns. Every second one of the 16 weights of a word is zero, since
arrays of inner products add products of neighbours.

One lane group of the product holds the columns that a pixel for each lane of a cluster, and a word for each cluster,
give. One more layer puts these results in the order of the product's weights.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.network.layers import AnyLayer, Layer, MatrixFactor, TensorInfo
from tilewright.compiler.network.layout import layout_of
from tilewright.compiler.network.memory_map import root_of
from tilewright.isa.machine import TILE_BYTES, Machine

__all__ = ["Turned", "can_turn", "identity_pixels", "in_columns", "spread", "turned_copies", "turned_from"]


@dataclass(frozen=True, slots=True)
class Turned:
    """Place of the rows that become a matrix's columns: the first byte, and bytes from a row to the next."""

    parent: str
    offset: int
    pitch: int


def can_turn(machine: Machine) -> bool:
    """Tell whether that takes less than single bytes: of 16 weights, as many are used as a cluster has lanes."""
    return machine.lanes_per_cluster >= TILE_BYTES // 4


def turned_copies(layers: Sequence[AnyLayer], tensors: Mapping[str, TensorInfo], kept: Iterable[str],
                  ) -> dict[str, tuple[Layer, ...]]:
    """Return, by the tensor that they write, the copies that transpose for products of matrices alone.

    ``kept`` are tensors that others see.
    """
    copies: dict[str, list[Layer]] = {}
    others = {root_of(tensors[name]) for name in kept}
    for layer in layers:
        if isinstance(layer, Layer) and _turns(layer, tensors):
            copies.setdefault(root_of(tensors[layer.output]), []).append(layer)
        else:
            others |= {root_of(tensors[name]) for name in layer.writes}
        others |= {root_of(tensors[name]) for name in layer.reads if name in tensors and not _is_matrix(name, layer)}
    found = {name: tuple(each) for name, each in copies.items() if name not in others}
    for layer in layers:
        if isinstance(layer, Layer) and isinstance(layer.factor, MatrixFactor):
            matrix = tensors[layer.factor.tensor]
            if turned_from(matrix, found, tensors) is None:
                found.pop(root_of(matrix), None)
    return found


def turned_from(matrix: TensorInfo, copies: Mapping[str, Iterable[Layer]], tensors: Mapping[str, TensorInfo],
                ) -> Turned | None:
    """Return where one of ``copies`` reads the columns that are ``matrix``; None if none reads them all."""
    inputs, _, outputs = matrix.shape
    for copy in copies.get(root_of(matrix), ()):
        source, target = layout_of(tensors[copy.input]), layout_of(tensors[copy.output])
        _, rows, columns = copy.out_shape
        first, byte = divmod(_offset(matrix) - _offset(tensors[copy.output]), target.row_step)
        if (byte, columns) == (0, inputs) and 0 <= first <= rows - outputs and (
                outputs == 1 or layout_of(matrix).pixel_step == target.row_step):
            read = tensors[copy.input]
            return Turned(root_of(read), _offset(read) + first, source.pixel_step)
    return None


def _is_matrix(name: str, layer: AnyLayer) -> bool:
    return isinstance(layer, Layer) and isinstance(layer.factor, MatrixFactor) and name == layer.factor.tensor


def _turns(layer: Layer, tensors: Mapping[str, TensorInfo]) -> bool:
    """Tell whether a layer copies columns to rows, byte by byte."""
    plain = layer.kind == "pass" and layer.in_shape == layer.out_shape and not (
        layer.also or layer.residual or layer.rows or layer.pool or layer.unit or layer.stage) and layer.table is None
    number = layer.requantisation
    same = (number.zero_point, number.low, number.high, number.integers) == (0, -128, 127, None) \
        and bool((number.scale == 1).all()) and not layer.bias.any()
    source, target = tensors[layer.input], tensors[layer.output]
    return plain and same and layer.in_shape[0] == 1 and source.images == 1 \
        and layout_of(source).row_step == 1 and layout_of(target).pixel_step == 1


def _offset(info: TensorInfo) -> int:
    return 0 if info.place is None else info.place.offset


def _step(machine: Machine) -> int:
    """Return the weights from an element of a word to the next."""
    return 2 if machine.inner else 1


def identity_pixels(machine: Machine) -> np.ndarray:
    """Return the pixels that choose an element each, int8 of (16, 1, lanes of a cluster)."""
    pixels = np.zeros((TILE_BYTES, 1, machine.lanes_per_cluster), np.int8)
    for lane in range(machine.lanes_per_cluster):
        pixels[_step(machine) * lane, 0, lane] = 1
    return pixels


def spread(elements: int, machine: Machine) -> np.ndarray:
    """Return weights, (bytes of a word for each cluster, elements), that put ``elements`` of a row into these words."""
    weights = np.zeros((TILE_BYTES * machine.clusters, elements), np.int8)
    for element in range(elements):
        cluster, lane = divmod(element, machine.lanes_per_cluster)
        weights[TILE_BYTES * cluster + _step(machine) * lane, element] = 1
    return weights


def in_columns(machine: Machine) -> np.ndarray:
    """Return weights that put 16 outputs of each cluster in order, as words of the product.

    Outputs of a lane group are those of one cluster behind those of the other.
    """
    lanes, clusters = machine.lanes_per_cluster, machine.clusters
    order = np.arange(TILE_BYTES * clusters).reshape(TILE_BYTES // lanes, clusters, lanes).transpose(1, 0, 2)
    return np.eye(TILE_BYTES * clusters, dtype=np.int8)[order.reshape(-1)]
