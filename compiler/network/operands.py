"""Tensors in main memory element by element, as the host core sees them: strides, arrays from and to memory.

Tensors of four dimensions lie as NHWC, or where they are part of another one as their place says; tensors of other
dimensions, and constants, lie row by row. In :class:`Values`, a tensor and the parts that lie in it share memory.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.isa.program import Operand

__all__ = [
    "Values", "constant_operand", "from_memory", "images_of", "of_images", "tensor_operand", "to_memory", "view",
]


def tensor_operand(info: TensorInfo, address: int) -> Operand:
    """Return a tensor at ``address``; one without ``dims`` has those of ONNX, (1, channels, height, width).

    Raises
    ------
    ValueError
        If it is part of another tensor and has dimensions that cannot be told there.
    """
    dims = (1, *info.shape) if info.dims is None else info.dims
    return Operand(address, info.dtype, dims, _strides_of(dims) if info.place is None else _placed_strides(info, dims))


def constant_operand(array: np.ndarray, address: int) -> Operand:
    """Return a constant at ``address``."""
    return Operand(address, array.dtype.name, array.shape, _row_strides(array.shape))


def _strides_of(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many elements apart neighbours of a tensor are along each dimension."""
    if len(dims) != 4:
        return _row_strides(dims)
    _, channels, height, width = dims
    return height * width * channels, 1, width * channels, channels


def _row_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
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
    return _row_strides(dims)


def view(memory: np.ndarray, operand: Operand) -> np.ndarray:
    """Return a view of ``memory``, an array of int8, as the tensor that starts at its first element."""
    if memory.size < operand.span_bytes:
        raise ValueError(f"Memory of {operand} must have {operand.span_bytes} bytes, not {memory.size}")
    elements = memory[:operand.span_bytes].view(operand.dtype)
    # A step of an axis of one does not matter.
    steps = tuple(elements.itemsize * stride if size > 1 else 0
                  for size, stride in zip(operand.dims, operand.strides, strict=True))
    return as_strided(elements, operand.dims, steps)


def images_of(array: np.ndarray, info: TensorInfo) -> list[np.ndarray]:
    """Return the images of a tensor, each of the shape ``info.of_image.array_shape``."""
    return np.split(array, info.images, axis=1 if info.dims is None else 0)


def of_images(arrays: Sequence[np.ndarray], info: TensorInfo) -> np.ndarray:
    """Return the tensor that consists of the images ``arrays``: the inverse of :func:`images_of`."""
    return np.concatenate(arrays, axis=1 if info.dims is None else 0)


def to_memory(array: np.ndarray, info: TensorInfo) -> bytes:
    """Return a tensor as it lies in memory, gaps as zeros; ``array`` has the shape ``info.array_shape``."""
    if info.images > 1:
        one = info.of_image
        parts = [to_memory(each, one) for each in images_of(array, info)]
        return b"".join(each + bytes(info.image_step - len(each)) for each in parts[:-1]) + parts[-1]
    operand = tensor_operand(info, 0)
    memory = np.zeros(operand.span_bytes, np.int8)
    view(memory, operand)[...] = np.asarray(array, info.dtype).reshape(operand.dims)
    return memory.tobytes()


def from_memory(content: bytes, info: TensorInfo) -> np.ndarray:
    """Return the tensor that lies in memory as ``content``, of shape ``info.array_shape``."""
    if info.images > 1:
        one = info.of_image
        return of_images([from_memory(content[index * info.image_step:], one) for index in range(info.images)], info)
    operand = tensor_operand(info, 0)
    return view(np.frombuffer(content, np.int8), operand).reshape(info.array_shape)


class Values(dict[str, np.ndarray]):
    """Arrays by name; of tensors that lie in one another, views of one memory, there from the start.

    What is set is copied into such memory, so that a whole is assembled of its parts, and parts are cut from it.
    """

    def __init__(self, tensors: Mapping[str, TensorInfo]) -> None:
        super().__init__()
        parts = [info for info in tensors.values() if info.place is not None]
        memories: dict[str, np.ndarray] = {}
        for info in parts:
            assert info.place is not None
            whole = tensors[info.place.parent]
            memory = memories.get(whole.name)
            if memory is None:
                memory = memories[whole.name] = np.zeros(tensor_bytes(whole), np.int8)
                self._share(whole, memory)
            self._share(info, memory[info.place.offset:])
        self.shared = frozenset(self)

    def _share(self, info: TensorInfo, memory: np.ndarray) -> None:
        found = view(memory, tensor_operand(info, 0))
        shaped = found.reshape(info.array_shape)
        if not np.shares_memory(shaped, found):
            raise ValueError(f"Tensor {info.name!r}, which lies in another or has parts, must keep its shape "
                             f"{info.shape!r} but for dimensions of 1, not have {info.array_shape!r}")
        super().__setitem__(info.name, shaped)

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        """Set a value; ``array`` may have any shape of as many elements."""
        if name in self.shared:
            self[name][...] = array.reshape(self[name].shape)
        else:
            super().__setitem__(name, array)
