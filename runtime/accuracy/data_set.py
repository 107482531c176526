"""Labelled images: arrays of a file, mapped into memory where that is possible, checked against a model's inputs."""

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from tilewright.errors import InputError
from tilewright.runtime.oracle.inputs import UNREADABLE, NodeArg, read_arrays
from tilewright.tools.files import reason

__all__ = ["LABELS", "DataFiles", "DataSet", "ImageAxes", "read_data_set"]

LABELS = "labels"
"""The array of an input file that holds the labels, if no file of their own does."""

_HASHED_BYTES = 1 << 26
"""A larger file is told from others by its size, its time of modification and so many bytes at its ends."""

_LOCAL_HEADER = 30
"""Bytes of a ZIP archive's local file header before name and extra field (APPNOTE.TXT 4.3.7)."""


class ImageAxes(StrEnum):
    """The order of the axes of stored images."""

    MODEL = "model"
    """As the model's input has them."""

    NHWC = "nhwc"
    """Channels last, for a model whose input has them first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """The files of a data set, and how they store it.

    Attributes
    ----------
    images : Path
        ``.npz`` with an array per input of the model, or ``.npy`` for a single input; the first axis counts images.
    labels : Path or None
        ``.npy``, or ``.npz`` with one array: an integer per image. Without it, the array ``labels`` of ``images``.
    layout : ImageAxes
    """

    images: Path
    labels: Path | None = None
    layout: ImageAxes = ImageAxes.MODEL

    def digest(self) -> str:
        """Return a hash of the contents of the files.

        Raises
        ------
        InputError
            If one cannot be read.
        """
        digest = hashlib.sha256(self.layout.encode())
        for path in (self.images, self.labels):
            digest.update(b"none" if path is None else _identity(path))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class DataSet:
    """Images and their labels.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        By the model's inputs: (images, *the input's shape), of the input's type.
    labels : ndarray or None
        int64 of shape (images,): the class that each image shows.
    """

    arrays: Mapping[str, np.ndarray]
    labels: np.ndarray | None

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def feed(self, index: int) -> dict[str, np.ndarray]:
        """Return the model's inputs for one image.

        Raises
        ------
        InputError
            If it holds what is no number.
        """
        feed = {name: np.ascontiguousarray(array[index]) for name, array in self.arrays.items()}
        for name, array in feed.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(f"Input array {name!r} must hold only finite numbers, unlike image {index}")
        return feed


def read_data_set(files: DataFiles, expected: Sequence[NodeArg], classes: int) -> DataSet:
    """Return the images and labels in ``files``.

    Raises
    ------
    InputError
        If a file cannot be read, arrays have other names, types or shapes than the inputs that are ``expected``, or
        labels are not one of 0 to ``classes`` - 1 for each image.
    """
    arrays = _read(files.images, "Input")
    names = [argument.name for argument in expected]
    labels = arrays.pop(LABELS, None) if LABELS not in names else None
    if len(arrays) == len(names) == 1:
        arrays = {names[0]: next(iter(arrays.values()))}
    if set(arrays) != set(names):
        raise InputError(f"Input file {str(files.images)!r} must hold the arrays {', '.join(names)}, not "
                         f"{', '.join(arrays) or 'none'}")
    images = {argument.name: _images(argument, arrays[argument.name], files.layout) for argument in expected}
    counts = {name: len(array) for name, array in images.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
        raise InputError(f"Input arrays must all hold the same number of images; {listed}")
    if files.labels is not None:
        labels = _only_array(files.labels)
    checked = None if labels is None else _labels(labels, next(iter(counts.values())), classes)
    return DataSet(images, checked)


def _only_array(path: Path) -> np.ndarray:
    """Return the labels of a file of their own."""
    found = _read(path, "Label")
    if LABELS not in found and len(found) != 1:
        raise InputError(f"Label file {str(path)!r} must hold one array, or one named {LABELS!r}, not "
                         f"{', '.join(found) or 'none'}")
    return found[LABELS] if LABELS in found else next(iter(found.values()))


def _read(path: Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name, mapped into memory unless they are compressed."""
    if path.suffix not in (".npz", ".npy"):
        raise InputError(f"{what} file must end in .npz or .npy, not {path.name!r}")
    try:
        if path.suffix == ".npy":
            return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
        return _mapped(path) or read_arrays(path)
    except UNREADABLE as error:
        raise InputError(f"{what} file {str(path)!r} cannot be read: {reason(error)}") from error


def _mapped(path: Path) -> dict[str, np.ndarray] | None:
    """Return an archive's arrays without reading them; None if some are compressed."""
    found = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                return None
            file.seek(member.header_offset)
            header = file.read(_LOCAL_HEADER)
            lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            file.seek(member.header_offset + _LOCAL_HEADER + lengths)
            version = np.lib.format.read_magic(file)
            read_header = (np.lib.format.read_array_header_1_0 if version == (1, 0)
                           else np.lib.format.read_array_header_2_0)
            shape, fortran, dtype = read_header(file)
            if dtype.hasobject:
                raise ValueError("it holds Python objects instead of numbers")
            name = member.filename.removesuffix(".npy")
            empty = 0 in shape
            found[name] = (np.empty(shape, dtype) if empty else
                           np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C"))
    return found


def _images(argument: NodeArg, array: np.ndarray, layout: ImageAxes) -> np.ndarray:
    """Return ``array`` as (images, *shape of the input)."""
    name, shape = argument.name, argument.shape
    if array.dtype != argument.dtype:
        raise InputError(f"Input array {name!r} must be {argument.dtype}, as the model's input is, not {array.dtype}")
    batched = len(shape) > 1 and shape[0] == 1
    if layout is ImageAxes.NHWC and array.ndim == 4:
        array = array.transpose(0, 3, 1, 2)
    if batched and array.ndim == len(shape):
        array = array[:, np.newaxis]
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape:
        last = array.shape[1:]
        advice = ("; give --layout nhwc" if layout is ImageAxes.MODEL and len(shape) == 4
                  and last == (1, *shape[2:], shape[1]) else "")
        wanted = ", ".join(map(str, shape[1:] if batched else shape))
        came = (len(array), *last[1:]) if batched and array.ndim == len(shape) + 1 else array.shape
        raise InputError(f"Input array {name!r} must have the shape (images, {wanted}), not {came}{advice}")
    if not len(array):
        raise InputError(f"Input array {name!r} must hold at least one image, not none")
    return array


def _labels(labels: np.ndarray, images: int, classes: int) -> np.ndarray:
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise InputError(f"Labels must be integers, one for each image, not {labels.dtype} of shape {labels.shape}")
    if len(labels) != images:
        raise InputError(f"The number of labels must equal the number of images, {images}, not {len(labels)}")
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise InputError(f"Labels must be in 0..{classes - 1}, because the model has {classes} classes, not "
                         f"{labels[wrong[0]]}, as of image {wrong[0]}")
    return labels.astype(np.int64)


def _identity(path: Path) -> bytes:
    """Return a hash of a file's contents; of a large file's ends, size and time of modification."""
    try:
        stat = path.stat()
        if stat.st_size <= 2 * _HASHED_BYTES:
            return hashlib.sha256(path.read_bytes()).digest()
        digest = hashlib.sha256(f"{stat.st_size} {stat.st_mtime_ns}".encode())
        with open(path, "rb") as file:
            digest.update(file.read(_HASHED_BYTES))
            file.seek(-_HASHED_BYTES, 2)
            digest.update(file.read())
        return digest.digest()
    except OSError as error:
        raise InputError(f"File {str(path)!r} cannot be read: {reason(error)}") from error
