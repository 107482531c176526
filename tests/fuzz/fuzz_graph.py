"""A graph of the fuzzer, and what it is made of."""

from dataclasses import dataclass

import onnx


@dataclass(frozen=True)
class FuzzGraph:
    """A model, what it is made of, and in which form."""

    model: onnx.ModelProto
    form: str
    operators: tuple[str, ...]
