"""Samples given as arrays or as a file, for quantisation with a file: ``calibrate=`` of a session."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tilewright.tools.files import write_arrays

__all__ = ["Samples", "sample_file"]

Samples = str | Path | np.ndarray | Mapping[str, np.ndarray]
"""A file, the samples of the only input, or those of each input by name; the first axis counts them."""

_NAME = "samples.npz"


@contextmanager
def sample_file(samples: Samples) -> Iterator[Path]:
    """Yield the file that holds the samples: the given one, or one that lasts as long as the context."""
    if isinstance(samples, (str, Path)):
        yield Path(samples)
        return
    arrays = samples if isinstance(samples, Mapping) else {"samples": np.asarray(samples)}
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        file = Path(folder, _NAME)
        write_arrays(file, {name: np.asarray(array) for name, array in arrays.items()})
        yield file
