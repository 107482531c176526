"""The mark by which a .tflite file is known, apart from the schema's classes, which take long to import."""

from pathlib import Path

__all__ = ["is_tflite", "names_tflite"]

_MARK = slice(4, 8)


def is_tflite(content: bytes) -> bool:
    """Tell whether a file says that it is a .tflite one, by the identifier of its schema."""
    return content[_MARK] == b"TFL3"


def names_tflite(path: Path) -> bool:
    """Tell the same of a file by its path."""
    with path.open("rb") as file:
        return is_tflite(file.read(_MARK.stop))
