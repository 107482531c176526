"""The bias of a product in the QDQ form, as int32 levels of x_scale · w_scale, and whether it equals ONNX Runtime's.

By ONNX, an int32 bias is worth its integers times the scale that it states. ONNX Runtime's integer kernels take the
integers as they are, and quantise a float vector by the product of the scales (``weight_bias_quantization.cc``). Any
other bias it adds in float, as it does where ``alpha`` or ``beta`` is not 1.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.onnx_operators import (
    OnnxConv,
    OnnxConvTranspose,
    OnnxGemm,
    OnnxMatMul,
    OnnxOperator,
    OnnxRowProduct,
)
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before

__all__ = ["Bias", "constant_bias"]

_RELATIVE, _ABSOLUTE = 1e-2, 1e-6
"""Differences of scales up to which ONNX Runtime 1.32 takes a convolution's bias as integers (``qdq_selectors.cc``)."""

_RELATIVE_IN_FLOAT = 1e-4
"""Relative difference up to which the integers are taken where it computes in float, and the stated scale counts."""

_MAX_ERROR = 0.5
"""Levels of the result by which a bias may be missed: with the rounding of the result, less than one level in all."""


@dataclass(frozen=True, slots=True)
class Bias:
    """An int32 bias of one element, or one per output channel; ``exact`` where ONNX Runtime computes in integers."""

    levels: np.ndarray
    exact: bool = True


def constant_bias(group: QdqGroup, graph: Graph, name: str, x: Tensor, weight_scale: np.ndarray) -> Bias:
    """Return the bias called ``name`` of a convolution, or of a matrix product whose rows all have the same.

    Raises
    ------
    UnsupportedNodeError
        If it is no int32 vector at the product of the scales.
    BadModelError
        If its scales are neither one nor one per element.
    """
    operator, source = group.node.operator, dequantise_before(graph, name)
    alpha, beta = (operator.alpha, operator.beta) if isinstance(operator, OnnxGemm) else (1.0, 1.0)
    if source is not None:
        values = quantisation.constant(graph, source, source.inputs[0], "bias")
        scale = quantisation.scales(graph, source, source.inputs[1])
        if scale.size not in (1, values.size):
            raise BadModelError(f"Bias of node {group.node.name!r} must have 1 scale or {values.size}")
        exact = values.dtype == np.int32
    else:
        values = quantisation.constant(graph, group.node, name, "bias")
        scale = np.ones(1, np.float32)
        exact = values.dtype == np.float32 and values.ndim == 1
        if values.dtype != np.float32:
            raise group.refusal("its bias is neither int32 nor float32", "quantise the bias to int32")
    shape, values = values.shape, _one_row(group, values)
    if (isinstance(operator, OnnxMatMul) and values.size == 1 and (not shape or _columns(group, graph) != 1)) \
            or (isinstance(operator, OnnxOperator) and operator.rounded):
        exact = False   # ONNX Runtime does not fuse the Add behind such a MatMul with it.
    numbers = values.astype(np.float64)
    if source is not None:
        zero = quantisation.zero_points(graph, source, (*source.inputs, "")[2], scale.size, values.dtype.name)
        if exact and alpha == beta == 1.0 and _counts_as_integers(
                group, scale, zero, float(x.parameters[0]) * weight_scale.astype(np.float64)):
            return Bias(values.astype(np.int32))
        numbers = (numbers - zero) * scale
    return _quantised(group, numbers * beta, float(x.parameters[0]) * weight_scale.astype(np.float64) * alpha,
                      exact and alpha == beta == 1.0 and source is None)


def _counts_as_integers(group: QdqGroup, scale: np.ndarray, zero: np.ndarray, step: np.ndarray) -> bool:
    """Tell whether ONNX Runtime adds the integers of an int32 bias of a stated scale to sums in levels of ``step``.

    Its integer kernels of Gemm and MatMul read neither the scale nor the zero point. Conv has one only where
    the scale is nearly that of the sums (``CheckConvBiasScale`` in ``qdq_selectors.cc``).
    """
    operator = group.node.operator
    in_float = group.clamps or isinstance(operator, OnnxConvTranspose)
    if not in_float and (isinstance(operator, OnnxRowProduct) or not isinstance(operator, OnnxConv)):
        return True
    if zero.any():
        return False
    relative, absolute = (_RELATIVE_IN_FLOAT, 0.0) if in_float else (_RELATIVE, _ABSOLUTE)
    return len({1, scale.size, step.size}) > 2 or np.allclose(scale, step, rtol=relative, atol=absolute)


def _columns(group: QdqGroup, graph: Graph) -> int:
    """Return the output channels of a MatMul; 0 where they are not known."""
    return (graph.tensors[group.node.output].shape or (0,))[-1]


def _one_row(group: QdqGroup, values: np.ndarray) -> np.ndarray:
    """Return a bias as a vector; of a matrix all rows must be the same."""
    if values.ndim < 2:
        return values.reshape(-1)
    rows = values.reshape(-1, values.shape[-1])
    if (rows != rows[0]).any():
        raise group.refusal("each row of its result has another bias", "add it behind the product")
    return rows[0]


def _quantised(group: QdqGroup, numbers: np.ndarray, step: np.ndarray, exact: bool) -> Bias:
    """Return a bias of real numbers in steps of one level, or one per output channel."""
    if numbers.size == 1 and step.size > 1:
        numbers = np.broadcast_to(numbers, step.size)
    if step.size not in (1, numbers.size):
        raise group.refusal(f"its bias has {numbers.size} elements and its weights {step.size} scales",
                            "give it one element per output channel")
    levels = np.rint(numbers.astype(np.float32) / step.astype(np.float32)) if exact else np.rint(numbers / step)
    if not np.all(np.abs(levels) < 2.0**31):
        raise group.refusal("its bias at the product of the scales does not fit int32", "use a larger scale")
    if not exact and (np.abs(levels * step - numbers) / float(group.scale)).max(initial=0) > _MAX_ERROR:
        raise group.refusal("one step of its sums exceeds one level of its result, so int32 cannot represent its bias",
                            "give input, weights and output scales that are closer together")
    return Bias(levels.astype(np.int32), exact)
