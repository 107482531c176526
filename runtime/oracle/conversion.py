"""Convert between the model's own inputs and outputs and the tensors of a network, as ONNX Runtime does.

A tensor of the host core that has the model's own type is handed through as it is.
"""

import numpy as np
import numpy.typing as npt

from tilewright.compiler.kernels.preparation import prepared
from tilewright.compiler.network.layers import ChannelScales, TensorInfo
from tilewright.compiler.network.operands import images_of, of_images
from tilewright.compiler.words.word_tensors import WORD_SHIFT, join_planes, split_planes

__all__ = ["as_int8", "as_type", "dequantise_output", "is_raw", "quantise_input"]

_SHIFT = 128


def quantise_input(info: TensorInfo, array: np.ndarray) -> np.ndarray:
    """Return an input of the model as the tensor that the first layers read.

    Parameters
    ----------
    info : TensorInfo
        One of ``Network.inputs``.
    array : ndarray
        Of ``info.onnx_dtype`` and ``info.onnx_shape``.

    Returns
    -------
    ndarray
        Of shape ``info.array_shape``. Of a float, after its preparation, int8: round(array / scale), halves to even,
        plus the zero point, saturated. It is a true division: multiplying by the reciprocal differs once in a million.

    Raises
    ------
    ValueError
        If type or shape is another.
    """
    array = np.asarray(array)
    if array.dtype != info.onnx_dtype or array.shape != info.onnx_shape:
        raise ValueError(f"Input {info.onnx_name!r} must be {info.onnx_dtype} of shape {info.onnx_shape}, "
                         f"not {array.dtype} of shape {array.shape}")
    if info.images > 1:
        one = info.of_image
        return of_images([quantise_input(one, each) for each in np.split(array, info.images)], info)
    if info.words:
        return _words_of(info, array)
    if is_raw(info):
        return array.astype(info.dtype, copy=False).reshape(info.array_shape)
    array = array.astype(np.float32) if array.dtype == np.float16 else array
    if array.dtype != np.float32:
        return as_int8(array).reshape(info.array_shape)
    levels = np.rint(prepared(info.preparation, array) / info.scale) + info.zero_point
    return np.clip(levels, -128, 127).astype(np.int8).reshape(info.array_shape)


def _words_of(info: TensorInfo, array: np.ndarray) -> np.ndarray:
    """Return an input of floats as planes of words of 16 bits, quantised as int8 ones are."""
    levels = np.rint(prepared(info.preparation, array.astype(np.float32)) / info.scale).astype(np.float64)
    channels, height, width = info.shape
    words = np.clip(levels + info.zero_point, -WORD_SHIFT, WORD_SHIFT - 1).astype(np.int16)
    return split_planes(words.reshape(channels, height // 2, width))


def dequantise_output(info: TensorInfo, tensor: np.ndarray) -> np.ndarray:
    """Return a tensor as the model's output.

    Parameters
    ----------
    info : TensorInfo
        One of ``Network.outputs``.
    tensor : ndarray
        Of type ``info.dtype`` and shape ``info.array_shape``.

    Returns
    -------
    ndarray
        Of ``info.onnx_dtype`` and ``info.onnx_shape``; floats are float32(tensor - zero point) · scale, of whole sums
        by channel, rounded to float16 where the model's are such.
    """
    if info.images > 1:
        one = info.of_image
        return np.concatenate([dequantise_output(one, each) for each in images_of(tensor, info)])
    if info.words:
        words = join_planes(tensor.reshape(info.array_shape)).astype(np.int32)
        floats = (words - info.zero_point).astype(np.float32) * info.scale
        return as_type(floats, np.dtype(info.onnx_dtype)).reshape(info.onnx_shape)
    if is_raw(info):
        return as_type(tensor, np.dtype(info.onnx_dtype)).reshape(info.onnx_shape)
    if info.channels is not None:
        return as_type(_scaled(info.channels, tensor.reshape(info.onnx_shape)), np.dtype(info.onnx_dtype))
    if info.onnx_dtype == "uint8":
        return (tensor.astype(np.int16) + _SHIFT).astype(np.uint8).reshape(info.onnx_shape)
    floats = (tensor.astype(np.int32) - info.zero_point).astype(np.float32) * info.scale
    return as_type(floats, np.dtype(info.onnx_dtype)).reshape(info.onnx_shape)


def as_type(array: np.ndarray, dtype: npt.DTypeLike) -> np.ndarray:
    """Return floats as float16 or float32: rounded to the nearest, and infinite beyond the range of float16."""
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def _scaled(channels: ChannelScales, sums: np.ndarray) -> np.ndarray:
    """Return float32(sum) · scale + offset of int32 sums, each operation rounded by itself."""
    found = sums.astype(np.float32) * np.array(channels.scale, np.float32).reshape(channels.shape)
    return found + np.array(channels.offset, np.float32).reshape(channels.shape) if channels.offset else found


def is_raw(info: TensorInfo) -> bool:
    """Tell whether the tensor is the model's own: not quantised, and of its type but for half floats."""
    return info.dtype == info.onnx_dtype or (info.dtype, info.onnx_dtype) == ("float32", "float16")


def as_int8(array: np.ndarray) -> np.ndarray:
    """Return integers as a network has them: int8 as they are, uint8 less 128."""
    return array if array.dtype == np.int8 else (array.astype(np.int16) - _SHIFT).astype(np.int8)
