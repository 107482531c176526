"""Reading of scales and zero points from constants, with every possible error."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxMatMul
from tilewright.compiler.network.layers import TensorInfo

__all__ = [
    "INTEGERS", "activation", "constant", "dequantised", "fixed_numbers", "number", "scales", "tensor_info", "weights",
    "with_types", "zero_points",
]

INTEGERS = ("int8", "uint8")


def constant(graph: Graph, node: Node, name: str, what: str) -> np.ndarray:
    """Return the value of the constant ``name``, an input of ``node``."""
    if name not in graph.constants:
        raise UnsupportedNodeError(node.name, node.op, f"its {what} {name!r} is computed while the model runs",
                                   "make it a constant")
    return graph.constants[name]


def dequantised(node: Node, operator: OnnxDequantizeLinear, constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (q - zero point) · scale in float32, as ONNX defines it; ``operator`` is that of ``node``."""
    levels, scale, *zero = (constants[name] for name in node.inputs if name)
    axis = int(operator.axis)
    if any(each.size != scale.size for each in zero) or (scale.size != 1 and (
            not -levels.ndim <= axis < levels.ndim or scale.ndim != 1 or scale.size != levels.shape[axis])):
        raise BadModelError(f"Node {node.name!r} ({node.op}) must have one scale and zero point, or one for each of "
                            f"axis {axis}, not {scale.size} for the shape {list(levels.shape)!r}")
    if scale.size > 1:
        shape = [1] * levels.ndim
        shape[axis] = -1
        scale, zero = scale.reshape(shape), [each.reshape(shape) for each in zero]
    difference = levels.astype(np.int64) - (zero[0].astype(np.int64) if zero else 0)
    return (difference.astype(np.float32) * scale.astype(np.float32)).astype(np.float32)


def fixed_numbers(graph: Graph, name: str) -> np.ndarray | None:
    """Return a constant, or the floats of one that is dequantised; None for what is computed."""
    source = graph.producer(name)
    if source is not None and isinstance(source.operator, OnnxDequantizeLinear) and graph.all_constant(source.inputs):
        return dequantised(source, source.operator, graph.constants)
    return graph.constants.get(name)


def scales(graph: Graph, node: Node, name: str) -> np.ndarray:
    """Return the scale called ``name``, of one or more channels, as a float32 vector."""
    values = constant(graph, node, name, "scale")
    if values.dtype != np.float32:
        raise UnsupportedNodeError(node.name, node.op, f"its scale {name!r} is {values.dtype}",
                                   "quantise with float32 scales")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if wrong.size or not values.size:
        found = wrong.ravel()[0].item() if wrong.size else "nothing"
        raise BadModelError(f"Scale {name!r} of node {node.name!r} must be positive and finite, not {found!r}")
    return values.reshape(-1)


def zero_points(graph: Graph, node: Node, name: str, count: int, dtype: str) -> np.ndarray:
    """Return the zero point called ``name``, a vector of ``count``; zeros of ``dtype`` if it is absent."""
    if not name:
        return np.zeros(count, dtype or "uint8")
    values = constant(graph, node, name, "zero point").reshape(-1)
    if values.size != count:
        raise BadModelError(f"Zero point {name!r} of node {node.name!r} must have {count} elements like its scale, "
                            f"not {values.size}")
    return values


def activation(graph: Graph, node: Node, tensor: str, scale: str, zero_point: str) -> Tensor:
    """Return the type of ``tensor`` with one scale and one zero point for all of it."""
    values = scales(graph, node, scale)
    if values.size != 1:
        raise UnsupportedNodeError(node.name, node.op, f"the activation {tensor!r} has {values.size} scales",
                                   "quantise activations per tensor")
    zero = zero_points(graph, node, zero_point, 1, graph.tensors[tensor].dtype)
    if zero.dtype.name not in INTEGERS:
        raise UnsupportedNodeError(node.name, node.op, f"the activation {tensor!r} is {zero.dtype}",
                                   "quantise activations to int8 or uint8")
    return replace(graph.tensors[tensor], dtype=zero.dtype.name, scale=np.float32(values[0]), zero_point=int(zero[0]))


def number(graph: Graph, node: Node, name: str, what: str) -> int | float:
    """Return a constant of one element.

    Raises
    ------
    BadModelError
        If it has another number of them.
    """
    values = constant(graph, node, name, what)
    if values.size != 1:
        raise BadModelError(f"The {what} of node {node.name!r} ({node.op}) must be one number, not {values.size}")
    return values.item()


def with_types(graph: Graph, *types: Tensor) -> Graph:
    """Return ``graph`` with quantised types for some tensors; one that has another already is an error."""
    for tensor in types:
        known = graph.tensors[tensor.name]
        if known.quantised and not known.same_quantisation(tensor):
            raise BadModelError(
                f"Tensor {tensor.name!r} must be written and read with the same quantisation, not with "
                f"{_describe(known)} and with {_describe(tensor)}")
        graph = graph.with_tensors(tensor)
    return graph


def _describe(tensor: Tensor) -> str:
    return f"scale {tensor.scale!s}, zero point {tensor.zero_point} ({tensor.dtype})"


def weights(graph: Graph, node: Node, name: str, scale: str, zero_point: str, axis: int,
            ) -> tuple[np.ndarray, np.ndarray]:
    """Return weights less their zero point, output channels first, and their float32 scales: one, or one per channel.

    They are int8, or int16 of nine bits where they do not fit.

    ``axis`` is that of the output channels. Weights of two dimensions are transposed where it is 1.
    """
    values = constant(graph, node, name, "weight")
    if values.dtype.name not in INTEGERS:
        raise UnsupportedNodeError(node.name, node.op, f"its weights are {values.dtype}",
                                   "quantise weights to int8, symmetric (weight_type=QuantType.QInt8)")
    if isinstance(node.operator, OnnxMatMul) and values.ndim != 2:
        raise UnsupportedNodeError(node.name, node.op, f"its weights have the shape {list(values.shape)}",
                                   "use weights of two dimensions")
    if values.ndim < 2 or (axis and values.ndim != 2) or not values.size:
        raise BadModelError(f"Weights {name!r} of node {node.name!r} must have output and input channels, "
                            f"not the shape {list(values.shape)}")
    found = scales(graph, node, scale)
    values = values.T if axis else values
    if found.size not in (1, values.shape[0]):
        raise BadModelError(f"Weights {name!r} of node {node.name!r} must have 1 scale or {values.shape[0]}, "
                            f"one per output channel, not {found.size}")
    zero = zero_points(graph, node, zero_point, found.size, values.dtype.name).astype(np.int16)
    # Sums of (x - z) · (w - zero) want w - zero, whatever w itself is.
    levels = values.astype(np.int16) - zero.reshape(-1, *(1,) * (values.ndim - 1))
    fits = levels.min() >= -128 and levels.max() <= 127
    return np.ascontiguousarray(levels, np.int8 if fits else np.int16), found


def tensor_info(tensor: Tensor) -> TensorInfo:
    """Return the back end's description of an int8 tensor of a batch of one."""
    if tensor.scale is None or tensor.zero_point is None:
        raise UnsupportedModelError(f"Tensor {tensor.name!r} must have a scale and a zero point, and no operator gives "
                                    "it these")
    shape = tensor.shape or ()
    if len(shape) not in (2, 4) or shape[0] != 1:
        raise UnsupportedModelError(f"Tensor {tensor.name!r} must have the shape (1, channels) or (1, channels, "
                                    f"height, width), not {list(shape)}")
    if min(shape) < 1:
        raise UnsupportedModelError(f"Tensor {tensor.name!r} must hold at least one value, not have the shape "
                                    f"{list(shape)}; remove the nodes that compute from it")
    channels, height, width = (*shape[1:], 1, 1)[:3]
    return TensorInfo(name=tensor.name, shape=(channels, height, width), scale=tensor.scale,
                      zero_point=tensor.zero_point, unsigned=tensor.unsigned)
