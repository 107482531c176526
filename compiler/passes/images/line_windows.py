"""Convolution, pooling and normalisation over one dimension become those over images of one row."""

from collections.abc import Callable
from typing import Any

from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAveragePool,
    OnnxBatchNormalization,
    OnnxConv,
    OnnxConvInteger,
    OnnxConvTranspose,
    OnnxGlobalAveragePool,
    OnnxGlobalMaxPool,
    OnnxMaxPool,
    OnnxOperator,
)
from tilewright.compiler.network.image_forms import LINE
from tilewright.compiler.passes.images.constant_changes import LineWeights
from tilewright.compiler.passes.images.state import ImageState

__all__ = ["windowed"]

_Weighted = OnnxConv | OnnxConvInteger | OnnxConvTranspose
_Others = OnnxAveragePool | OnnxMaxPool | OnnxGlobalAveragePool | OnnxGlobalMaxPool | OnnxBatchNormalization
_ROW = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0, "output_shape": 1}
"""Attributes of windows, and what each is downwards in an image of one row."""


def windowed(state: ImageState, node: Node) -> Callable[[ImageState, Node], None] | None:
    """Return a function that adds the node over an image to a state, for a node over one dimension."""
    operator = node.operator
    if not isinstance(operator, _Weighted | _Others):
        return None
    shape = state.shape(node.inputs[0])
    if not (LINE.suits(shape) if shape is not None else state.form(node.inputs[0]) == LINE):
        return None
    if isinstance(operator, _Others):
        return _pooled
    weights = node.inputs[1]
    return _convolved if state.fixed(weights) and len(state.shape(weights) or ()) == 3 else None


def _pooled(state: ImageState, node: Node) -> None:
    x = state.image(node.inputs[0], LINE)
    state.add(node, _over_rows(node), (x, *node.inputs[1:]), LINE)


def _convolved(state: ImageState, node: Node) -> None:
    weights = state.changed(node.inputs[1], LINE.suffix, LineWeights())
    state.add(node, _over_rows(node), (state.image(node.inputs[0], LINE), weights, *node.inputs[2:]), LINE)


def _over_rows(node: Node) -> OnnxOperator:
    """Return a node's operator with the attributes of its window in two dimensions."""
    assert isinstance(node.operator, OnnxOperator)
    changes: dict[str, Any] = {}
    for name, values in node.operator.attributes.items():
        if name in _ROW and values:
            changes[name] = (_ROW[name], *values)
        elif name == "pads":
            changes[name] = (0, values[0], 0, values[1])
    return node.operator.with_attributes(**changes)
