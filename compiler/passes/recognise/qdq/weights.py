"""Recognition of products with constants in the QDQ form: convolutions, matrix products, factors per channel.

Source: ``weight_bias_quantization.cc`` of ONNX Runtime.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import bias_vector, standing_for, weight_layout, weighted_node
from tilewright.compiler.graph.integer_operators import QConv
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxConvTranspose, OnnxDequantizeLinear
from tilewright.compiler.graph.transposed_windows import transposed_operator, transposed_weights
from tilewright.compiler.passes.recognise.fold_affine import affine_of
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.qdq.bias import constant_bias
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before
from tilewright.compiler.passes.recognise.qdq.idle_channels import live_weights

__all__ = ["affine_node", "scaled", "transposed", "weighted"]

_MAX_OFFSET_ERROR = 0.5
"""Levels by which a constant sum may be missed: with the rounding of the result, less than one level in all."""


def weighted(group: QdqGroup, graph: Graph, node: Node, x: Tensor) -> tuple[Graph, Node]:
    """Return the QConv or QDense of a Conv, Gemm or MatMul, and the graph with its constants."""
    bias_name = (*node.inputs, "", "")[2] or group.bias
    axis, operator = weight_layout(node)
    (values, scale, zero), along = _weights(group, graph, node)
    packed = quantisation.weights(graph, node, values, scale, zero, axis)
    if packed[1].size > 1 and along % packed[0].ndim != axis:
        raise group.refusal("the scales of its weights do not belong to its output channels",
                            f"quantise the weights along axis {axis}")
    operator, levels = operator.of_type(group.kind.dtype), None
    if bias_name:
        packed = live_weights(group, graph, bias_name, x, packed)
        bias = constant_bias(group, graph, bias_name, x, packed[1])
        levels, operator = bias.levels, replace(operator, exact=bias.exact)
    elif operator.alpha != 1.0:
        operator = replace(operator, exact=False)   # ONNX Runtime has no integer kernel for it.
    if group.addition is not None:
        node = node.with_(onnx_nodes=node.onnx_nodes + group.addition.onnx_nodes)
    return weighted_node(graph, node, x.name, operator, packed, levels)


def _weights(group: QdqGroup, graph: Graph, node: Node) -> tuple[tuple[str, ...], int]:
    """Return the names of weights, scale and zero point, and the axis that the scales are of."""
    source = dequantise_before(graph, node.inputs[1])
    if source is None:
        raise group.refusal("its weights are float", "quantise the weights to int8")
    assert isinstance(source.operator, OnnxDequantizeLinear)
    return (*source.inputs, "")[:3], source.operator.axis


def transposed(group: QdqGroup, graph: Graph, node: Node, operator: OnnxConvTranspose, x: Tensor,
               ) -> tuple[Graph, Node]:
    """Return the QConvTranspose of a ConvTranspose, and the graph with its constants."""
    (values, scale, zero), along = _weights(group, graph, node)
    groups = operator.group
    levels, factors = transposed_weights(graph, node, values, scale, zero, groups)
    if factors.size > 1 and along % levels.ndim != 1:
        raise group.refusal("the scales of its weights do not belong to its output channels",
                            "quantise the weights along axis 1")
    bias_name = (*node.inputs, "", "")[2]
    constants = {"weights": levels, "scale": factors}
    if bias_name:
        constants["bias"] = bias_vector(
            node, constant_bias(group, graph, bias_name, x, factors).levels, levels.shape[1] * groups)
    names = {f"{node.output}:{name}": value for name, value in constants.items()}
    # ONNX Runtime has no integer kernel for it.
    integer = replace(transposed_operator(node, operator, levels.shape[2:], (x.shape or ())[2:]), exact=False)
    return graph.with_constants(names), standing_for(node, integer.of_type(group.kind.dtype), x.name, *names,
                                                           *("",) * (3 - len(names)))


def scaled(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return a 1x1 convolution for s x + t with constants per channel; None if it is something else.

    It is depthwise, or one of a single channel, which a vector of constants makes several of.
    """
    fixed = {name: values for name in group.node.inputs
             if (values := quantisation.fixed_numbers(group.graph, name)) is not None}
    found = affine_of(group.graph.with_constants(fixed), group.node, widens=True)
    if found is None or len(group.graph.tensors[found[0]].shape or ()) != 4:
        return None
    x, (name, factor, offset) = group.data_input(found[0]), found
    groups = (group.graph.tensors[name].shape or (1, 1))[1]
    factor, offset = (np.broadcast_to(each, max(groups, factor.size)) for each in (factor, offset))
    graph = quantisation.with_types(group.graph, x, group.kind)
    graph, node = affine_node(group, graph, (x, group.kind), (factor, offset), groups)
    inferred(graph, node)
    return graph, (node,)


def affine_node(group: QdqGroup, graph: Graph, tensors: tuple[Tensor, Tensor], constants: tuple[np.ndarray, np.ndarray],
                groups: int | None = None) -> tuple[Graph, Node]:
    """Return the 1x1 convolution that makes the second of two images of the first: s x + t.

    ``constants`` are s and t, a float64 vector each with an element per channel. The convolution is depthwise, or has
    ``groups``.
    """
    (x, y), (factor, offset) = tensors, constants
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        raise group.refusal("its constants give infinity or NaN", "use finite constants")
    levels, scale, bias, error = _with_offset(factor, offset, float(x.parameters[0]), float(group.scale))
    if error.max() > _MAX_OFFSET_ERROR or np.abs(bias).max() >= 2.0**30:
        raise group.refusal("one level of its input is so many levels of its output that its constants do not fit "
                            "int32 with int8 weights", "give input and output scales that are closer together")
    weights = (levels * np.sign(factor)).astype(np.int8).reshape(-1, 1, 1, 1)
    conv = QConv(groups=groups or factor.size, exact=False).of_type(group.kind.dtype)
    graph, node = weighted_node(graph, group.node.with_(output=y.name), x.name, conv, (weights, scale),
                                bias.astype(np.int32))
    return graph, group.clamped(node)


def _with_offset(factor: np.ndarray, offset: np.ndarray, x_scale: float, y_scale: float,
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return weights from 1, their float32 scales and biases for |s| x + t per channel, all as vectors.

    The product of a weight w and its scale is |s| whatever w is, but the bias counts in steps of x_scale |s| / w. So w
    is the one of 1 .. 127 whose steps come closest to t. The last vector is by how many levels of y they miss it.
    """
    # Where w does not matter it is 64, so that its scale is |s| to the last bit.
    candidates = np.array([64, *(each for each in range(127, 0, -1) if each != 64)])
    size = np.where(factor == 0, y_scale / x_scale, np.abs(factor))
    steps = x_scale * size / candidates[:, None]
    biases = np.rint(offset / steps)
    errors = np.abs(biases * steps - offset) / y_scale
    best, channels = errors.argmin(axis=0), np.arange(size.size)
    levels = candidates[best]
    return levels, (size / levels).astype(np.float32), biases[best, channels], errors[best, channels]
