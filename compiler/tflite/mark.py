"""The mark of a .tflite file, and the engines for one, apart from the schema's classes, which take long to import."""

from pathlib import Path
from typing import Literal

__all__ = ["ENGINES", "EngineName", "is_tflite", "names_tflite"]

EngineName = Literal["litert", "litert-reference", "tflm"]
"""Whose arithmetic a file is computed in: LiteRT's default session, its reference kernels, TensorFlow Lite Micro."""

ENGINES: tuple[EngineName, ...] = ("litert", "litert-reference", "tflm")

_MARK = slice(4, 8)


def is_tflite(content: bytes) -> bool:
    """Tell whether a file says that it is a .tflite one, by the identifier of its schema."""
    return content[_MARK] == b"TFL3"


def names_tflite(path: Path) -> bool:
    """Tell the same of a file by its path."""
    with path.open("rb") as file:
        return is_tflite(file.read(_MARK.stop))
