"""Averages and padding of an integer network: an average is a product with ones, and a division by their number."""

import math

import numpy as np

from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, PendingSums
from tilewright.compiler.pulp.pulp_node import PulpNode

__all__ = ["average", "padded"]


def average(node: PulpNode) -> PendingSums:
    """Return the sums of an AveragePool's windows over their size, or of a GlobalAveragePool's images.

    NEMO multiplies an average by its window's size again, and by a factor over a power of two:
    ``PACT_IntegerAvgPool2d`` of github.com/pulp-platform/nemo.
    """
    levels, shape = node.levels(), node.made.shapes.get(node.proto.input[0], ())
    if len(shape) not in (3, 4) or min(shape) < 1:
        raise node.refusal(f"its input has the shape {list(shape)}", "export the network with fixed shapes")
    axes = len(shape) - 2
    kernel, strides, pads = [int(each) for each in shape[2:]], [1] * axes, [0] * 2 * axes
    if node.proto.op_type == "AveragePool":
        kernel, strides, pads = (_list(node, name, each) for name, each in (
            ("kernel_shape", kernel), ("strides", strides), ("pads", pads)))
    if len(kernel) != axes or len(strides) != axes or len(pads) != 2 * axes or min(*kernel, *strides, *pads) < 0 \
            or not math.prod(kernel) * math.prod(strides):
        raise node.refusal(f"its windows are {kernel}, by {strides}, padded by {pads}, for {axes} axes",
                           "export the network again")
    automatic = node.attribute("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")
    if automatic or node.number("ceil_mode", 0) or (any(pads) and not node.number("count_include_pad", 0)) \
            or {*_list(node, "dilations", [1])} != {1}:
        raise node.refusal("its windows have different sizes, or gaps",
                           "export it with count_include_pad, and without ceil_mode and dilations")
    channels = int(shape[1])
    source = ConstantProduct(levels, np.ones((channels, 1, *kernel), np.int8), dense=False, mean=True, attributes={
        "group": channels, "kernel_shape": kernel, "strides": strides, "pads": pads})
    return PendingSums(source, (1,) * channels, (0,) * channels).divided(math.prod(kernel), "")


def _list(node: PulpNode, name: str, otherwise: list[int]) -> list[int]:
    return [int(each) for each in np.asarray(node.attribute(name, otherwise)).reshape(-1)]


def padded(node: PulpNode) -> ByteLevels:
    """Add a Pad of levels by 0, and return what it makes."""
    levels, made = node.levels(), node.made
    given = node.constant(1, "padding").reshape(-1).tolist() if len(node.given) > 1 else _list(node, "pads", [])
    value = node.constant(2, "value").reshape(-1).tolist() if len(node.given) > 2 and node.given[2] is not None else \
        [node.number("value", 0)]
    if node.attribute("mode", b"constant") != b"constant" or value != [0] or len(node.given) > 3 or min(given) < 0:
        raise node.refusal(f"it pads by {given}, with {value}", "pad with zeros, all axes at once")
    pads = made.constant(f"{node.target}:pads", np.array(given, np.int64))
    zero = made.constant(f"{node.target}:zero", np.array(levels.zero, levels.dtype))
    made.node("Pad", [levels.name, pads, zero], node.target, node.label)
    return levels.named(node.target)
