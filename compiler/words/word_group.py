"""Layers of the datapath in place of a group of operators of the host core, and the ends of such a group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, TensorInfo
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_tensors import WORDS, WordPart

__all__ = ["WordGroup", "WordOperand", "WordResult", "end_of", "operand_of"]

_TYPES = ("int8", *WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGroup:
    """Layers of the host core, by number, that layers of the datapath stand for; none if ``reason`` says why not.

    ``sources`` and ``target`` are the quantised tensors that it reads and writes. Its layers name these, its ``parts``
    and its ``inner`` tensors, all as one of words or of bytes. A layer of the host core among them reads and writes
    planes, and ``constants``.
    """

    members: tuple[int, ...]
    sources: tuple[str, ...]
    target: str
    layers: tuple[Layer | CoreLayer, ...] = ()
    parts: tuple[WordPart, ...] = ()
    inner: tuple[TensorInfo, ...] = ()
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WordOperand:
    """A quantised tensor that an operator reads as real numbers; its zero point is as the datapath has it."""

    info: TensorInfo
    scale: np.float32
    zero: int

    @property
    def words(self) -> bool:
        """Whether it is one of 16 bits."""
        return self.info.dtype in WORDS

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest level."""
        return (-32_768, 32_767) if self.words else (-128, 127)


@dataclass(frozen=True, slots=True)
class WordResult:
    """The quantised tensor that an operator's result becomes, with what clamps it before."""

    graph: WordGraph
    operand: WordOperand
    clamp: CoreLayer | None

    @property
    def bounds(self) -> tuple[int, int]:
        """Bounds of the result: those of its type, and those of a Relu or Clip before it."""
        low, high = self.operand.bounds
        if self.clamp is None:
            return low, high
        least, most = self.graph.clamp_bounds(self.clamp)
        return low if least is None else self.level(least), high if most is None else self.level(most)

    def level(self, value: float) -> int:
        """Return the level of a real number, within the type."""
        with np.errstate(over="ignore"):
            return int(np.clip(np.rint(np.float32(value) / self.operand.scale) + self.operand.zero,
                               *self.operand.bounds))


def operand_of(graph: WordGraph, name: str) -> WordOperand | None:
    """Return the quantised tensor that the real numbers ``name`` come from; None if there is none."""
    maker = graph.made_by(name)
    layer = None if maker is None else graph.core(maker, "DequantizeLinear")
    return None if layer is None else end_of(graph, layer, layer.inputs[0])


def end_of(graph: WordGraph, layer: AnyLayer, name: str) -> WordOperand | None:
    """Return the quantised tensor ``name`` at the end of a QuantizeLinear or DequantizeLinear."""
    if not isinstance(layer, CoreLayer) or name not in graph.tensors or graph.tensors[name].dtype not in _TYPES:
        return None
    kind = graph.quantisation(layer)
    return None if kind is None else WordOperand(graph.tensors[name], *kind)
