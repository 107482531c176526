"""The inputs of a model: read from a file and checked against the model, or generated if there is none."""

import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tilewright.compiler.kernels.preparation import unprepared
from tilewright.compiler.network.layers import TensorInfo, UnreadInput
from tilewright.errors import InputError
from tilewright.models import data
from tilewright.models.images import images
from tilewright.runtime.execution.job import BORDER_TYPES
from tilewright.runtime.oracle.conversion import as_type
from tilewright.tools.files import reason

__all__ = [
    "MAX_FILE_BYTES", "ONNX_TYPES", "UNREADABLE", "Inputs", "NodeArg", "check_inputs", "digit", "node_arg",
    "node_args", "picture", "random_inputs", "read_arrays", "read_inputs", "safely",
]

MAX_FILE_BYTES = 2**30
"""Limit of an input file and of what a compressed one expands to."""

ONNX_TYPES = {name: f"tensor({name})" for name in BORDER_TYPES} | {"float32": "tensor(float)"}
"""ONNX Runtime's names of the types that inputs and outputs can have."""

_SEED = 0
_PICTURE_SEED = 1
UNREADABLE = (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""Errors that a file without arrays can raise."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model: name, shape with the batch, and ONNX Runtime's name of its type."""

    name: str
    shape: tuple[int, ...]
    type: str

    @property
    def dtype(self) -> np.dtype:
        """The type as NumPy has it."""
        return np.dtype({kind: dtype for dtype, kind in ONNX_TYPES.items()}[self.type])


def node_args(tensors: Sequence[TensorInfo], unread: Sequence[UnreadInput] = ()) -> list[NodeArg]:
    """Return the model's inputs that belong to ``Network.inputs``, each once, and those that are ``unread``; in order.

    Or its outputs, those of ``Network.outputs``.
    """
    found = list({argument.name: argument for argument in map(node_arg, tensors)}.values())
    for each in sorted(unread, key=lambda each: each.position):
        found.insert(each.position, NodeArg(each.name, each.shape, ONNX_TYPES[each.dtype]))
    return found


def node_arg(tensor: TensorInfo) -> NodeArg:
    """Return the model's input or output that ``tensor`` stands for."""
    if tensor.onnx_name is None or tensor.onnx_dtype is None or tensor.onnx_shape is None:
        raise ValueError(f"Tensor {tensor.name!r} must be an input or output of the model, and is neither")
    return NodeArg(tensor.onnx_name, tensor.onnx_shape, ONNX_TYPES[tensor.onnx_dtype])


def check_inputs(inputs: Mapping[str, np.ndarray], expected: Sequence[NodeArg],
                 unquantised: Collection[str] = (), unread: Collection[str] = (),
                 defaults: Collection[str] = ()) -> None:
    """Raise :exc:`InputError` unless ``inputs`` are those that are ``expected``, of the right types and shapes.

    NaN may only stand in those that are ``unquantised``, by their names; those ``unread`` may be left out. Those with
    ``defaults`` are constants, and cannot be given.
    """
    names = [argument.name for argument in expected]
    if fixed := [name for name in inputs if name in defaults]:
        raise InputError(f"Input {fixed[0]!r} has a default in the model, which is compiled in as a constant, and "
                         "cannot be given; leave it out, or delete its initializer from the model, so that it must "
                         "be given")
    if not set(names) - set(unread) <= set(inputs) <= set(names):
        raise InputError(f"Inputs must be {', '.join(names) or 'none'}, not {', '.join(inputs) or 'none'}")
    for argument in expected:
        if argument.name not in inputs:
            continue
        array = np.asarray(inputs[argument.name])
        if array.dtype != argument.dtype or array.shape != argument.shape:
            raise InputError(f"Input {argument.name!r} must be {argument.dtype} of shape {argument.shape}, "
                             f"not {array.dtype} of shape {array.shape}")
        if argument.name not in unquantised and np.isnan(array).any():
            place = tuple(map(int, np.argwhere(np.isnan(array))[0]))
            raise InputError(f"Input {argument.name!r} must hold numbers, not NaN, as at index {place}")


def safely(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return ``array`` with another type where each number stays the one that it is; as it is where that cannot be.

    Floats become float32 by rounding to its digits, integers any type that holds them all, and so do truth values.
    """
    if array.dtype == dtype or array.dtype.kind not in "fiub" or dtype.kind not in "fiu":
        return array
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):    # it becomes infinite, which is looked for
            return array.astype(dtype) if dtype.kind == "f" else array
    least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
    if dtype.kind == "f":
        held = max(-least, most) <= 2 ** (np.finfo(dtype).nmant + 1)
    else:
        held = np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max
    return array.astype(dtype) if held else array


def read_inputs(path: Path, expected: Sequence[NodeArg], unread: Collection[str] = (),
                defaults: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return the inputs in an ``.npz`` file (arrays by name) or, for a model with one input, an ``.npy`` file.

    ``unread`` and ``defaults`` are as for :func:`check_inputs`. Numbers of another type become those of the model where
    none changes (:func:`safely`).

    Raises
    ------
    InputError
        If the file cannot be read, or does not hold what is ``expected``.
    """
    if path.suffix not in (".npz", ".npy"):
        raise InputError(f"Input file must end in .npz or .npy, not {path.name!r}")
    read = [argument for argument in expected if argument.name not in unread]
    if path.suffix == ".npy" and len(read) != 1:
        names = ", ".join(argument.name for argument in read)
        raise InputError(f"Input file must be an .npz with the arrays {names}, not {path.name!r}: an .npy holds one")
    try:
        inputs = read_arrays(path)
    except UNREADABLE as error:
        raise InputError(f"Input file {str(path)!r} cannot be read: {reason(error)}") from error
    if path.suffix == ".npy":
        inputs = {read[0].name: next(iter(inputs.values()))}
    types = {argument.name: argument.dtype for argument in expected}
    inputs = {name: safely(array, types.get(name, array.dtype)) for name, array in inputs.items()}
    check_inputs(inputs, expected, unread=unread, defaults=defaults)
    return inputs


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` file by name, or the one of an ``.npy`` file; raises one of ``UNREADABLE``."""
    _check_size(path)
    with open(path, "rb") as file:
        if path.suffix == ".npy":
            return {path.stem: np.lib.format.read_array(file, allow_pickle=False)}
        return _read_archive(file)


def _read_archive(file: BinaryIO) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:
        found = {}
        for name in archive.namelist():
            with archive.open(name) as member:
                found[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
        return found


def _check_size(path: Path) -> None:
    size = path.stat().st_size
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    if size > MAX_FILE_BYTES:
        raise ValueError(f"it must hold at most {MAX_FILE_BYTES} bytes, not {size}")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arrays by input name, and in a few words where they are from."""

    arrays: dict[str, np.ndarray]
    origin: str


def digit(expected: Sequence[NodeArg]) -> Inputs:
    """Return the first committed handwritten digit, for the built-in models."""
    digits, count = data.samples(), expected[0].shape[0]
    if count > 1:
        return Inputs({expected[0].name: digits.images[np.arange(count) % len(digits.images)]},
                      f"the first {count} digits of models/{data.SAMPLES_FILE.name}, in turn if there are fewer")
    return Inputs({expected[0].name: digits.images[:1]},
                  f"digit 0 of models/{data.SAMPLES_FILE.name}, a handwritten {digits.labels[0]}")


def picture(expected: Sequence[NodeArg]) -> Inputs:
    """Return an image like those that the large built-in models are calibrated on, and none of them."""
    count, side = expected[0].shape[0], expected[0].shape[-1]
    said = "image" if count == 1 else f"{count} images"
    return Inputs({expected[0].name: images(count, side, _PICTURE_SEED)},
                  f"{said} of {side}×{side} with a natural spectrum, seed {_PICTURE_SEED}")


def random_inputs(tensors: Sequence[TensorInfo]) -> Inputs:
    """Return seeded random values for each of ``Network.inputs``.

    They use the whole quantised range; floats that are not quantised are normal, other numbers of 0..127.
    """
    rng = np.random.default_rng(_SEED)
    arrays: dict[str, np.ndarray] = {}
    for tensor in tensors:
        argument = node_arg(tensor)
        if tensor.dtype != "int8":
            shape, floats = argument.shape, tensor.dtype == "float32"
            drawn = rng.normal(size=shape) if floats else rng.integers(0, np.iinfo(np.int8).max, shape)
            arrays[argument.name] = np.asarray(drawn, argument.dtype)
            continue
        levels = rng.integers(-128, 128, argument.shape)
        if argument.dtype in (np.float32, np.float16):
            numbers = ((levels - tensor.zero_point) * tensor.scale).astype(np.float32)
            arrays[argument.name] = as_type(unprepared(tensor.preparation, numbers), argument.dtype)
        else:
            arrays[argument.name] = (levels + 128 + np.iinfo(argument.dtype).min).astype(argument.dtype)
    return Inputs(arrays, f"random values over the quantised range, seed {_SEED}")
