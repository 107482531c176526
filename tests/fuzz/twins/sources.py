"""The plain models that twins are made of: built-in networks, the fuzzer's corpus, its random graphs."""

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import onnx

from tests.fuzz.quantised import QuantiserError
from tests.fuzz.run import CORPUS, graph_of
from tilewright.compiler.errors import CompileError
from tilewright.compiler.onnx.reader import read_model
from tilewright.models import builtin

__all__ = ["BUILT_IN", "Source", "draw_source", "plain_model"]

BUILT_IN = ("lenet5", "mlperf-kws", "mlperf-resnet8", "lenet5_qoperator", "mlperf-ad", "lenet5_accel")

_FORMS = ("qdq", "static", "qdq", "qoperator", "lines qdq", "apart static", "bytes static", "branches qdq", "mixed qdq",
          "apart qdq")

Source = str
"""Name of a plain model: of a built-in one, of a file of the corpus, or ``form/number`` of a random graph."""


def draw_source(rng: random.Random) -> Source:
    """Return the name of a plain model."""
    kind = rng.random()
    if kind < 0.25:
        return rng.choice(BUILT_IN)
    if kind < 0.45:
        return rng.choice(corpus())
    return f"{rng.choice(_FORMS)}/{rng.randrange(10**6)}"


@cache
def corpus() -> Sequence[Source]:
    """Return the names of the corpus' files."""
    return sorted(path.name for path in CORPUS.glob("*.onnx"))


@cache
def plain_model(source: Source) -> onnx.ModelProto | None:
    """Return the plain model of that name; None if there is none, as no graph could be made."""
    if source in BUILT_IN:
        return onnx.load(builtin(source))
    if source.endswith(".onnx"):
        return onnx.load(Path(CORPUS, source))
    form, _, number = source.rpartition("/")
    try:
        return read_model(graph_of(int(number), form).model.SerializeToString())
    except (QuantiserError, CompileError):
        return None
