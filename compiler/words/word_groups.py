"""Operators of the host core between tensors of 16 bits, as layers of the datapath.

The front end leaves ``DequantizeLinear → Conv, Gemm, MatMul or an average → QuantizeLinear`` of words to the host core.
What is computed here is the integer operator that stands for it: a sum of x w in 32 bits, and one rounding. ONNX
Runtime has no such kernel and computes in float32; a result may be a level off, of 65,536, and the layer says so.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Kind, Layer, Pads, Pair, Requantisation, TensorInfo
from tilewright.compiler.normal.constant_levels import lattice
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_tensors import WORDS
from tilewright.isa.numerics import pack_scale, wrap
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["WordGroup", "group_at"]

_TYPES = ("int8", *WORDS)
_CLAMPS = ("Relu", "Clip")
_MOST_BIAS = 2.0**30
"""Of a bias beside the sum of a layer of bytes, which keeps as far from the bounds of int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGroup:
    """Layers of the host core, by number, that one layer of the datapath stands for.

    ``source`` and ``target`` are the quantised tensors that it reads and writes, ``reason`` why it cannot be, if so.
    """

    members: tuple[int, ...]
    source: str
    target: str
    layer: Layer | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summation:
    """What an operator sums up: weights of float32, (O, C / groups, height, width), or windows; biases of float32."""

    kind: Kind
    weights: np.ndarray | None
    bias: np.ndarray
    outputs: int
    kernel: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1


def group_at(graph: WordGraph, index: int) -> WordGroup | None:
    """Return the group whose QuantizeLinear is layer ``index``, if it has words before or behind it; None if not."""
    quantise = graph.core(index, "QuantizeLinear")
    if quantise is None:
        return None
    target = graph.tensors[quantise.output]
    operator, clamp = graph.made_by(quantise.inputs[0]), None
    if operator is not None and graph.core(operator, *_CLAMPS) is not None and graph.alone(operator) \
            and all(name in graph.constants for name in graph.layers[operator].reads[1:]):
        clamp, operator = operator, graph.made_by(graph.layers[operator].reads[0])
    if operator is None or not graph.alone(operator):
        return None
    if (behind := _behind_sums(graph, operator, clamp, index)) is not None:
        return behind
    layer = graph.core(operator, "Conv", "Gemm", "MatMul", "GlobalAveragePool", "AveragePool")
    maker = None if layer is None else graph.made_by(layer.inputs[0])
    read = None if maker is None else graph.core(maker, "DequantizeLinear")
    if layer is None or read is None or read.inputs[0] not in graph.tensors:
        return None
    source = graph.tensors[read.inputs[0]]
    if {source.dtype, target.dtype}.isdisjoint(WORDS) or not {source.dtype, target.dtype} <= set(_TYPES):
        return None
    members = tuple(each for each in (operator, clamp, index) if each is not None)
    found = _layer(graph, layer, None if clamp is None else graph.layers[clamp], (read, quantise))
    if isinstance(found, str):
        return WordGroup(members=members, source=source.name, target=target.name, layer=None, reason=found)
    return WordGroup(members=members, source=source.name, target=target.name, layer=found)


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
    low, high = _bounds(graph, None if clamp is None else graph.layers[clamp], target, kind)
    made = replace(layer, output=target.name, out_shape=target.shape, whole=False, bias=bias.astype(np.int32),
                   requantisation=Requantisation(scale=np.ascontiguousarray(each / scale), zero_point=zero, low=low,
                                                 high=high), exact=False)
    members = tuple(each for each in (number, scaling, operator, clamp, index) if each is not None)
    return WordGroup(members=members, source=layer.input, target=target.name, layer=made)


def _layer(graph: WordGraph, operator: CoreLayer, clamp: AnyLayer | None,
           ends: tuple[CoreLayer, CoreLayer]) -> Layer | str:
    """Return the layer of the datapath, with plain names of its tensors; or why there is none."""
    x, y = (graph.quantisation(each) for each in ends)
    if x is None or y is None:
        return "its scales are no constants of a whole tensor"
    source, target = graph.tensors[ends[0].inputs[0]], graph.tensors[ends[1].output]
    summed = _sum_of(graph, operator, source)
    if isinstance(summed, str):
        return summed
    levels, factor = _levels(summed)
    if factor is None:
        return "its weights are no int8 levels"
    (x_scale, x_zero), (y_scale, y_zero) = x, y
    with np.errstate(all="ignore"):
        bias = np.rint(summed.bias.astype(np.float64) / (np.float64(x_scale) * factor))
        scale = (x_scale * factor / y_scale).astype(np.float32)
    if not _fits_sums(levels, summed, bias, source, x_zero):
        return "its sums may leave 32 bits"
    try:
        for each in scale:
            pack_scale(float(each))
    except ValueError as error:
        return f"its scales are too far apart: {error}"
    terms = (np.full(summed.outputs, math.prod(summed.kernel)) if levels is None
             else levels.sum(axis=(1, 2, 3), dtype=np.int64))
    folded = bias.astype(np.int64) + ((LOWER_OFFSET if source.dtype in WORDS else 0) - x_zero) * terms
    low, high = _bounds(graph, clamp, target, (y_scale, y_zero))
    return Layer(
        name=operator.name, kind=summed.kind, onnx_nodes=operator.onnx_nodes, input=source.name, output=target.name,
        in_shape=source.shape, conv_shape=(summed.outputs, *_extent(source, summed)), out_shape=target.shape,
        weights=levels, bias=np.array([wrap(int(each), 32) for each in folded], np.int32), kernel=summed.kernel,
        strides=summed.strides, dilations=summed.dilations, pads=summed.pads, groups=summed.groups, pad_value=x_zero,
        requantisation=Requantisation(scale=np.ascontiguousarray(np.broadcast_to(scale, summed.outputs)),
                                      zero_point=y_zero, low=low, high=high), exact=False)


def _sum_of(graph: WordGraph, operator: CoreLayer, source: TensorInfo) -> _Summation | str:
    """Return what an operator of the host core sums up; or why the datapath does not."""
    channels, height, width = source.shape
    attrs = operator.attrs
    if operator.op == "GlobalAveragePool":
        return _Summation(kind="average", weights=None, bias=np.zeros(channels), outputs=channels,
                          kernel=(height, width), groups=channels)
    if operator.op == "AveragePool":
        kernel = tuple(attrs.get("kernel_shape", ()))
        beyond = any(attrs.get("pads", ())) or attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
        if beyond or len(kernel) != 2 or attrs.get("ceil_mode", 0) or any(
                each != 1 for each in attrs.get("dilations", ())):
            return "its windows reach beyond the image"
        return _Summation(kind="average", weights=None, bias=np.zeros(channels), outputs=channels, kernel=kernel,
                    strides=tuple(attrs.get("strides", (1, 1))), groups=channels)
    weights = graph.constants.get(operator.inputs[1])
    bias = graph.constants.get(operator.inputs[2]) if len(operator.inputs) > 2 and operator.inputs[2] else None
    if weights is None or (len(operator.inputs) > 2 and operator.inputs[2] and bias is None):
        return "its weights are computed while the model runs"
    if operator.op == "Conv":
        found = _convolution(operator, weights)
    else:
        found = _product(operator, weights, source)
    if isinstance(found, str):
        return found
    outputs = found.outputs
    given = np.zeros(outputs) if bias is None else np.broadcast_to(bias.reshape(-1), outputs)
    return found if bias is None else replace(found, bias=given)


def _convolution(operator: CoreLayer, weights: np.ndarray) -> _Summation | str:
    attrs = operator.attrs
    if weights.ndim != 4 or attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return "its windows are not stated in numbers"
    pads = tuple(attrs.get("pads", (0, 0, 0, 0)))
    return _Summation(kind="conv", weights=weights, bias=np.zeros(len(weights)), outputs=len(weights),
                kernel=(weights.shape[2], weights.shape[3]), strides=tuple(attrs.get("strides", (1, 1))),
                dilations=tuple(attrs.get("dilations", (1, 1))), pads=(pads[0], pads[1], pads[2], pads[3]),
                groups=int(attrs.get("group", 1)))


def _product(operator: CoreLayer, weights: np.ndarray, source: TensorInfo) -> _Summation | str:
    """Return the product of a vector and a matrix."""
    attrs = operator.attrs
    if weights.ndim != 2 or source.shape[1:] != (1, 1) or attrs.get("transA", 0) \
            or (attrs.get("alpha", 1.0), attrs.get("beta", 1.0)) != (1.0, 1.0):
        return "it multiplies more than a vector and a matrix"
    matrix = weights if attrs.get("transB", 0) else weights.T
    if matrix.shape[1] != source.shape[0]:
        return "it multiplies more than a vector and a matrix"
    return _Summation(kind="conv", weights=matrix[:, :, None, None], bias=np.zeros(len(matrix)), outputs=len(matrix))


def _levels(summed: _Summation) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return int8 weights and their float32 scale by channel; of windows none, and what the number of pixels is."""
    if summed.weights is None:
        return None, np.array([1 / math.prod(summed.kernel)], np.float32)
    found = lattice(np.asarray(summed.weights, np.float32), 0)
    return (None, None) if found is None else found


def _fits_sums(levels: np.ndarray | None, summed: _Summation, bias: np.ndarray, source: TensorInfo, zero: int) -> bool:
    """Tell whether no input makes a sum with its bias leave int32, in which sums wrap."""
    low, high = (-128, 127) if source.dtype == "int8" else (-32_768, 32_767)
    if levels is None:
        least = most = np.full(summed.outputs, float(math.prod(summed.kernel)))
        negative = np.zeros(summed.outputs)
    else:
        wide = levels.astype(np.float64)
        most, negative = (np.where(part, wide, 0).sum(axis=(1, 2, 3)) for part in (wide > 0, wide < 0))
        least = most
    top = most * (high - zero) + negative * (low - zero) + bias
    bottom = least * (low - zero) + negative * (high - zero) + bias
    return bool(np.isfinite(bias).all() and top.max() < 2**31 and bottom.min() >= -(2**31))


def _bounds(graph: WordGraph, clamp: AnyLayer | None, target: TensorInfo,
            kind: tuple[np.float32, int]) -> tuple[int, int]:
    """Return the bounds of the result: those of its type, and those of a Relu or Clip before it."""
    low, high = (-128, 127) if target.dtype == "int8" else (-32_768, 32_767)
    if not isinstance(clamp, CoreLayer):
        return low, high
    limits = graph.clamp_bounds(clamp)
    found = [None if each is None else int(np.clip(np.rint(np.float32(each) / kind[0]) + kind[1], low, high))
             for each in limits]
    return (low if found[0] is None else found[0]), (high if found[1] is None else found[1])


def _extent(source: TensorInfo, summed: _Summation) -> Pair:
    top, left, bottom, right = summed.pads
    height, width = ((size + before + after - dilation * (kernel - 1) - 1) // stride + 1
                     for size, before, after, dilation, kernel, stride in zip(
                         source.shape[1:], (top, left), (bottom, right), summed.dilations, summed.kernel,
                         summed.strides, strict=True))
    return height, width
