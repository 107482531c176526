"""Functions of one tensor of words: a table of its 65,536 values, filled by the core's own kernels.

What computes each element by itself, from one tensor of words to another, is such a function, whatever is quantised in
between: x · Sigmoid(x) with three of its tensors in 16 bits is one table. So each result has the bits that the
operators gave one by one. Lines between 256 knots would be up to two levels off for a Sigmoid and thirty for a
HardSwish, whose corners lie between knots (docs/decisions/numbers.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.levels.word_look_up import word_table
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import CoreLayer, TensorInfo
from tilewright.compiler.words.word_curves import bent, curve_of
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_group import WordGroup, WordOperand, WordResult
from tilewright.compiler.words.word_sums import scaled_layer
from tilewright.compiler.words.word_tensors import WORD_SHIFT, WORDS

__all__ = ["function_at"]

_VALUES = 1 << 16
_MOST_LAYERS = 64
_REASON = "a function of words of 16 bits is a table of 65,536 values in main memory; with 8 bits, it is the datapath's"


def function_at(graph: WordGraph, index: int, *, curves: bool) -> WordGroup | None:
    """Return the group of the function of one tensor of words that ends with layer ``index``; None if there is none.

    On a machine with ``curves`` it is a layer of the datapath, if one is near enough.
    """
    layer = graph.core(index, "QuantizeLinear")
    if layer is None or graph.tensors[layer.output].dtype not in WORDS:
        return None
    found = _WordFunction(graph, index)
    source = found.source()
    values = None if source is None else found.values(source)
    if source is None or values is None:
        return None
    members, table = found.members(), f"{layer.output}:function"
    last = next((graph.layers[each] for each in reversed(members) if graph.core(each, "QuantizeLinear") is None), layer)
    exact = all(each.exact for each in found.layers())
    x, y = (WordOperand(graph.tensors[name], np.float32(1), 0) for name in (source, layer.output))
    curve = curve_of(values) if curves and x.info.shape == y.info.shape else None
    if curve is not None:
        line = scaled_layer(replace(layer, name=last.name, onnx_nodes=last.onnx_nodes), x, WordResult(graph, y, None))
        assert not isinstance(line, str)
        return WordGroup(members=members, sources=(source,), target=layer.output, layers=(bent(line, curve),))
    made = CoreLayer(name=last.name, onnx_nodes=last.onnx_nodes, op="WordLookUp", inputs=(source, table),
                     output=layer.output, attrs={}, reason=_REASON, exact=exact)
    return WordGroup(members=members, sources=(source,), target=layer.output, layers=(made,),
                     constants={table: word_table(values)})


@dataclass(slots=True)
class _WordFunction:
    """Layers, by number, that compute the result of the QuantizeLinear ``end`` element by element."""

    graph: WordGraph
    end: int
    numbers: set[int] = field(default_factory=set)

    def source(self) -> str | None:
        """Return the one tensor of words that the result is a function of, the nearest one; None if there is none."""
        leaves = set(self.graph.layers[self.end].reads) - self.graph.constants.keys()
        self.numbers = {self.end}
        whole = self._like(self.graph.layers[self.end])
        while whole and len(self.numbers) <= _MOST_LAYERS:
            if len(leaves) == 1 and self.graph.tensors[next(iter(leaves))].dtype in WORDS:
                return next(iter(leaves))
            number, name = max(((self.graph.made_by(each), each) for each in leaves),
                               key=lambda each: -1 if each[0] is None else each[0])
            layer = None if number is None else self.graph.layers[number]
            if number is None or layer is None or not self._like(layer):
                return None
            self.numbers.add(number)
            leaves = (leaves - {name}) | (set(layer.reads) - self.graph.constants.keys())
        return None

    def layers(self) -> list[CoreLayer]:
        """Return the layers in order."""
        found = (self.graph.layers[number] for number in sorted(self.numbers))
        return [layer for layer in found if isinstance(layer, CoreLayer)]

    def members(self) -> tuple[int, ...]:
        """Return the numbers of those that nothing else needs, in order."""
        kept = {info.name for info in self.graph.network.outputs}
        found = {self.end}
        for number in sorted(self.numbers - {self.end}, reverse=True):
            name = self.graph.layers[number].writes[0]
            if name not in kept and found.issuperset(self.graph.readers.get(name, ())):
                found.add(number)
        return tuple(sorted(found))

    def values(self, source: str) -> np.ndarray | None:
        """Return the results, int16 by ascending word of ``source``; None if a kernel refuses."""
        kind = np.iinfo(self.graph.tensors[source].dtype)
        known = {source: np.arange(kind.min, kind.max + 1).astype(kind.dtype)}
        for layer in self.layers():
            result = _run(layer, known, self.graph)
            if result is None:
                return None
            known[layer.output] = result
        found = known[self.graph.layers[self.end].writes[0]]
        return (found.astype(np.int32) - (WORD_SHIFT if found.dtype == np.uint16 else 0)).astype(np.int16)

    def _like(self, layer: object) -> bool:
        """Tell whether a layer computes each element by itself, of tensors of the result's shape and single numbers."""
        graph = self.graph
        if not isinstance(layer, CoreLayer) or not isinstance(CORE_KERNELS.get(layer.op), Elementwise):
            return False
        shape = _dims(graph.tensors[graph.layers[self.end].writes[0]])
        return all(graph.constants[name].size == 1 if name in graph.constants else _dims(graph.tensors[name]) == shape
                   for name in (*layer.reads, layer.output))


def _run(layer: CoreLayer, known: Mapping[str, np.ndarray], graph: WordGraph) -> np.ndarray | None:
    """Return what the kernel of ``layer`` makes of the values that are ``known``; None if it refuses them."""
    constants = {name: graph.constants[name].reshape(()) for name in layer.reads if name in graph.constants}
    infos = {name: _vector(name, graph.tensors[name].dtype) for name in (*layer.reads, layer.output)
             if name not in constants}
    call = core_call(layer, infos, constants)
    if refusal_of(call) is not None:
        return None
    return run_call(call, [(constants[name] if name in constants else known[name]) if operand.present else None
                           for name, operand in zip(layer.inputs, call.inputs, strict=True)])


def _vector(name: str, dtype: str) -> TensorInfo:
    return TensorInfo(name=name, shape=(_VALUES, 1, 1), scale=np.float32(1), zero_point=0, dtype=dtype, dims=(_VALUES,))


def _dims(info: TensorInfo) -> tuple[int, ...]:
    return (1, *info.shape) if info.dims is None else info.dims
