"""A float model that was quantised here: its file, its origin, and the source of its ranges."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.tools.toolchain import cache_folder

__all__ = ["METADATA_KEY", "Quantised", "RangesKind", "RangesOrigin", "facts_of", "quantised_files", "quantised_here"]

METADATA_KEY = "tilewright.calibration"
"""The key of an ONNX file's metadata under which :class:`RangesOrigin` is kept."""


class RangesKind(StrEnum):
    """The kind of values that ranges were measured on."""

    SAMPLES = "samples"
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class RangesOrigin:
    """The values that the ranges of a model were measured on: their kind, how many samples, and from where."""

    kind: RangesKind
    samples: int
    source: str

    @property
    def sentence(self) -> str:
        """The origin as reports state it."""
        said = f"{self.samples} samples of {self.source}"
        if self.kind is RangesKind.NOISE:
            return (f"QUICK LOOK: ranges come from noise ({said}), not from data, so accuracy means nothing; give "
                    "--calibrate FILE for real ranges")
        return f"quantised here, ranges from {said}"

    def to_text(self) -> str:
        """Return the origin as an ONNX file's metadata hold it."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> "RangesOrigin | None":
        """Return the origin that an ONNX file's metadata state; None if they are not ours."""
        try:
            found = json.loads(text)
            return cls(RangesKind(found["kind"]), int(found["samples"]), str(found["source"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Quantised:
    """A float model quantised here.

    Attributes
    ----------
    model : Path
        The int8 model.
    float_model : Path
        The prepared float original; tensors that both have share their names.
    samples : Path
        Archive of up to 32 of the calibration samples: arrays by input, (samples, *shape of the input).
    """

    model: Path
    float_model: Path
    samples: Path

    def feeds(self, most: int | None = None) -> list[dict[str, np.ndarray]]:
        """Return the inputs of a run for each sample kept, or for the first ``most``."""
        with np.load(self.samples, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        count = len(next(iter(arrays.values())))
        return [{name: array[index, ...] for name, array in arrays.items()}
                for index in range(min(count, most or count))]


def quantised_files(key: str, stem: str) -> Quantised:
    """Return the cached files of model ``stem``, quantised under the hash ``key``."""
    folder = _folder() / key
    return Quantised(folder / f"{stem}.onnx", folder / "float" / f"{stem}.onnx", folder / "samples.npz")


def quantised_here(model: Path) -> Quantised | None:
    """Return the origin of ``model``, if it was quantised here and lies in the cache."""
    model = model.resolve()
    return quantised_files(model.parent.name, model.stem) if model.parent.parent == _folder() else None


def facts_of(model: Path) -> tuple[RangesOrigin | None, tuple[str, ...]]:
    """Return the metadata of an ONNX file: the source of its ranges, if quantised here, and changes when it was read.

    Raises
    ------
    CompileError
        If the file is no valid model.
    """
    proto = read_model(model)
    text = {each.key: each.value for each in proto.metadata_props}.get(METADATA_KEY)
    return None if text is None else RangesOrigin.of_text(text), notes_of(proto)


def _folder() -> Path:
    return (cache_folder() / "quantised").resolve()
