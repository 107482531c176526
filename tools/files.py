"""Write files completely or not at all; a full disk becomes one sentence."""

import errno
import io
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.errors import InputError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["disk_way_out", "not_written", "reason", "require_place", "write_arrays", "write_file", "write_if_changed"]

_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : ")
_SOURCE = re.compile(r"/onnxruntime_src/\S+:\d+ [^(]*\((?:[^()]|\([^()]*\))*\)\s*")
"""The prefix of ONNX Runtime's reasons: a status, and the C++ function."""


def write_file(path: Path, content: bytes) -> None:
    """Make ``path`` hold ``content``.

    A regular file is replaced in one step, so that it is never half-written; anything else, such as a device or a
    pipe, is written to.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        _replace(path, content)
    except OSError as error:
        raise InputError(not_written(f"File {str(path)!r}", error)) from error


def write_if_changed(path: Path, text: str) -> bool:
    """Make a file of the cache hold ``text``; return whether it had to be written.

    An unchanged file keeps its time of modification, so that make rebuilds nothing. The file is replaced in
    one step: another process sees the old text or the new, never half of it.
    """
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, text.encode("utf-8"))
    return True


def _replace(path: Path, content: bytes) -> None:
    """Write a draft beside ``path`` and put it in its place."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def require_place(*paths: Path | None, read: Iterable[Path | str | None] = ()) -> None:
    """Raise :exc:`InputError` if a file cannot be put at one of ``paths``, before the work that makes it.

    None of them may be a file that is ``read``, which would be written over, and no two the same file.
    """
    inputs = [Path(each) for each in read if each is not None]
    for index, path in enumerate(paths):
        if path is not None and _is_to_be_file(path) and path.resolve() in (
                each.resolve() for each in paths[:index] if each is not None):
            raise InputError(f"File {str(path)!r} is to hold two results; give one of them another name")
        if path is not None and path.is_file() and any(each.is_file() and each.samefile(path) for each in inputs):
            raise InputError(f"File {str(path)!r} is read, and must not be written over; give the result another name")
        if path is not None and path.is_dir():
            raise InputError(f"File {str(path)!r} cannot be written, because it is a folder; name a file in it")
        if path is not None and not os.access(path.parent, os.W_OK | os.X_OK):
            raise InputError(f"File {str(path)!r} cannot be written: {path.parent} must be a folder with room for it")


def _is_to_be_file(path: Path) -> bool:
    """Tell whether a result replaces what ``path`` holds: a device or a pipe takes one behind the other."""
    return path.is_file() or not path.exists()


def write_arrays(path: Path, arrays: Mapping[str, "np.ndarray"]) -> None:
    """Write an ``.npz`` of arrays by name; see :func:`write_file`."""
    from numpy.lib.format import write_array  # late, as most who write files have no arrays

    content = io.BytesIO()
    # Not np.savez: it cannot store an array whose name is one of its own parameters.
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                write_array(member, array, allow_pickle=False)
    write_file(path, content.getvalue())


def not_written(what: str, error: OSError) -> str:
    """Return the sentence that something cannot be written, and what to do where the disk is the cause."""
    return f"{what} cannot be written: {reason(error)}{disk_way_out(error)}"


def disk_way_out(error: OSError, place: str = "name a place on another disk") -> str:
    """Return what to do about a disk that is full or read only, as the end of a sentence; empty of other errors."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"; free some space, or {place}"
    return f"; {place}" if error.errno == errno.EROFS else ""


def reason(error: BaseException) -> str:
    """Return an exception's message as the end of a sentence on one line; ONNX Runtime's without its C++."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = _SOURCE.sub(" ", _STATUS.sub("", text))
    return next((line.strip().rstrip(".") for line in text.splitlines() if line.strip()), type(error).__name__)
