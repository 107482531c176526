"""Reading of what a ConvTranspose says of its window and weights; no pass of its own."""

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.network.transposed import transposed_shape


def transposed_weights(graph: Graph, node: Node, name: str, scale: str, zero_point: str, groups: int,
                       ) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 weights (C, O // groups, kernel height, kernel width) and their float32 scales: one, or O.

    Raises
    ------
    UnsupportedNodeError
        If the datapath has no such weights.
    """
    values = quantisation.constant(graph, node, name, "weight")
    factors = quantisation.scales(graph, node, scale)
    zero = quantisation.zero_points(graph, node, zero_point, factors.size, values.dtype.name)
    if values.dtype != np.int8 or values.ndim != 4 or zero.any():
        raise UnsupportedNodeError(node.name, node.op, f"its weights are {values.dtype} of {values.ndim} dimensions",
                                   "use symmetric int8 weights, and convolutions over two dimensions")
    if factors.size not in (1, values.shape[1]) or (factors.size > 1 and groups > 1):
        raise UnsupportedNodeError(node.name, node.op, "the scales of its weights are not those of its output channels",
                                   "quantise the weights per tensor")
    return values, factors


def transposed_attrs(node: Node, kernel: tuple[int, ...]) -> dict[str, object]:
    """Return the window as a QConvTranspose states it.

    Raises
    ------
    UnsupportedNodeError
        If the output's size is stated instead of the padding.
    """
    attrs = node.attrs
    if "output_shape" in attrs or attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnsupportedNodeError(node.name, node.op, "its padding follows from its output's size", "state the pads")
    window: dict[str, tuple[int, ...]] = {
        "kernel": tuple(kernel), "strides": tuple(attrs.get("strides", (1, 1))),
        "dilations": tuple(attrs.get("dilations", (1, 1))), "pads": tuple(attrs.get("pads", (0, 0, 0, 0))),
        "output_padding": tuple(attrs.get("output_padding", (0, 0)))}
    if [len(window[name]) for name in ("strides", "dilations", "pads", "output_padding")] != [2, 2, 4, 2]:
        raise BadModelError(f"Window of node {node.name!r} must have two dimensions and four pads")
    if min(*window["pads"], *window["output_padding"]) < 0 or min(*window["strides"], *window["dilations"]) < 1:
        raise BadModelError(f"Window of node {node.name!r} must have strides and dilations of at least 1, and no "
                            "negative pads")
    return {**window, "groups": int(attrs.get("group", 1))}


def transposed_result(graph: Graph, node: Node, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of what a QConvTranspose writes.

    Raises
    ------
    BadModelError
        If its weights do not fit, or nothing is left of the output.
    """
    weights, attrs = graph.constants[node.inputs[1]], node.attrs
    if len(shape) != 4 or weights.shape[0] != shape[1] or weights.shape[0] % attrs["groups"]:
        raise BadModelError(f"Weights of node {node.name!r} must fit {list(shape)} in {attrs['groups']} groups, "
                            f"not have the shape {list(weights.shape)}")
    result = transposed_shape((shape[1], shape[2], shape[3]), weights.shape[1] * attrs["groups"], attrs["kernel"],
                              attrs["strides"], attrs["pads"], attrs["dilations"], attrs["output_padding"])
    if min(result) < 1:
        raise BadModelError(f"Node {node.name!r} must have an output with elements, not {list(result)}")
    return (1, *result)
