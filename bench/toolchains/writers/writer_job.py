"""A writer's job, a JSON file, and how it goes through the forms in it: one that fails says so and ends nothing."""

import json
import shutil
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Work", "run"]


@dataclass(frozen=True, slots=True)
class Work:
    """One form of one network.

    Attributes
    ----------
    network : str
        Its name in `tilewright.bench.toolchains.writers.networks.NETWORKS`.
    model : Path
        The float ONNX model.
    samples : ndarray
        Float32 (samples, *shape without batch).
    target : Path
        The ONNX file to write.
    arguments : mapping
        Of the form, as in toolchains.toml.
    """

    network: str
    model: Path
    samples: np.ndarray
    target: Path
    arguments: Mapping[str, Any]

    @property
    def batches(self) -> list[np.ndarray]:
        """Return the samples one by one, a batch each."""
        return [self.samples[index:index + 1] for index in range(len(self.samples))]


def run(write: Callable[[Work], None]) -> None:
    """Write every form of the job that the command line names; beside one that fails lies its error as text."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    samples = np.load(job["samples"])["image"]
    for form in job["forms"]:
        target = Path(form["target"])
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(Work(job["network"], Path(job["model"]), samples, target, form["arguments"]))
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            shutil.rmtree(target, ignore_errors=True)
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            target.with_suffix(".error").write_text(text[:300], encoding="utf-8")
