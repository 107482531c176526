"""A tensor of 16 bits is one of int8 twice as high: the image of the upper bytes above that of the lower ones."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import Place, TensorInfo
from tilewright.isa.words.word_planes import planes_of, words_of

__all__ = ["WORDS", "WORD_SHIFT", "join_planes", "lower_name", "plane_tensors", "split_planes", "upper_name", "zero_of"]

WORDS = ("int16", "uint16")
"""Types of 16 bits."""

WORD_SHIFT = 32_768
"""What a uint16 is more than the int16 that stands for it."""


def zero_of(zero: int, dtype: str) -> int:
    """Return a zero point of ``dtype`` as the datapath has it."""
    return zero - WORD_SHIFT if dtype == "uint16" else zero


def upper_name(name: str) -> str:
    """Return the name of the upper bytes of a tensor of words."""
    return f"{name}:upper"


def lower_name(name: str) -> str:
    """Return the name of its lower bytes."""
    return f"{name}:lower"


def plane_tensors(words: TensorInfo) -> tuple[TensorInfo, TensorInfo, TensorInfo]:
    """Return the tensor of int8 that stands for one of words of (C, H, W), and its parts: upper and lower bytes."""
    channels, height, width = words.shape
    whole = replace(words, dtype="int8", dims=None, shape=(channels, 2 * height, width), words=True)
    parts = (TensorInfo(name=name, shape=words.shape, scale=words.scale, zero_point=0, place=Place(
        parent=words.name, offset=offset, row_step=width * channels, pixel_step=channels))
        for name, offset in ((upper_name(words.name), 0), (lower_name(words.name), channels * height * width)))
    upper, lower = parts
    return whole, upper, lower


def split_planes(words: np.ndarray) -> np.ndarray:
    """Return int16 (C, H, W) as int8 (C, 2 H, W), as `plane_tensors` has it."""
    return np.concatenate(planes_of(words), axis=1)


def join_planes(planes: np.ndarray) -> np.ndarray:
    """Return the words, int16 (C, H, W), of planes (C, 2 H, W)."""
    upper, lower = np.split(planes, 2, axis=1)
    return words_of(upper, lower)
