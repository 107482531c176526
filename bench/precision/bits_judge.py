"""The error of a network with other bits: how often it is wrong beside labels, or how far from the float network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.bench.precision.bits_choice import BitsChoice
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.precision.quantised_file import BitsModel

__all__ = ["BitsError", "BitsJudge", "answers_of"]

_Feeds = Sequence[Mapping[str, np.ndarray]]


@dataclass(frozen=True, slots=True, order=True)
class BitsError:
    """Errors in percent: the one that is asked for, and the root mean square of the outputs' distance beside it."""

    error: float
    distance: float


@dataclass(frozen=True, slots=True)
class BitsJudge:
    """Says how much accuracy a choice costs. It may be pickled.

    Attributes
    ----------
    model : BitsModel
    feeds : sequence of mapping of str to ndarray
        The model's inputs for each image.
    expected : ndarray
        The outputs of the model to compare with, (images, values).
    labels : ndarray or None
        The right class of each image.
    """

    model: BitsModel
    feeds: _Feeds
    expected: np.ndarray
    labels: np.ndarray | None

    def judge(self, choice: BitsChoice) -> BitsError:
        """Return the errors of a choice, of ONNX Runtime's results, which those of the machine equal."""
        made = self.model.with_bits(choice.bits(self.model.layers))
        found = answers_of(made, self.feeds)
        scale = float(np.sqrt((self.expected**2).mean())) or 1.0
        distance = 100 * float(np.sqrt(((found - self.expected)**2).mean())) / scale
        if self.labels is None:
            return BitsError(distance, distance)
        return BitsError(100 * float((found.argmax(axis=1) != self.labels).mean()), distance)


def answers_of(model: onnx.ModelProto, feeds: _Feeds) -> np.ndarray:
    """Return the first output of a model for each of ``feeds``, (images, values), float64, by exact integer kernels."""
    run = session(model.SerializeToString(), threads=1)
    name = run.get_outputs()[0].name
    return np.stack([run.run([name], dict(feed))[0].ravel() for feed in feeds]).astype(np.float64)
