"""Reading of a ConvTranspose's window and weights."""

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import ExactWindow, QConvTranspose
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxConvTranspose
from tilewright.compiler.network.transposed import transposed_shape

__all__ = ["transposed_operator", "transposed_result", "transposed_weights"]


def transposed_weights(graph: Graph, node: Node, name: str, scale: str, zero_point: str, groups: int,
                       ) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (C, O // groups, kernel height, width) less their zero point, and float32 scales: one, or O.

    Scales along axis 1 are O // groups, the same for every group: of output channel g (O // groups) + j it is number j.
    They are int8, or int16 of nine bits where they do not fit.

    Raises
    ------
    UnsupportedNodeError
        If the datapath has no such weights.
    """
    values = quantisation.constant(graph, node, name, "weight")
    factors = quantisation.scales(graph, node, scale)
    zero = quantisation.zero_points(graph, node, zero_point, factors.size, values.dtype.name)
    if values.dtype.name not in quantisation.INTEGERS or values.ndim != 4 or not values.size:
        raise UnsupportedNodeError(node.name, node.op, f"its weights are {values.dtype} of {values.ndim} dimensions",
                                   "use weights of 8 bits, and convolutions over two dimensions")
    if factors.size not in (1, values.shape[1]):
        raise UnsupportedNodeError(node.name, node.op, "the scales of its weights do not belong to its output channels",
                                   "quantise the weights per tensor")
    levels = values.astype(np.int16) - zero.astype(np.int16).reshape(1, -1, 1, 1)
    fits = levels.min() >= -128 and levels.max() <= 127
    return levels.astype(np.int8) if fits else levels, np.tile(factors, groups) if factors.size > 1 else factors


def transposed_operator(node: Node, operator: OnnxConvTranspose, kernel: tuple[int, ...], size: tuple[int, ...],
                        ) -> QConvTranspose:
    """Return the QConvTranspose that has the window of ``operator``, the one of ``node``, over an image of ``size``.

    Raises
    ------
    BadModelError
        If it has no window of two dimensions.
    """
    strides, dilations, pads = operator.strides, operator.dilations, operator.pads
    padding = operator.output_padding
    wanted = operator.output_shape
    if len(size) == 2 and [len(each) for each in (strides, dilations, padding)] == [2, 2, 2] \
            and (wanted is None or len(wanted) >= 2) and (wanted is not None or operator.auto_pad != "NOTSET"):
        pads, padding = _padded(operator, kernel, size)
    if [len(each) for each in (strides, dilations, pads, padding)] != [2, 2, 4, 2]:
        raise BadModelError(f"Window of node {node.name!r} must have two dimensions and four pads")
    if min(*pads, *padding) < 0 or min(*strides, *dilations) < 1:
        raise BadModelError(f"Window of node {node.name!r} must have strides and dilations of at least 1, and no "
                            "negative pads")
    window = ExactWindow(kernel=(kernel[0], kernel[1]), strides=(strides[0], strides[1]),
                         dilations=(dilations[0], dilations[1]), pads=(pads[0], pads[1], pads[2], pads[3]))
    return QConvTranspose(window=window, output_padding=(padding[0], padding[1]), groups=int(operator.group))


def _padded(operator: OnnxConvTranspose, kernel: tuple[int, ...], size: tuple[int, ...],
            ) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pads and the output's padding that make the size that is asked for, as ONNX Runtime splits them."""
    before, after, extra = [], [], []
    upper = operator.auto_pad == "SAME_UPPER"
    for axis in range(2):
        stride = operator.strides[axis]
        free = (size[axis] - 1) * stride + operator.dilations[axis] * (kernel[axis] - 1) + 1 \
            + operator.output_padding[axis]
        wanted = free
        if operator.output_shape is not None:
            wanted = operator.output_shape[-2:][axis]
        elif operator.auto_pad != "VALID":
            wanted = size[axis] * stride
        total = max(0, free - wanted)
        before.append(total // 2 if upper else total - total // 2)
        after.append(total - before[-1])
        more = wanted - free if operator.output_shape is not None else 0
        extra.append(operator.output_padding[axis] + max(0, more))
    return (*before, *after), tuple(extra)


def transposed_result(graph: Graph, node: Node, operator: QConvTranspose, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the result of a QConvTranspose, the operator of ``node``.

    Raises
    ------
    BadModelError
        If its weights do not fit, or nothing is left of the output.
    """
    weights, groups, window = graph.constants[node.inputs[1]], operator.groups, operator.window
    if len(shape) != 4 or weights.shape[0] != shape[1] or weights.shape[0] % groups:
        raise BadModelError(f"Weights of node {node.name!r} must fit {list(shape)} in {groups} groups, "
                            f"not have the shape {list(weights.shape)}")
    result = transposed_shape((shape[1], shape[2], shape[3]), weights.shape[1] * groups, window.kernel,
                              window.strides, window.pads, window.dilations, operator.output_padding)
    if min(result) < 1:
        raise BadModelError(f"Node {node.name!r} must have an output with elements, not {list(result)}")
    return (1, *result)
