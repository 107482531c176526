"""A softmax between quantisations of 16 bits is one operator of the host core, in whole numbers."""

from collections.abc import Iterable
from dataclasses import replace

from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Network
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_tensors import WORDS

__all__ = ["with_word_softmaxes"]

_REASON = "a softmax of words of 16 bits is the host core's, in whole numbers"


def with_word_softmaxes(network: Network) -> Network:
    """Return ``network`` with one operator for each DequantizeLinear, Softmax and QuantizeLinear of words."""
    graph, gone, made = WordGraph(network), set[int](), dict[int, AnyLayer]()
    for index in range(len(network.layers)):
        found = _softmax_at(graph, index)
        if found is not None:
            members, made[index] = found
            gone |= members
    if not made:
        return network
    layers = tuple(made.get(index, layer) for index, layer in enumerate(network.layers) if index not in gone)
    named = _names(layers) | {info.name for info in (*network.inputs, *network.outputs)}
    return replace(network, layers=layers,
                   tensors={name: info for name, info in network.tensors.items() if name in named or any(
                       other.place is not None and other.place.parent == name for other in network.tensors.values())})


def _names(layers: Iterable[AnyLayer]) -> set[str]:
    return {name for layer in layers for name in (*layer.reads, *layer.writes)}


def _softmax_at(graph: WordGraph, index: int) -> tuple[set[int], CoreLayer] | None:
    """Return the softmax whose QuantizeLinear is layer ``index``, and the layers before that it stands for."""
    quantise = graph.core(index, "QuantizeLinear")
    if quantise is None or graph.tensors[quantise.output].dtype not in WORDS:
        return None
    number = graph.made_by(quantise.inputs[0])
    softmax = None if number is None else graph.core(number, "Softmax")
    first = None if softmax is None else graph.made_by(softmax.inputs[0])
    dequantise = None if first is None else graph.core(first, "DequantizeLinear")
    if number is None or first is None or softmax is None or dequantise is None or not graph.alone(number):
        return None
    x = dequantise.inputs[0]
    ends = graph.quantisation(dequantise), graph.quantisation(quantise)
    if x not in graph.tensors or graph.tensors[x].dtype not in WORDS or ends[0] is None or ends[1] is None:
        return None
    zero = graph.constants.get(quantise.inputs[2]) if len(quantise.inputs) > 2 and quantise.inputs[2] else None
    made = CoreLayer(
        name=softmax.name, onnx_nodes=softmax.onnx_nodes, op="SoftmaxOfWords", inputs=(x,), output=quantise.output,
        attrs={**softmax.attrs, "scale_value": float(ends[0][0]), "y_scale": float(ends[1][0]),
               "y_zero_point": 0 if zero is None else int(zero.reshape(()))}, reason=_REASON, exact=False)
    if refusal_of(core_call(made, graph.tensors, graph.constants)) is not None:
        return None
    return {number, *([first] if graph.alone(first) else [])}, made
