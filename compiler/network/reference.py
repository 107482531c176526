"""The integer reference: evaluates layers and networks exactly, in agreement with every engine and ONNX Runtime.

Sums of products are exact in float32 as long as they stay below 2**24, and float32 has BLAS: |x · w| ≤ 2**14, so
products over 1023 terms are exact, and longer ones are cut into such pieces and added in integers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layer_uses import NO_WORDS
from tilewright.compiler.network.layers import (
    ChannelFactor,
    ComputedScale,
    CoreLayer,
    Layer,
    MatrixFactor,
    MaxPooling,
    Network,
    Pads,
    Pair,
    Requantisation,
    Residual,
)
from tilewright.compiler.network.operands import Values, from_memory
from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.rows.row_norm import RowNorm
from tilewright.isa.rows.row_softmax import RowSoftmax
from tilewright.isa.semantics.act_rows import NormNumbers, norm_rows, softmax_rows
from tilewright.isa.words.word_curve import follow_curve
from tilewright.isa.words.word_planes import LOWER_OFFSET, planes_of, requantise_words

__all__ = ["accumulate", "requantise", "residual_table", "run_core_layer", "run_layer", "run_network"]

_EXACT_TERMS = 1023
_PATCH_BYTES = 1 << 25


def run_network(network: Network, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Evaluate a network.

    Parameters
    ----------
    network : Network
    inputs : mapping of str to ndarray
        An array for each of ``network.inputs``, by its name: int8 of shape (C, H, W), or of the tensor's own type
        and dims.

    Returns
    -------
    dict of str to ndarray
        Every tensor of ``network.tensors``, of the same types and shapes.

    Raises
    ------
    ValueError
        If an input is missing, or has another type or shape.
    """
    values = Values(network.tensors)
    for info in network.inputs:
        array = inputs.get(info.name)
        if array is None or array.dtype != info.dtype or array.shape != info.array_shape:
            found = "nothing" if array is None else f"{array.dtype} {array.shape}"
            raise ValueError(f"Input {info.name!r} must be {info.dtype} {info.array_shape}, not {found}")
        values[info.name] = array
    for name in network.constants.keys() & network.tensors.keys():
        values[name] = from_memory(network.constants[name].tobytes(), network.tensors[name])
    for layer in network.layers:
        if isinstance(layer, CoreLayer):
            values[layer.output] = run_core_layer(layer, network, values)
            continue
        other = values[layer.residual.tensor].reshape(layer.conv_shape) if layer.residual is not None else None
        factor = values[layer.factor.tensor] if layer.factor is not None else None
        if layer.words != NO_WORDS:
            for name, plane in _run_words(layer, values):
                values[name] = plane.reshape(network.tensors[name].array_shape)
            continue
        result = run_layer(layer, values[layer.input].reshape(layer.in_shape), other, factor)
        for name in layer.writes:
            values[name] = result.reshape(network.tensors[name].array_shape)
    return values


def _run_words(layer: Layer, values: Values) -> Iterator[tuple[str, np.ndarray]]:
    """Evaluate a layer with an input or an output of 16 bits; yield what it writes by name, (C, H, W)."""
    if isinstance(layer.factor, ChannelFactor):
        layer = _with_weights(layer, layer.factor, values[layer.factor.tensor])
    if layer.words.addend is not None:
        total = _weighted_sum(layer, values)
    else:
        total = _sum_of_planes(layer, [values[name].reshape(layer.in_shape) for name in layer.reads])
    with np.errstate(over="ignore"):
        total = total + layer.bias[:, None, None]
    scale = layer.requantisation
    if layer.words.outputs == 1:
        yield layer.output, requantise(scale, total)
        return
    words = requantise_words(total.transpose(1, 2, 0), np.zeros_like(layer.bias), scale.scale, scale.zero_point,
                             (scale.low, scale.high)).transpose(2, 0, 1)
    if layer.table is not None:
        words = follow_curve(words, layer.table.view("<u8"))
    yield from zip(layer.writes, planes_of(words), strict=True)


def _weighted_sum(layer: Layer, values: Values) -> np.ndarray:
    """Return the sums of a layer that adds two tensors, int32 (C, H, W)."""
    words = layer.words
    assert words.addend is not None
    planes = [values[name].reshape(layer.in_shape).astype(np.int32) if name else np.zeros(layer.in_shape, np.int32)
              for name in words.stored(layer.input)]
    passes = [sum(weight * plane for weight, plane in zip(words.addend.weights, planes[first:], strict=False))
              for first in (0, words.planes_apart)]
    return np.asarray(256 * passes[0] + passes[1], np.int32)


def _sum_of_planes(layer: Layer, planes: list[np.ndarray]) -> np.ndarray:
    """Return the sums of a layer of one input, of bytes or of words, int32 (C, H, W)."""
    pads = [layer.pad_value] if len(planes) == 1 else [
        int(each) for each in planes_of(np.array(layer.pad_value, np.int16))]
    no_bias = replace(layer, bias=np.zeros_like(layer.bias))
    sums = [accumulate(replace(no_bias, pad_value=pad), plane) for plane, pad in zip(planes, pads, strict=True)]
    return sums[0] if len(sums) == 1 else (sums[0] << 8) + sums[1]


def run_core_layer(layer: CoreLayer, network: Network, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Evaluate a layer of the host core, as its kernel does, on the tensors ``values`` of ``network``."""
    call = core_call(layer, network.tensors, network.constants)
    arrays = [None if not operand.present else
              (values[name] if name in network.tensors else network.constants[name]).reshape(operand.dims)
              for name, operand in zip(layer.inputs, call.inputs, strict=True)]
    return run_call(call, arrays).reshape(network.tensors[layer.output].array_shape)


def run_layer(layer: Layer, x: np.ndarray, residual: np.ndarray | None = None,
              factor: np.ndarray | None = None) -> np.ndarray:
    """Evaluate one layer.

    Parameters
    ----------
    layer : Layer
    x : ndarray
        int8 of shape ``layer.in_shape``.
    residual : ndarray, optional
        int8 of shape ``layer.conv_shape``, if the layer adds one.
    factor : ndarray, optional
        int8 with an element per channel, if the layer multiplies by one.

    Returns
    -------
    ndarray
        int8 of shape ``layer.out_shape``.
    """
    if layer.factor is not None:
        if factor is None:
            raise ValueError(f"Layer {layer.name!r} multiplies by {layer.factor.tensor!r}, which must be given")
        layer = _of_factor(layer, layer.factor, factor)
    if layer.unit is not None:
        x = layer.unit.compute(x)
    sums = accumulate(layer, x)
    if layer.whole:
        return _bytes_of(sums)
    y = requantise(layer.requantisation, sums)
    if layer.table_first and layer.table is not None:
        y = layer.table[y.astype(np.int16) + 128]
    if layer.residual is not None:
        if residual is None:
            raise ValueError(f"Layer {layer.name!r} adds {layer.residual.tensor!r}, which must be given")
        y = residual_table(layer.residual)[y.astype(np.int16) + 128, residual.astype(np.int16) + 128]
    if layer.stage is not None and layer.table is not None:
        use = layer.stage
        y = use.stage.compute(y.transpose(1, 2, 0), use.stage.parameters(layer.table)[:len(y)],
                              use.settings).transpose(2, 0, 1)
    elif layer.table is not None and not layer.table_first:
        y = layer.table[y.astype(np.int16) + 128]
    if layer.pool is not None:
        y = _max_pool(layer.pool, y)
    return y if layer.rows is None else _rewrite_rows(layer.rows, y)


def _rewrite_rows(rows: RowSoftmax | RowNorm, y: np.ndarray) -> np.ndarray:
    """Return the softmax or the normalisation of int8 (C, H, W) along the channels."""
    pixels = np.ascontiguousarray(y.transpose(1, 2, 0))
    levels, scale, clamp = pixels.reshape(-1, len(y)), (rows.mantissa, rows.shift), (rows.zero_point, rows.low,
                                                                                    rows.high)
    found = norm_rows(levels, NormNumbers.of(rows), scale, clamp) if isinstance(rows, RowNorm) else \
        softmax_rows(levels, np.array(rows.table, np.uint32), scale, clamp)
    return found.reshape(pixels.shape).transpose(2, 0, 1)


def _bytes_of(sums: np.ndarray) -> np.ndarray:
    """Return int32 (C, H, W) as int8 (4 C, H, W): the bytes of each element, the least first, as they lie in memory."""
    return np.ascontiguousarray(sums.transpose(1, 2, 0), "<i4").view(np.int8).transpose(2, 0, 1)


def _of_factor(layer: Layer, factor: ChannelFactor | ComputedScale | MatrixFactor, values: np.ndarray) -> Layer:
    """Return ``layer`` with what these ``values`` of its factor are."""
    match factor:
        case MatrixFactor():
            return _with_matrix(layer, factor, values)
        case ChannelFactor():
            return _with_weights(layer, factor, values)
    words = values.reshape(-1, 2).view(np.uint32)
    scales = np.ldexp((words[:, 1] & (1 << MANTISSA_BITS) - 1).astype(np.float64),
                      -(words[:, 1] >> MANTISSA_BITS).astype(int)).astype(np.float32)
    weights = factor.taps * np.where(factor.negative, -127, 127).astype(np.int16).reshape(-1, 1, 1, 1)
    return replace(layer, factor=None, bias=values.reshape(-1, 2)[:, 0].astype(np.int32), weights=weights,
                   kernel=(1, 1), dilations=(1, 1),
                   requantisation=replace(layer.requantisation, scale=scales))


def _with_weights(layer: Layer, factor: ChannelFactor, values: np.ndarray) -> Layer:
    """Return ``layer`` with the weights and the bias that these ``values`` of its factor are."""
    weights = (values.reshape(-1, 1, 1, 1).astype(np.int16) - factor.zero_point) * (-1 if factor.negated else 1)
    zero = layer.pad_value - (LOWER_OFFSET if layer.words.inputs > 1 else 0)
    return replace(layer, factor=None, weights=weights, kernel=(1, 1), dilations=(1, 1),
                   bias=-zero * weights.reshape(-1).astype(np.int32))


def _with_matrix(layer: Layer, factor: MatrixFactor, values: np.ndarray) -> Layer:
    """Return ``layer`` with the weights and the bias that these ``values`` of its matrix are."""
    outputs = layer.conv_shape[0]
    if factor.packed:
        taps = _unpacked(factor, factor.packed, values, layer.in_shape[0], outputs)
    else:
        matrix = values.reshape(-1, outputs).T.astype(np.int16)
        taps = [-1 - matrix if factor.negated else matrix]
        if factor.halves > 1:
            taps.append(np.full_like(matrix, factor.constant))
    weights = np.stack(taps).sum(axis=0, dtype=np.int16)
    if factor.twice:
        weights = np.hstack([np.pad(tap, ((0, 0), (0, -tap.shape[1] % TILE_BYTES))) for tap in taps])
    bias = layer.bias.astype(np.int64)
    if not factor.raw:
        bias -= layer.pad_value * weights.sum(axis=1, dtype=np.int64)
    if factor.pairs:
        bias += sum(map(_neighbours, taps))
    return replace(layer, factor=None, weights=weights[:, :, None, None], kernel=(1, 1), dilations=(1, 1),
                   bias=bias.astype(np.int32))


def _unpacked(factor: MatrixFactor, packed: Pair, values: np.ndarray, inputs: int, outputs: int) -> list[np.ndarray]:
    """Return the weights, int16 (outputs, inputs), that the words in ``values`` are: an array for each tap."""
    clusters, lanes = packed
    inputs //= 2 if factor.twice else 1
    runs = -(-inputs // TILE_BYTES)
    words = values.transpose(1, 2, 0).reshape(-1, factor.halves, runs, lanes, clusters, TILE_BYTES)
    taps = words.transpose(1, 0, 4, 3, 2, 5).reshape(factor.halves, -1, runs * TILE_BYTES)
    return list(taps[:, :outputs, :inputs].astype(np.int16))


def _neighbours(weights: np.ndarray) -> np.ndarray:
    """Return of each row the sum of the products of each two neighbours, int64."""
    wide = weights[:, :weights.shape[1] // 2 * 2].astype(np.int64)
    return (wide[:, 0::2] * wide[:, 1::2]).sum(axis=1)


def accumulate(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Return a layer's int32 sums, bias included, of shape ``layer.conv_shape``."""
    if layer.kind == "pass":
        acc = _pad(x, layer.pads, layer.pad_value).astype(np.int32)
    elif layer.weights is None:
        windows = _windows(layer, _pad(x, layer.pads, layer.pad_value))
        acc = windows.sum(axis=(3, 4), dtype=np.int32)
    else:
        acc = _convolve(layer, layer.weights, _pad(x, layer.pads, layer.pad_value))
    # int32 wraps, here as in every other implementation.
    with np.errstate(over="ignore"):
        return acc + layer.bias[:, None, None]


def requantise(parameters: Requantisation, acc: np.ndarray) -> np.ndarray:
    """Bring int32 sums of shape (O, H, W) to int8, as ``isa.numerics.requantise`` does, or in whole numbers."""
    if parameters.integers is not None:
        scaled = parameters.integers.levels(acc)
    else:
        scaled = np.rint(acc.astype(np.float32) * parameters.scale[:, None, None])
    low, high = parameters.low - parameters.zero_point, parameters.high - parameters.zero_point
    return (np.clip(scaled, low, high).astype(np.int32) + parameters.zero_point).astype(np.int8)


def _max_pool(pool: MaxPooling, y: np.ndarray) -> np.ndarray:
    """Return the maxima of int8 (C, H, W) over the windows of ``pool``."""
    padded = _pad(y, pool.pads, -128)
    windows = sliding_window_view(padded, pool.kernel, axis=(1, 2))
    return windows[:, ::pool.strides[0], ::pool.strides[1]].max(axis=(3, 4))


@lru_cache(maxsize=64)
def residual_table(residual: Residual) -> np.ndarray:
    """Return the sum of every pair of int8 values, as ``isa.numerics.add_residual`` computes it.

    Returns
    -------
    ndarray
        int8 of shape (256, 256): row 128 + own value, column 128 + residual.

    Raises
    ------
    ValueError
        If a scale or the offset is outside what the datapath's numbers hold.
    """
    bias = 128 if residual.unsigned else 0
    settings = residual.settings
    offset = np.float32(settings.signed_offset * 2.0**-settings.offset_shift)
    values = np.arange(-128, 128) + bias
    partial = _multiply_add(values, residual.scale_b, offset)  # (256,)
    total = _multiply_add(values[:, None], residual.scale_a, partial)  # (256, 256)
    table = np.clip(np.rint(total) - bias, residual.low, residual.high).astype(np.int8)
    table = np.ascontiguousarray(table.T) if residual.own_second else table
    table.setflags(write=False)
    return table


def _multiply_add(factor: np.ndarray, scale: np.float32, addend: np.ndarray | np.float32) -> np.ndarray:
    """Return ``factor * scale + addend`` rounded once to float32, for factors of 9 bits.

    The product is exact in float64. The sum is rounded to odd there: where it is inexact, to the neighbour whose last
    bit is set. Rounding that to float32 is the same as rounding once (Boldo and Melquiond, IEEE TC 57(4), 2008).
    """
    product, other = np.broadcast_arrays(factor * np.float64(scale), np.float64(addend))
    total = product + other
    # Knuth's two-sum: what the addition lost, exactly.
    back = total - product
    lost = (product - (total - back)) + (other - back)
    even = (total.view(np.int64) & 1) == 0
    return np.where((lost != 0) & even, np.nextafter(total, np.copysign(np.inf, lost)), total).astype(np.float32)


def _pad(x: np.ndarray, pads: Pads, value: int) -> np.ndarray:
    top, left, bottom, right = pads
    return np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=value) if any(pads) else x


def _windows(layer: Layer, padded: np.ndarray) -> np.ndarray:
    """Return a view (C, H, W, kernel height, kernel width) of the padded input."""
    (stride_y, stride_x), (dilation_y, dilation_x) = layer.strides, layer.dilations
    extent = tuple(d * (k - 1) + 1 for k, d in zip(layer.kernel, layer.dilations, strict=True))
    windows = sliding_window_view(padded, extent, axis=(1, 2))
    return windows[:, ::stride_y, ::stride_x, ::dilation_y, ::dilation_x]


def _convolve(layer: Layer, kernels: np.ndarray, padded: np.ndarray) -> np.ndarray:
    """Return Σ x · w, int32 of shape ``layer.conv_shape``."""
    outputs, height, width = layer.conv_shape
    windows = _windows(layer, padded)
    weights = kernels.reshape(layer.groups, outputs // layer.groups, -1)
    acc = np.empty((layer.groups, outputs // layer.groups, height, width), np.int32)
    per_group = windows.shape[0] // layer.groups
    for group in range(layer.groups):
        patch = windows[group * per_group:(group + 1) * per_group]
        for rows in _blocks(height, per_group * width * 4 * layer.kernel[0] * layer.kernel[1]):
            columns = patch[:, rows].transpose(0, 3, 4, 1, 2).reshape(weights.shape[2], -1).astype(np.float32)
            acc[group, :, rows] = _exact_product(weights[group], columns).reshape(-1, *acc[group, :, rows].shape[1:])
    return acc.reshape(outputs, height, width)


def _blocks(height: int, row_bytes: int) -> Iterator[slice]:
    """Cut output rows into blocks whose patches fit into the cache rather than the memory."""
    rows = max(1, _PATCH_BYTES // row_bytes)
    for start in range(0, height, rows):
        yield slice(start, min(start + rows, height))


def _exact_product(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``weights @ columns`` as int32; int8 or 9 bits of int16 (O, K), float32 (K, N) that holds int8 values."""
    acc = np.zeros((weights.shape[0], columns.shape[1]), np.int32)
    terms = _EXACT_TERMS if weights.dtype == np.int8 else _EXACT_TERMS // 2
    for start in range(0, weights.shape[1], terms):
        piece = slice(start, start + terms)
        acc += (weights[:, piece].astype(np.float32) @ columns[piece]).astype(np.int32)
    return acc
