"""A float model that was quantised here: its file, its origin, and the source of its ranges."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import onnx

from tilewright.tools.toolchain import cache_folder

__all__ = ["METADATA_KEY", "Quantised", "RangesKind", "RangesOrigin", "ReadModel", "quantised_files", "quantised_here",
           "ranges_of"]

ReadModel = onnx.ModelProto
"""A model as `compiler.onnx.reader.read_model` returns it."""

METADATA_KEY = "tilewright.calibration"
"""The key of an ONNX file's metadata under which :class:`RangesOrigin` is kept."""


class RangesKind(StrEnum):
    """The kind of values that ranges were measured on."""

    SAMPLES = "samples"
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class RangesOrigin:
    """The values that the ranges of a model were measured on: their kind, how many samples, and from where.

    ``remarks`` are sentences on what is odd about them, or was done to them.
    """

    kind: RangesKind
    samples: int
    source: str
    remarks: tuple[str, ...] = ()

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
            return cls(RangesKind(found["kind"]), int(found["samples"]), str(found["source"]),
                       tuple(map(str, found.get("remarks", ()))))
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
    origin : Path
        What the int8 model's metadata say of its ranges, as JSON, beside it: to read that needs no model.
    """

    model: Path
    float_model: Path
    samples: Path
    origin: Path

    @property
    def ranges(self) -> RangesOrigin | None:
        """The source of the ranges."""
        return RangesOrigin.of_text(self.origin.read_text(encoding="utf-8"))

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
    return Quantised(folder / f"{stem}.onnx", folder / "float" / f"{stem}.onnx", folder / "samples.npz",
                     folder / "ranges.json")


def quantised_here(model: Path) -> Quantised | None:
    """Return the origin of ``model``, if it was quantised here and lies in the cache."""
    model = model.resolve()
    return quantised_files(model.parent.name, model.stem) if model.parent.parent == _folder() else None


def ranges_of(proto: onnx.ModelProto) -> RangesOrigin | None:
    """Return the source of a model's ranges, if it was quantised here; its metadata tell."""
    text = {each.key: each.value for each in proto.metadata_props}.get(METADATA_KEY)
    return None if text is None else RangesOrigin.of_text(text)


def _folder() -> Path:
    return (cache_folder() / "quantised").resolve()
