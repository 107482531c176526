"""Saved answers, chunk by chunk, so that an interrupted evaluation continues where it was."""

import hashlib
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.compiler.network.layers import Layer, Network
from tilewright.errors import SimulationError
from tilewright.isa.machine import MemoryTiming
from tilewright.runtime.accuracy.answers import Answers, Column, Question, ValueEngine
from tilewright.runtime.accuracy.data_set import DataFiles
from tilewright.runtime.oracle.onnx_runtime import VERSION, settings
from tilewright.tools.files import write_arrays

__all__ = ["FinishedChunks", "question_key"]

_SOURCES = Path(__file__).resolve().parents[2]
_FOLDERS = ("isa", "compiler", "rtl", "sim", "runtime")
_SUFFIXES = (".py", ".sv", ".vlt", ".cpp", ".h", ".c", ".S", ".ld")


def question_key(question: Question, files: DataFiles) -> str:
    """Return a hash of all that answers depend on: models, images, options, and the sources that compute them."""
    digest = hashlib.sha256(files.digest().encode())
    for path in (question.model, question.float_model):
        digest.update(b"none" if path is None else hashlib.sha256(path.read_bytes()).digest())
    _add_weights(digest, question.network)
    what = (question.output, question.engine, question.options, VERSION, settings())
    digest.update(repr(what).encode())
    if question.engine is not ValueEngine.VALUES:
        timing = question.memory or MemoryTiming.default(question.machine)
        digest.update(repr((question.machine, timing)).encode())
    for folder in _FOLDERS:
        for path in sorted((_SOURCES / folder).rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(f"{path.relative_to(_SOURCES)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _add_weights(digest: "hashlib._Hash", network: Network) -> None:
    """Add the weights to a hash: those of large models lie in files beside the model's."""
    for layer in network.layers:
        if isinstance(layer, Layer) and layer.weights is not None:
            digest.update(layer.weights.tobytes())
    for name in sorted(network.constants):
        digest.update(network.constants[name].tobytes())


@dataclass(frozen=True, slots=True)
class FinishedChunks:
    """Answers of one evaluation, an ``.npz`` for each range of images.

    Attributes
    ----------
    folder : Path
        Where they are.
    """

    folder: Path

    def clear(self) -> None:
        """Forget them all."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, images: range) -> Answers | None:
        """Return the answers to a range of images, if they have been stored.

        Raises
        ------
        SimulationError
            If they are there and cannot be read.
        """
        path = self._path(images)
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            top = {column: arrays[column] for column in Column if column in arrays}
            found = Answers(top=top, equal=arrays["equal"], off=arrays["off"], cycles=arrays["cycles"])
            if len(found.top[Column.HARDWARE]) != len(images):
                raise ValueError("it has answers for another number of images")
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise SimulationError(f"Stored answers {path} cannot be read; give --fresh to evaluate again") from error
        return found

    def save(self, images: range, answers: Answers) -> None:
        """Store the answers to a range of images, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {str(column): classes for column, classes in answers.top.items()}
        write_arrays(self._path(images),
                     arrays | {"equal": answers.equal, "off": answers.off, "cycles": answers.cycles})

    def _path(self, images: range) -> Path:
        return self.folder / f"{images.start:08}-{images.stop:08}.npz"
