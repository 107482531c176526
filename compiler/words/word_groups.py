"""Operators of the host core between tensors of 16 bits, as groups that layers of the datapath stand for.

The front end leaves ``DequantizeLinear → an operator → QuantizeLinear`` of words to the host core. A group begins with
the operator, may have a Relu or a Clip, and ends with the QuantizeLinear.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Layer, Requantisation
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_group import WordGroup, WordOperand, WordResult, end_of, operand_of
from tilewright.compiler.words.word_moves import Moved, concatenated, enlarged, pooled
from tilewright.compiler.words.word_products import PRODUCTS, product_layers
from tilewright.compiler.words.word_scales import scaled_by_vector
from tilewright.compiler.words.word_sums import scaled_layer, sum_layer
from tilewright.compiler.words.word_tensors import WORDS, WordPart

__all__ = ["group_at"]

_CLAMPS = ("Relu", "Clip")
_MOST_BIAS = 2.0**30
"""Of a bias beside the sum of a layer of bytes, which keeps as far from the bounds of int32."""

_Found = tuple[tuple[Layer, ...], tuple[WordPart, ...]] | Layer | Moved | str | None


def group_at(graph: WordGraph, index: int) -> WordGroup | None:
    """Return the group whose QuantizeLinear is layer ``index``, if it has words before or behind it; None if not."""
    quantise = graph.core(index, "QuantizeLinear")
    target = None if quantise is None else end_of(graph, quantise, quantise.output)
    if quantise is None or target is None:
        return None
    clamp, behind = _clamp_before(graph, quantise.inputs[0])
    operator = graph.made_by(behind)
    if operator is None:
        return None
    y = WordResult(graph, target, None if clamp is None else graph.core(clamp, *_CLAMPS))
    if (found := operand_of(graph, behind)) is not None:
        members = tuple(each for each in (clamp, index) if each is not None)
        return _group(members, [found], y, scaled_layer(quantise if clamp is None else y.clamp or quantise, found, y))
    if not graph.alone(operator):
        return None
    if (whole := _behind_sums(graph, operator, clamp, index)) is not None:
        return whole
    layer = graph.core(operator, *PRODUCTS, *_SUMS, *_MOVES, *_LINES)
    if layer is None:
        return None
    operands = [operand_of(graph, name) for name in layer.inputs[:_OPERANDS.get(layer.op, len(layer.inputs))]
                if name and name not in graph.constants]
    known = [each for each in operands if each is not None]
    if not known or len(known) < len(operands):
        return None
    return _group(tuple(each for each in (operator, clamp, index) if each is not None), known, y,
                  _layers(graph, layer, known, y))


_SUMS = {"Add": (1, 1), "Sub": (1, -1)}
_MOVES = ("MaxPool", "Concat", "Resize", "Upsample")
_LINES = ("Mul", "Div", "HardSigmoid")
_OPERANDS = dict.fromkeys((*PRODUCTS, "MaxPool", "Resize", "Upsample", "HardSigmoid"), 1)
"""How many inputs are tensors that are read, where not all of them are."""


def _clamp_before(graph: WordGraph, name: str) -> tuple[int | None, str]:
    """Return the number of the Relu or Clip that makes ``name`` alone, if there is one, and what is before it."""
    index = graph.made_by(name)
    if index is None or graph.core(index, *_CLAMPS) is None or not graph.alone(index) \
            or any(each not in graph.constants for each in graph.layers[index].reads[1:]):
        return None, name
    return index, graph.layers[index].reads[0]


def _group(members: tuple[int, ...], operands: list[WordOperand], y: WordResult, found: _Found) -> WordGroup | None:
    """Return the group of layers that were ``found``, if any of its ends is one of words."""
    if found is None or not any(each.words for each in (*operands, y.operand)):
        return None
    made = WordGroup(members=members, sources=tuple(dict.fromkeys(each.info.name for each in operands)),
                     target=y.operand.info.name)
    if isinstance(found, str):
        return replace(made, reason=found)
    if isinstance(found, Moved):
        return replace(made, reason=found.reason) if found.reason else replace(
            made, layers=tuple(found.layers), parts=tuple(found.parts), inner=tuple(found.inner))
    layers, parts = ((found,), ()) if isinstance(found, Layer) else found
    return replace(made, layers=layers, parts=parts)


def _layers(graph: WordGraph, layer: CoreLayer, operands: list[WordOperand], y: WordResult) -> _Found:
    """Return the layers of an operator, why there are none, or None if it is no operator for the datapath."""
    x = operands[0]
    if layer.op in PRODUCTS:
        return product_layers(graph, layer, x, y)
    if layer.op == "MaxPool":
        return pooled(graph, layer, x, y)
    if layer.op == "Concat":
        return concatenated(layer, operands, y) if len(operands) == len(layer.inputs) else None
    if layer.op in ("Resize", "Upsample"):
        return enlarged(layer, x, y)
    if layer.op == "HardSigmoid":
        return _hard_sigmoid(layer, x, y)
    if layer.op in _SUMS and len(operands) == 2:
        return sum_layer(layer, (operands[0], operands[1]), _SUMS[layer.op], y)
    if layer.op == "Mul" and len(operands) == 2:
        return scaled_by_vector(graph, layer, (operands[0], operands[1]), y)
    return _with_constant(graph, layer, x, y)


def _hard_sigmoid(layer: CoreLayer, x: WordOperand, y: WordResult) -> _Found:
    """Return the layer of ``max(0, min(1, alpha x + beta))``: a line, whose bounds are the result's."""
    alpha, beta = float(layer.attrs.get("alpha", 0.2)), float(layer.attrs.get("beta", 0.5))
    found = scaled_layer(layer, x, y, alpha, beta) if alpha > 0 else "it does not rise"
    if isinstance(found, str):
        return found
    kind = found.requantisation
    return replace(found, requantisation=replace(kind, low=max(kind.low, y.level(0.0)),
                                                 high=min(kind.high, y.level(1.0))))


def _with_constant(graph: WordGraph, layer: CoreLayer, x: WordOperand, y: WordResult) -> _Found:
    """Return the layer of a sum, a product or a quotient of a tensor and one number; None if it is neither."""
    first = layer.inputs[0] not in graph.constants
    given = graph.constants.get(layer.inputs[1 if first else 0])
    if given is None or given.size != 1:
        return None
    value = float(given.reshape(()))
    if layer.op == "Add" or (layer.op == "Sub" and first):
        return scaled_layer(layer, x, y, 1.0, value if layer.op == "Add" else -value)
    if layer.op == "Sub" or not value > 0 or (layer.op == "Div" and not first):
        return None
    return scaled_layer(layer, x, y, value if layer.op == "Mul" else 1 / value)


def _behind_sums(graph: WordGraph, operator: int, clamp: int | None, index: int) -> WordGroup | None:
    """Return the group that begins with a layer of bytes whose whole sums are scaled, moved and quantised to words."""
    quantise = graph.core(index, "QuantizeLinear")
    addition = graph.core(operator, "Add")
    scaling = graph.made_by(addition.inputs[0]) if addition is not None else operator
    scaled = None if scaling is None else graph.core(scaling, "DequantizeLinear")
    summing = None if scaled is None else graph.sums_of(scaled.inputs[0])
    if quantise is None or scaled is None or scaling is None or summing is None or not graph.alone(scaling) \
            or graph.tensors[quantise.output].dtype not in WORDS:
        return None
    kind, steps = graph.quantisation(quantise), graph.constants.get(scaled.inputs[1])
    offset = np.zeros(1) if addition is None else graph.constants.get(addition.inputs[1])
    number, layer = summing
    if kind is None or steps is None or offset is None or max(steps.size, offset.size) > layer.conv_shape[0]:
        return None
    (scale, zero), outputs = kind, layer.conv_shape[0]
    each = np.broadcast_to(steps.reshape(-1).astype(np.float32), outputs)
    bias = layer.bias + np.rint(offset.reshape(-1).astype(np.float64) / each)
    target = graph.tensors[quantise.output]
    if not np.isfinite(bias).all() or np.abs(bias).max() >= _MOST_BIAS or target.shape != layer.conv_shape:
        return None
    bounding = None if clamp is None else graph.core(clamp, *_CLAMPS)
    low, high = WordResult(graph, WordOperand(target, scale, zero), bounding).bounds
    made = replace(layer, output=target.name, out_shape=target.shape, whole=False, bias=bias.astype(np.int32),
                   requantisation=Requantisation(scale=np.ascontiguousarray(each / scale), zero_point=zero, low=low,
                                                 high=high), exact=False)
    members = tuple(each for each in (number, scaling, operator, clamp, index) if each is not None)
    return WordGroup(members=members, sources=(layer.input,), target=target.name, layers=(made,))
