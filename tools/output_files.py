"""Writing results: a file is there whole or not at all, and a full disk is one sentence."""

import io
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tilewright.errors import InputError

_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : ")
_SOURCE = re.compile(r"/onnxruntime_src/\S+:\d+ [^(]*\((?:[^()]|\([^()]*\))*\)\s*")
"""What ONNX Runtime puts before its reasons: a status, and the C++ function."""


def write_file(path: Path, content: bytes) -> None:
    """Make ``path`` hold ``content``.

    A regular file is replaced in one step, so that it is never half-written; anything else, such as a device or a
    pipe, is written to.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        try:
            draft.write_bytes(content)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"File {str(path)!r} cannot be written: {reason(error)}") from error


def require_place(*paths: Path | None) -> None:
    """Raise :exc:`InputError` if a file cannot be put at one of ``paths``, before the work that makes it."""
    for path in paths:
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK)):
            raise InputError(f"File {str(path)!r} cannot be written: {path.parent} must be a folder with room for it")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an ``.npz`` of arrays by name; see :func:`write_file`."""
    content = io.BytesIO()
    # Not np.savez: it cannot store an array whose name is one of its own parameters.
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    write_file(path, content.getvalue())


def reason(error: BaseException) -> str:
    """Return what an exception says, as the end of a sentence on one line; of ONNX Runtime's, without its C++."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = _SOURCE.sub(" ", _STATUS.sub("", text))
    return next((line.strip().rstrip(".") for line in text.splitlines() if line.strip()), type(error).__name__)
