"""A float model that was quantised here: where it lies, what it was made of, and what its ranges are from."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS
from tilewright.tools.toolchain import cache_folder

METADATA_KEY = "tilewright.calibration"
"""Of the metadata in which a quantised model says what its ranges are from."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """A float model quantised here.

    Attributes
    ----------
    model : Path
        The int8 model.
    float_model : Path
        What it was made of, prepared; tensors that both have are called alike.
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
        return [{name: array[index] for name, array in arrays.items()} for index in range(min(count, most or count))]


def quantised_files(key: str, stem: str) -> Quantised:
    """Return where the model ``stem``, quantised as the hash ``key`` says, lies in the cache."""
    folder = _folder() / key
    return Quantised(folder / f"{stem}.onnx", folder / "float" / f"{stem}.onnx", folder / "samples.npz")


def quantised_here(model: Path) -> Quantised | None:
    """Return what ``model`` is, if it was quantised here and lies in the cache."""
    model = model.resolve()
    return quantised_files(model.parent.name, model.stem) if model.parent.parent == _folder() else None


def calibration_note(model: Path) -> str | None:
    """Return what an ONNX file says its ranges are from, if it was quantised here, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except ONNX_RUNTIME_ERRORS:
        return None     # it was not quantised by ONNX Runtime, which does not take it
    return session.get_modelmeta().custom_metadata_map.get(METADATA_KEY)


def _folder() -> Path:
    return (cache_folder() / "quantised").resolve()
