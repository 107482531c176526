"""A tensor of 16 bits is one of int8 twice as high: the image of the upper bytes above that of the lower ones."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.layers import Place, Shape, TensorInfo
from tilewright.isa.words.word_planes import planes_of, words_of

__all__ = [
    "WORDS", "WORD_SHIFT", "WordPart", "is_lower", "join_planes", "lower_name", "part_tensors", "plane_tensors",
    "split_planes", "upper_name", "zero_of",
]

WORDS = ("int16", "uint16")
"""Types of 16 bits."""

WORD_SHIFT = 32_768
"""A uint16 less the int16 that stands for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPart:
    """Pixels and channels of a quantised tensor that a layer reads or writes as a tensor ``name`` of its own.

    It begins at pixel (``row``, ``column``) and at ``channel``, and takes each ``row_step``-th row and each
    ``column_step``-th column from there on.
    """

    name: str
    parent: str
    shape: Shape
    row: int = 0
    column: int = 0
    channel: int = 0
    row_step: int = 1
    column_step: int = 1


def zero_of(zero: int, dtype: str) -> int:
    """Return a zero point of ``dtype`` as the datapath has it."""
    return zero - WORD_SHIFT if dtype == "uint16" else zero


def upper_name(name: str) -> str:
    """Return the name of the upper bytes of a tensor of words."""
    return f"{name}:upper"


def lower_name(name: str) -> str:
    """Return the name of its lower bytes."""
    return f"{name}:lower"


def is_lower(name: str) -> bool:
    """Return whether a tensor of that name is the lower bytes of one of words."""
    return name.endswith(lower_name(""))


def plane_tensors(words: TensorInfo) -> tuple[TensorInfo, TensorInfo, TensorInfo]:
    """Return the tensor of int8 that stands for one of words of (C, H, W), and its parts: upper and lower bytes."""
    channels, height, width = words.shape
    whole = replace(words, dtype="int8", dims=None, shape=(channels, 2 * height, width), words=True)
    parts = (TensorInfo(name=name, shape=words.shape, scale=words.scale, zero_point=0, place=Place(
        parent=words.name, offset=offset, row_step=width * channels, pixel_step=channels))
        for name, offset in ((upper_name(words.name), 0), (lower_name(words.name), channels * height * width)))
    upper, lower = parts
    return whole, upper, lower


def part_tensors(part: WordPart, whole: TensorInfo, planes: tuple[str, str]) -> tuple[TensorInfo, ...]:
    """Return the tensors of a part: upper and lower bytes, of a tensor with these ``planes``, or that of bytes."""
    channels, height, width = whole.shape
    first = (part.row * width + part.column) * channels + part.channel
    place = Place(parent=planes_holder(planes[0]) if planes[1] else planes[0], offset=first,
                  row_step=part.row_step * width * channels, pixel_step=part.column_step * channels)
    names = (upper_name(part.name), lower_name(part.name)) if planes[1] else (part.name,)
    return tuple(TensorInfo(name=name, shape=part.shape, scale=whole.scale, zero_point=0, place=replace(
        place, offset=first + number * channels * height * width)) for number, name in enumerate(names))


def planes_holder(upper: str) -> str:
    """Return the name of the tensor whose upper bytes have this name."""
    return upper.removesuffix(":upper")


def split_planes(words: np.ndarray) -> np.ndarray:
    """Return int16 (C, H, W) as int8 (C, 2 H, W), as `plane_tensors` has it."""
    return np.concatenate(planes_of(words), axis=1)


def join_planes(planes: np.ndarray) -> np.ndarray:
    """Return the words, int16 (C, H, W), of planes (C, 2 H, W)."""
    upper, lower = np.split(planes, 2, axis=1)
    return words_of(upper, lower)
