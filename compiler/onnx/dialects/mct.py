"""MCTQ, the export of Sony's Model Compression Toolkit: its quantisers become ``Quant`` of QONNX.

A symmetric quantiser of n bits has the scale threshold / 2^(n-1), or threshold / 2^n if it is unsigned; a uniform one
has the range [a, b], moved so that 0 is a level, and the scale (b - a) / (2^n - 1).
Source: pytorch/quantizers/*/*_inferable_quantizer.py of github.com/SonySemiconductorSolutions/mct_quantizers 1.7.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from tilewright.compiler.errors import UnsupportedNodeError, raise_all
from tilewright.compiler.normal.constant_arrays import array_of

__all__ = ["quants_of_mct"]

_DOMAIN = "mct_quantizers"
_QUANT_DOMAIN = "qonnx.custom_op.general"
_SYMMETRIC = ("ActivationPOTQuantizer", "ActivationSymmetricQuantizer", "WeightsPOTQuantizer",
              "WeightsSymmetricQuantizer")
_UNIFORM = ("ActivationUniformQuantizer", "WeightsUniformQuantizer")
_MOST_BITS = 8
_WAY_OUT = "export it with quantization_format=QuantizationFormat.FAKELY_QUANT"

_Constant = Callable[[str, np.ndarray], str]


def quants_of_mct(proto: onnx.ModelProto) -> int | None:
    """Put QONNX's Quant in place of MCT's quantisers, in place; return how many were left out, None if there are none.

    Quantisers of activations with more than 8 bits are left out: their tensors stay float, as in MCT's own export
    FAKELY_QUANT.

    Raises
    ------
    UnsupportedNodeError
        For every quantiser that has no such form, as one of a table of values.
    """
    if not any(node.domain == _DOMAIN for node in proto.graph.node):
        return None
    arrays = _floats(proto.graph)
    refusals: list[UnsupportedNodeError] = []
    left = 0
    for node in proto.graph.node:
        if node.domain != _DOMAIN:
            continue
        try:
            made = _quant(node, arrays, lambda name, value: _added(proto.graph, name, value))
        except UnsupportedNodeError as error:
            refusals.append(error)
            continue
        left += made.op_type == "Identity"
        node.CopyFrom(made)
    raise_all(refusals)
    kept = [each for each in proto.opset_import if each.domain != _DOMAIN]
    del proto.opset_import[:]
    proto.opset_import.extend([*kept, helper.make_opsetid(_QUANT_DOMAIN, 1)])
    return left


def _floats(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {node.output[0]: node.attribute[0].t for node in graph.node
                  if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t")}
    return {name: array_of(tensor) for name, tensor in constants.items() if tensor.data_type == onnx.TensorProto.FLOAT}


def _added(graph: onnx.GraphProto, name: str, value: np.ndarray) -> str:
    graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
    return name


def _quant(node: NodeProto, arrays: Mapping[str, np.ndarray], constant: _Constant) -> NodeProto:
    """Return the Quant of a quantiser, or the Identity that leaves it out."""
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    bits = given.get("num_bits", _MOST_BITS)
    if not node.output or not node.input or not isinstance(bits, int) or bits < 1:
        raise _refusal(node, "it must have an input, an output and a number of bits", "export it again")
    name = node.output[0]
    if bits > _MOST_BITS and node.op_type.startswith("Activation"):
        return helper.make_node("Identity", node.input[:1], [name], node.name)
    if node.op_type in _SYMMETRIC:
        signed = bool(given.get("signed", 1))
        (threshold,) = _ranges(node, given, arrays, ("threshold",))
        scale, zero = threshold / np.float32(2**(bits - signed)), np.zeros(1, np.float32)
    elif node.op_type in _UNIFORM:
        signed = False
        least, most = _ranges(node, given, arrays, ("min_range", "max_range"))
        low, high = _with_zero(least, most, bits)
        scale = (high - low) / np.float32(2**bits - 1)
        zero = -np.round(low / scale)
    else:
        raise _refusal(node, "its levels are a table of values", _WAY_OUT)
    if scale.size > 1:
        shape = _along(node, given, arrays, scale.size)
        scale, zero = scale.reshape(shape), zero.reshape(shape) if zero.size > 1 else zero
    parameters = [constant(f"{name}:{what}", np.asarray(value)) for what, value in
                  (("step", scale), ("zero_level", zero), ("bits", bits))]
    return helper.make_node("Quant", [node.input[0], *parameters], [name], node.name, domain=_QUANT_DOMAIN,
                            signed=int(signed), narrow=0, rounding_mode="ROUND")


def _ranges(node: NodeProto, given: Mapping[str, Any], arrays: Mapping[str, np.ndarray],
            names: tuple[str, ...]) -> list[np.ndarray]:
    """Return what bounds the levels: attributes for activations, constants for weights."""
    if node.op_type.startswith("Activation"):
        values = [given.get(name) for name in names]
    else:
        values = [arrays.get(name) for name in node.input[1:1 + len(names)]]
    if len(values) < len(names) or any(value is None for value in values):
        raise _refusal(node, f"it has no constant {' and '.join(names)}", _WAY_OUT)
    found = [np.asarray(value, np.float32).ravel() for value in values]
    span = found[-1] if len(found) == 1 else found[1] - found[0]
    if not span.size or not (np.isfinite(span) & (span > 0)).all():
        raise _refusal(node, f"its {' and '.join(names)} span no range", "train the model again")
    return found


def _with_zero(low: np.ndarray, high: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a range moved so that 0 is one of its levels."""
    scale = (high - low) / np.float32(2**bits - 1)
    moved = scale * np.round(low / scale)
    return (np.where(low > 0, np.float32(0), np.where(high < 0, low, moved)),
            np.where(high < 0, np.float32(0), np.where(low > 0, high, high - low + moved)))


def _along(node: NodeProto, given: Mapping[str, Any], arrays: Mapping[str, np.ndarray], count: int) -> list[int]:
    """Return the shape of a scale for each channel."""
    rank, axis = arrays.get(node.input[0], np.zeros(0)).ndim, given.get("channel_axis", 0)
    if node.input[0] not in arrays or axis not in range(-rank, rank):
        raise _refusal(node, "its weights are no constant that has its channels", _WAY_OUT)
    return [count if each == axis % rank else 1 for each in range(rank)]


def _refusal(node: NodeProto, reason: str, way_out: str) -> UnsupportedNodeError:
    return UnsupportedNodeError(node.name or (node.output[0] if node.output else node.op_type), node.op_type, reason,
                                way_out)
