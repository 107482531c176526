"""Tensors in main memory element by element, as the host core sees them: strides, and arrays from and to memory.

Tensors of four dimensions lie as NHWC, or where they are part of another one as their place says; tensors of other
dimensions, and constants, lie row by row.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.compiler.network.layers import TensorInfo
from tilewright.isa.program import Operand


def tensor_operand(info: TensorInfo, address: int) -> Operand:
    """Return a tensor at ``address``; one without ``dims`` has those of ONNX, (1, channels, height, width).

    Raises
    ------
    ValueError
        If it is part of another tensor and has dimensions that cannot be told there.
    """
    dims = (1, *info.shape) if info.dims is None else info.dims
    return Operand(address, info.dtype, dims, strides_of(dims) if info.place is None else _placed_strides(info, dims))


def constant_operand(array: np.ndarray, address: int) -> Operand:
    """Return a constant at ``address``."""
    return Operand(address, array.dtype.name, array.shape, row_strides(array.shape))


def strides_of(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many elements apart neighbours of a tensor are along each dimension."""
    if len(dims) != 4:
        return row_strides(dims)
    _, channels, height, width = dims
    return height * width * channels, 1, width * channels, channels


def row_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the same of an array that lies row by row."""
    return tuple(math.prod(dims[axis + 1:]) for axis in range(len(dims)))


def _placed_strides(info: TensorInfo, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an int8 tensor that is part of another one."""
    place, (channels, height, width) = info.place, info.shape
    assert place is not None
    if len(dims) == 4 and dims[0] == 1:
        return height * place.row_step, 1, place.row_step, place.pixel_step
    if (height, width) != (1, 1) or math.prod(dims) != channels:
        raise ValueError(f"Tensor {info.name!r} in part of {place.parent!r} must have four dimensions or be a vector, "
                         f"not {dims}")
    return row_strides(dims)


def view(memory: np.ndarray, operand: Operand) -> np.ndarray:
    """Return the tensor whose first element is the first of ``memory``, an array of int8: a view."""
    if memory.size < operand.span_bytes:
        raise ValueError(f"Memory of {operand} must have {operand.span_bytes} bytes, not {memory.size}")
    elements = memory[:operand.span_bytes].view(operand.dtype)
    # A step of an axis of one does not matter.
    steps = tuple(elements.itemsize * stride if size > 1 else 0
                  for size, stride in zip(operand.dims, operand.strides, strict=True))
    return as_strided(elements, operand.dims, steps)


def to_memory(array: np.ndarray, info: TensorInfo) -> bytes:
    """Return a tensor as it lies in memory, gaps as zeros; ``array`` has the shape ``info.array_shape``."""
    operand = tensor_operand(info, 0)
    memory = np.zeros(operand.span_bytes, np.int8)
    view(memory, operand)[...] = np.asarray(array, info.dtype).reshape(operand.dims)
    return memory.tobytes()


def from_memory(content: bytes, info: TensorInfo) -> np.ndarray:
    """Return the tensor that lies in memory as ``content``, of shape ``info.array_shape``."""
    operand = tensor_operand(info, 0)
    return view(np.frombuffer(content, np.int8), operand).reshape(info.array_shape)
