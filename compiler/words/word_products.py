"""Sums of products, and of windows, of tensors of words as layers of the datapath: one, or one for each phase.

What is computed here is the integer operator that stands for ``DequantizeLinear → Conv, Gemm, MatMul, ConvTranspose or
an average → QuantizeLinear``: a sum of x w in 32 bits, and one rounding. ONNX Runtime has no such kernel and computes
in float32; a result may be a level off, of 65,536, and the layer says so.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Kind, Layer, Pads, Pair, Requantisation, Shape, TensorInfo
from tilewright.compiler.normal.constant_levels import lattice
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_group import WordOperand, WordResult
from tilewright.compiler.words.word_moves import Moved
from tilewright.compiler.words.word_sums import scaled_layer
from tilewright.compiler.words.word_tensors import WordPart
from tilewright.isa.numerics import pack_scale, wrap
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["PRODUCTS", "product_layers"]

PRODUCTS = ("Conv", "Gemm", "MatMul", "GlobalAveragePool", "AveragePool", "ConvTranspose")
"""Operators that `product_layers` takes."""

_NO_LEVELS = "its weights are no int8 levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summation:
    """Operands of a sum: weights of float32, (O, C / groups, height, width), or windows; biases of float32.

    ``levels``, int8, and ``factor``, float32 by channel, are the weights, once they are known.
    """

    kind: Kind
    weights: np.ndarray | None
    bias: np.ndarray
    outputs: int
    kernel: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1
    levels: np.ndarray | None = None
    factor: np.ndarray | None = None


_NINE_BITS = 255
"""The greatest difference of two bytes."""


def product_layers(graph: WordGraph, operator: CoreLayer, x: WordOperand,
                   y: WordResult) -> tuple[tuple[Layer, ...], tuple[WordPart, ...]] | Moved | str:
    """Return the layers that compute ``y``, and the parts of it that they write; or why there are none."""
    if operator.op == "ConvTranspose":
        return _transposed(graph, operator, x, y)
    summed = _sum_of(graph, operator, x.info)
    if isinstance(summed, str):
        return summed
    levelled = _with_levels(summed)
    if levelled.factor is None:
        return _of_nine_bits(graph, operator, summed, x, y)
    found = _layer(operator, levelled, x, y, (y.operand.info.name, y.operand.info.shape))
    return found if isinstance(found, str) else ((found,), ())


def _of_nine_bits(graph: WordGraph, operator: CoreLayer, summed: _Summation, x: WordOperand,
                  y: WordResult) -> Moved | str:
    """Return the layers of a sum whose weights are levels of nine bits, such as those of uint8 less a zero point.

    The image is there twice, or three times where a level is 255: with all its channels again, or, where channels are
    in groups, with each row again. What int8 holds of the weights meets the first, and the rest the next.
    """
    given = None if summed.weights is None else lattice(np.asarray(summed.weights, np.float32), 0, _NINE_BITS)
    if given is None:
        return _NO_LEVELS
    if summed.groups > 1 and summed.dilations[0] != 1:
        return "its weights leave int8, and the rows of its windows lie apart"
    (left, factor), parts, found, name = given, list[np.ndarray](), Moved(), operator.name
    while left.any():
        parts.append(np.clip(left, -128, 127).astype(np.int8))
        left = left - parts[-1]
    times, (channels, height, width) = len(parts), x.info.shape
    shape, places = (times * channels, height, width), [{"channel": copy * channels} for copy in range(times)]
    meets = replace(summed, levels=np.concatenate(parts, axis=1), factor=factor)
    if summed.groups > 1:
        shape, places = (channels, times * height, width), [{"row": copy, "row_step": times} for copy in range(times)]
        meets = _with_rows(meets, parts)
    whole = replace(x, info=replace(x.info, name=f"{name}: copies", shape=shape, dims=None, place=None,
                                    dtype="int16" if x.words else "int8"))
    found.inner.append(whole.info)
    for copy, place in enumerate(places):
        target = found.part(whole, x.info.shape, f"{name}: copy {copy}", **place)
        found.add(scaled_layer(operator, x, WordResult(graph, target, None)), f"{name}, copy {copy}")
    found.add(_layer(operator, meets, whole, y, (y.operand.info.name, y.operand.info.shape)), name)
    return found


def _with_rows(summed: _Summation, parts: Sequence[np.ndarray]) -> _Summation:
    """Return a sum over an image whose rows are each there as often as weights have ``parts``."""
    times, (outputs, inputs, taps, columns), (top, left, bottom, right) = len(parts), parts[0].shape, summed.pads
    return replace(summed, levels=np.stack(parts, axis=3).reshape(outputs, inputs, times * taps, columns),
                   kernel=(times * taps, columns), strides=(times * summed.strides[0], summed.strides[1]),
                   pads=(times * top, left, times * bottom, right))


def _layer(operator: CoreLayer, summed: _Summation, x: WordOperand, y: WordResult,
           output: tuple[str, Shape]) -> Layer | str:
    """Return the layer that writes ``output``, a name and a shape; or why there is none."""
    if summed.factor is None:
        return _NO_LEVELS
    levels, source, y_scale = summed.levels, x.info, y.operand.scale
    with np.errstate(all="ignore"):
        bias = np.rint(summed.bias.astype(np.float64) / (np.float64(x.scale) * summed.factor))
        scale = (x.scale * summed.factor / y_scale).astype(np.float32)
    if not _fits_sums(levels, summed, bias, source, x.zero):
        return "its sums may leave 32 bits"
    try:
        for each in scale:
            pack_scale(float(each))
    except ValueError as error:
        return f"its scales are too far apart: {error}"
    terms = (np.full(summed.outputs, math.prod(summed.kernel)) if levels is None
             else levels.sum(axis=(1, 2, 3), dtype=np.int64))
    folded = bias.astype(np.int64) + ((LOWER_OFFSET if x.words else 0) - x.zero) * terms
    low, high = y.bounds
    name, shape = output
    return Layer(
        name=operator.name, kind=summed.kind, onnx_nodes=operator.onnx_nodes, input=source.name, output=name,
        in_shape=source.shape, conv_shape=(summed.outputs, *_extent(source, summed)), out_shape=shape,
        weights=levels, bias=np.array([wrap(int(each), 32) for each in folded], np.int32), kernel=summed.kernel,
        strides=summed.strides, dilations=summed.dilations, pads=summed.pads, groups=summed.groups, pad_value=x.zero,
        requantisation=Requantisation(scale=np.ascontiguousarray(np.broadcast_to(scale, summed.outputs)),
                                      zero_point=y.operand.zero, low=low, high=high), exact=False)


def _transposed(graph: WordGraph, operator: CoreLayer, x: WordOperand,
                y: WordResult) -> tuple[tuple[Layer, ...], tuple[WordPart, ...]] | str:
    """Return a convolution for each phase of a transposed one, which writes the pixels that are its own."""
    attrs, kernels = operator.attrs, graph.constants.get(operator.inputs[1])
    bias = graph.constants.get(operator.inputs[2]) if len(operator.inputs) > 2 and operator.inputs[2] else np.zeros(1)
    if kernels is None or bias is None:
        return "its weights are computed while the model runs"
    if kernels.ndim != 4 or any(each != 1 for each in attrs.get("dilations", ())) or attrs.get(
            "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return "its windows are not stated in numbers"
    groups, each, info = int(attrs.get("group", 1)), kernels.shape[1], y.operand.info
    turned = kernels.reshape(groups, -1, *kernels.shape[1:]).swapaxes(1, 2)[..., ::-1, ::-1]
    outputs = groups * each
    whole = _with_levels(_Summation(
        kind="conv", weights=turned.reshape(outputs, -1, *kernels.shape[2:]), groups=groups, outputs=outputs,
        bias=np.broadcast_to(np.asarray(bias, np.float64).reshape(-1), outputs)))
    strides, pads = tuple(attrs.get("strides", (1, 1))), tuple(attrs.get("pads", (0, 0, 0, 0)))
    axes = [list(_phases(kernels.shape[2 + axis], strides[axis], pads[axis], x.info.shape[1 + axis],
                         info.shape[1 + axis])) for axis in (0, 1)]
    layers, parts = list[Layer](), list[WordPart]()
    for rows in axes[0]:
        for columns in axes[1]:
            if whole.levels is None or rows.before < 0 or columns.before < 0 or rows.behind < 0 or columns.behind < 0 \
                    or not (rows.taps and columns.taps):
                return _NO_LEVELS if whole.levels is None else "its phases see parts of the image"
            part = WordPart(name=f"{info.name} from {rows.first}, {columns.first}", parent=info.name,
                            shape=(outputs, rows.pixels, columns.pixels), row=rows.first, column=columns.first,
                            row_step=strides[0], column_step=strides[1])
            own = replace(whole, levels=np.ascontiguousarray(whole.levels[:, :, rows.own(), columns.own()]),
                          kernel=(rows.taps, columns.taps),
                          pads=(rows.before, columns.before, rows.behind, columns.behind))
            found = _layer(operator, own, x, y, (part.name, part.shape))
            if isinstance(found, str):
                return found
            layers.append(replace(found, name=f"{operator.name} from {rows.first}, {columns.first}"))
            parts.append(part)
    return tuple(layers), tuple(parts)


@dataclass(frozen=True, slots=True)
class _Phase:
    """Every so many outputs of a transposed convolution along an axis, which meet the same taps of the kernel."""

    first: int
    pixels: int
    start: int
    stride: int
    taps: int
    before: int
    behind: int

    def own(self) -> slice:
        """Its taps of a kernel that is turned round."""
        return slice(self.start, None, self.stride)


def _phases(kernel: int, stride: int, pad: int, inputs: int, outputs: int) -> Iterator[_Phase]:
    """Yield the phases along an axis: output ``stride * i + tap - pad`` sees input i."""
    for first in range(min(stride, outputs)):
        tap, nearest = (first + pad) % stride, (first + pad) // stride
        taps, pixels = len(range(tap, kernel, stride)), len(range(first, outputs, stride))
        yield _Phase(first, pixels, (kernel - 1 - tap) % stride, stride, taps, taps - 1 - nearest,
                     nearest + pixels - inputs)


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


def _with_levels(summed: _Summation) -> _Summation:
    """Return it with int8 weights and their float32 scale by channel, if there are; of windows, one by their pixels."""
    if summed.weights is None:
        return replace(summed, factor=np.array([1 / math.prod(summed.kernel)], np.float32))
    found = lattice(np.asarray(summed.weights, np.float32), 0)
    return summed if found is None else replace(summed, levels=found[0], factor=found[1])


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


def _extent(source: TensorInfo, summed: _Summation) -> Pair:
    top, left, bottom, right = summed.pads
    height, width = ((size + before + after - dilation * (kernel - 1) - 1) // stride + 1
                     for size, before, after, dilation, kernel, stride in zip(
                         source.shape[1:], (top, left), (bottom, right), summed.dilations, summed.kernel,
                         summed.strides, strict=True))
    return height, width
