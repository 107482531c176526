"""Constants of which a .tflite file keeps only the elements, or blocks of them, that are not zero, made whole.

Each dimension that is traversed has either every place, or the places that the file lists for each place before it
(rows of compressed indices). Blocks are further dimensions, within those of the tensor. Source: TensorFlow Lite's
``SparsityParameters`` in schema.fbs and ``FormatConverter`` in kernels/internal/utils/sparsity_format_converter.cc.
"""

import math
from typing import Any

import numpy as np
import tflite

from tilewright.errors import Error

__all__ = ["SparsityError", "dense"]

_LISTED = tflite.DimensionType.SPARSE_CSR
_VECTORS = {getattr(tflite.SparseIndexVector, name): getattr(tflite, name)
            for name in ("Int32Vector", "Uint16Vector", "Uint8Vector")}


class SparsityError(Error):
    """A file contradicts itself in a sparse tensor."""


def dense(sparsity: Any, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the whole tensor of some stored elements.

    Parameters
    ----------
    sparsity : tflite.SparsityParameters
        What the file says of the places.
    values : ndarray
        The stored elements, in the order of the traversal.
    shape : tuple of int
        Of the whole tensor; its size is checked before.

    Raises
    ------
    SparsityError
        If the places are not within the tensor, or are not as many as the elements.
    """
    order = [int(sparsity.TraversalOrder(each)) for each in range(sparsity.TraversalOrderLength())]
    blocked = [int(sparsity.BlockMap(each)) for each in range(sparsity.BlockMapLength())]
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocked))) or sparsity.DimMetadataLength() != len(order) \
            or len(set(blocked)) != len(blocked) or not all(0 <= each < rank for each in blocked):
        raise SparsityError(f"it traverses {order} of {rank} axes, with blocks of {blocked}")
    places = _places([sparsity.DimMetadata(level) for level in range(len(order))], math.prod(shape))
    if places.shape[1] != values.size:
        raise SparsityError(f"it lists {places.shape[1]} places for {values.size} elements")
    along = places[np.argsort(order)]
    for place, axis in enumerate(blocked):
        extent = int(sparsity.DimMetadata(order.index(rank + place)).DenseSize())
        along[axis] = along[axis] * extent + along[rank + place]
    if any(found.size and not 0 <= found.min() <= found.max() < extent
           for found, extent in zip(along[:rank], shape, strict=True)):
        raise SparsityError("a place lies outside of it")
    whole = np.zeros(shape, values.dtype)
    whole[tuple(along[:rank])] = values
    return whole


def _places(levels: list[Any], most: int) -> np.ndarray:
    """Return the index of each stored element along each level (levels, elements)."""
    found = np.zeros((0, 1), np.int64)
    node = np.zeros(1, np.int64)
    for level in levels:
        if level.Format() == _LISTED:
            starts, listed = (_numbers(level, what) for what in ("ArraySegments", "ArrayIndices"))
            if node.size and node.max() + 1 >= starts.size:
                raise SparsityError(f"it has {starts.size} segments for {node.max() + 1} places")
            first, counts = starts[node], starts[node + 1] - starts[node]
            if (counts < 0).any() or (first < 0).any() or (first + counts > listed.size).any():
                raise SparsityError("its segments lie outside of its indices")
        else:
            first, counts = node * level.DenseSize(), np.full(node.size, level.DenseSize(), np.int64)
            listed = None
        if (counts < 0).any() or counts.sum() > most:
            raise SparsityError(f"it lists more than {most} places")
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        node = np.repeat(first, counts) + within
        found = np.vstack([np.repeat(found, counts, axis=1), within if listed is None else listed[node]])
    return found


def _numbers(level: Any, what: str) -> np.ndarray:
    """Return one of a level's lists, which the schema has in three widths."""
    stored, kind = getattr(level, what)(), getattr(level, f"{what}Type")()
    if stored is None or kind not in _VECTORS:
        raise SparsityError(f"its {what} are missing")
    vector = _VECTORS[kind]()
    vector.Init(stored.Bytes, stored.Pos)
    return np.asarray(vector.ValuesAsNumpy() if vector.ValuesLength() else [], np.int64)
