"""QONNX: ``Quant`` of Brevitas and FINN becomes QuantizeLinear, Clip, DequantizeLinear; NHWC operators become ONNX's.

Quant(x, scale, zero, bits) is (clip(round(x / scale + zero)) - zero) · scale, with the bounds of that many bits. It is
written with int8 whatever the bits: unsigned levels of 8 bits are shifted by 128, with their zero point.
Source: qonnx/custom_op/general/quant.py and channels_last of github.com/fastmachinelearning/qonnx.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError, raise_all
from tilewright.compiler.normal.constant_arrays import array_of

__all__ = ["expand_qonnx", "import_domains"]

_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
_CHANNELS_LAST = "qonnx.custom_op.channels_last"
_QUANT = ("Quant", "IntQuant")
_MOST_BITS = 8
_MOST_BITS_OF_BIAS = 32
_OPSET = 13
"""From which QuantizeLinear knows channels."""

_FOUR = np.zeros((1, 1, 1, 1), np.float32)

_ROUNDING = ("ROUND", "HALF_EVEN")


@dataclass(frozen=True, slots=True)
class _Levels:
    """Result of a Quant: scale and zero point, bounds of its integers, and the axis of the first two, if any."""

    scale: np.ndarray
    zero: np.ndarray
    low: int
    high: int
    axis: int | None

    @property
    def shift(self) -> int:
        """The number added to an integer so that all fit int8."""
        return -128 if self.high > 127 else 0

    @property
    def clips(self) -> bool:
        """Whether int8 alone does not keep the bounds."""
        return (self.low + self.shift, self.high + self.shift) != (-128, 127)


def import_domains(proto: onnx.ModelProto) -> None:
    """State QONNX's domains, in place, where nodes are of them and the model does not import them, as some do not."""
    stated = {each.domain for each in proto.opset_import}
    used = {node.domain for node in proto.graph.node} & {*_DOMAINS, _CHANNELS_LAST}
    proto.opset_import.extend(helper.make_opsetid(domain, 1) for domain in sorted(used - stated))


def expand_qonnx(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model with ONNX's operators in place of QONNX's, or None if there are none of them.

    Raises
    ------
    UnsupportedNodeError
        For the first operator of QONNX that has no such form; it knows the others.
    UnsupportedModelError
        If the model's opset is old and cannot be raised.
    """
    if not any(node.domain in (*_DOMAINS, _CHANNELS_LAST) for node in proto.graph.node):
        return None
    raised = _raised(proto)
    graph = raised.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {node.output[0]: node.attribute[0].t for node in graph.node
                  if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t")}
    arrays = {name: array_of(tensor) for name, tensor in constants.items() if tensor.data_type == TensorProto.FLOAT}
    nodes: list[NodeProto] = []
    refusals: list[UnsupportedNodeError] = []
    for node in graph.node:
        if node.domain in (*_DOMAINS, _CHANNELS_LAST) and not (all(node.input[:1]) and node.input and any(node.output)):
            raise BadModelError(f"Node {node.name!r} ({node.op_type}) must have an input and an output")
        try:
            if node.domain in _DOMAINS:
                nodes += _quantised(node, arrays, graph)
            elif node.domain == _CHANNELS_LAST:
                nodes += _channels_first(node, nodes, arrays, graph)
            else:
                nodes.append(node)
        except UnsupportedNodeError as error:
            refusals.append(error)
    raise_all(refusals)
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    kept = [each for each in raised.opset_import if each.domain not in (*_DOMAINS, _CHANNELS_LAST)]
    del raised.opset_import[:]
    raised.opset_import.extend(kept)
    del graph.value_info[:]
    return raised


def _raised(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model in an opset that has what is needed."""
    copied = onnx.ModelProto()
    copied.CopyFrom(proto)
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), _OPSET)
    if opset >= _OPSET:
        return copied
    try:
        return onnx.version_converter.convert_version(copied, _OPSET)
    except (RuntimeError, ValueError, onnx.version_converter.ConvertError) as error:
        raise UnsupportedModelError(f"Model of QONNX in opset {opset} cannot be brought to opset {_OPSET}, which has "
                                    "quantisation per channel", "export it again with that opset") from error


def _refusal(node: NodeProto, reason: str, way_out: str) -> UnsupportedNodeError:
    return UnsupportedNodeError(node.name or node.output[0], node.op_type, reason, way_out)


def _quantised(node: NodeProto, arrays: Mapping[str, np.ndarray], graph: onnx.GraphProto) -> Iterator[NodeProto]:
    """Yield what stands for a Quant, and add its constants to the graph."""
    if node.op_type not in _QUANT:
        raise _refusal(node, f"it is an operator of QONNX ({node.domain}), of which only Quant is compiled",
                       "export the model before it is lowered, with Quant")
    levels, name = _levels(node, arrays), node.output[0]
    values = arrays.get(node.input[0])
    axis = {"axis": levels.axis} if levels.axis is not None else {}
    zeros = np.broadcast_to(levels.zero + levels.shift, levels.scale.shape).astype(np.int8)
    parameters = [_constant(graph, f"{name}:scale", levels.scale), _constant(graph, f"{name}:zero", zeros)]
    source = f"{name}:levels"
    if values is not None:
        scale, zero = (_along(each, levels.axis, values.ndim) for each in (levels.scale, levels.zero))
        with np.errstate(all="ignore"):
            exact = np.nan_to_num(np.round(values / scale + zero.astype(np.float32)))
        integers = np.clip(exact, levels.low, levels.high)
        if values.ndim < 2:
            # A bias, which int32 sums take with their own scale.
            arrays_value = ((integers - zero) * scale).astype(np.float32)
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(arrays_value), name))
            return
        _constant(graph, source, (integers + levels.shift).astype(np.int8))
    else:
        yield helper.make_node("QuantizeLinear", [node.input[0], *parameters], [f"{name}:rounded" if levels.clips else
                               source], f"{node.name or name}_quantise", **axis)
        if levels.clips:
            bounds = [_constant(graph, f"{name}:{what}", np.array(bound + levels.shift, np.int8))
                      for what, bound in (("low", levels.low), ("high", levels.high))]
            yield helper.make_node("Clip", [f"{name}:rounded", *bounds], [source], f"{node.name or name}_clip")
    yield helper.make_node("DequantizeLinear", [source, *parameters], [name], f"{node.name or name}_dequantise", **axis)


def _levels(node: NodeProto, arrays: Mapping[str, np.ndarray]) -> _Levels:
    texts = {each.name: each.s for each in node.attribute if each.type == onnx.AttributeProto.STRING}
    numbers = {each.name: each.i for each in node.attribute if each.type == onnx.AttributeProto.INT}
    rounding = texts.get("rounding_mode", b"ROUND").decode(errors="replace")
    if rounding.upper() not in _ROUNDING:
        raise _refusal(node, f"its rounding_mode is {rounding}", "use ROUND, which rounds half to even")
    if any(name not in arrays for name in node.input[1:4]) or len(node.input) < 4:
        raise _refusal(node, "its scale, zero point or bits are computed while the model runs",
                       "export the model for inference, with constants")
    scale, zero, bits = (arrays[name] for name in node.input[1:4])
    if bits.size != 1 or float(bits.ravel()[0]) not in range(1, _MOST_BITS_OF_BIAS + 1):
        raise _refusal(node, "its number of bits is not one integer", "use one number of bits for a tensor")
    count = int(bits.ravel()[0])
    if count > _MOST_BITS and node.input[0] not in arrays:
        raise _refusal(node, f"it has {count} bits", f"use up to {_MOST_BITS} bits for weights and activations")
    if np.unique(zero).size == 1:
        zero = zero.ravel()[:1].reshape(())
    if zero.shape not in ((), scale.shape) or not (np.abs(zero) <= 2**count).all() or (zero != np.round(zero)).any():
        raise _refusal(node, "its zero point is not one integer in the range of its bits, or one for each scale",
                       "use 0")
    if not scale.size or not (np.isfinite(scale) & (scale > 0)).all():
        raise _refusal(node, "its scale is not a number above 0", "train the model again")
    signed, narrow = bool(numbers.get("signed", 1)), int(bool(numbers.get("narrow", 0)))
    low, high = (-2**(count - 1) + narrow, 2**(count - 1) - 1) if signed else (0, 2**count - 1 - narrow)
    shifted = zero - 128 * (high > 127)
    if count <= _MOST_BITS and not ((shifted >= -128) & (shifted <= 127)).all():
        raise _refusal(node, "its zero point is beyond its levels", "use 0")
    axes = [axis - scale.ndim for axis, size in enumerate(scale.shape) if size > 1]
    if len(axes) > 1:
        raise _refusal(node, f"its scale has the shape {list(scale.shape)}", "use one scale, or one per channel")
    if count > _MOST_BITS and arrays[node.input[0]].ndim > 1:
        raise _refusal(node, f"it has {count} bits", f"use up to {_MOST_BITS} bits for weights and activations")
    known = arrays[node.input[0]].ndim if node.input[0] in arrays else scale.ndim
    if node.input[0] in arrays and axes and (
            axes[0] < -known or arrays[node.input[0]].shape[axes[0]] != scale.shape[axes[0]]):
        raise _refusal(node, f"its scale has the shape {list(scale.shape)}", "use one scale, or one per channel")
    return _Levels(scale.astype(np.float32).ravel() if axes else scale.astype(np.float32).reshape(()),
                   zero.astype(np.int32).ravel() if zero.ndim and axes else zero.astype(np.int32).reshape(()),
                   low, high, axes[0] + known if axes else None)


def _along(scale: np.ndarray, axis: int | None, rank: int) -> np.ndarray:
    """Return a scale or zero point as it is broadcast over a tensor."""
    alone = axis is None or not scale.ndim
    return scale if alone else scale.reshape([-1 if each == axis else 1 for each in range(rank)])


def _constant(graph: onnx.GraphProto, name: str, value: np.ndarray) -> str:
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value) if value.ndim else value, name))
    return name


def _channels_first(node: NodeProto, before: list[NodeProto], arrays: Mapping[str, np.ndarray],
                    graph: onnx.GraphProto) -> Iterator[NodeProto]:
    """Yield a channels-last operator as ONNX's own between two Transposes; weights are transposed now."""
    if node.op_type not in ("Conv", "MaxPool", "AveragePool", "BatchNormalization", "GlobalAveragePool"):
        raise _refusal(node, "it is a channels-last operator of QONNX that is not compiled",
                       "export the model with channels first")
    if node.op_type == "Conv" and (len(node.input) < 2 or arrays.get(node.input[1], _FOUR).ndim != 4):
        raise BadModelError(f"Node {node.name!r} (Conv) must have weights of four dimensions")
    name = node.output[0]
    inputs = [f"{name}:first", *node.input[1:]]
    yield helper.make_node("Transpose", node.input[:1], inputs[:1], f"{node.name or name}_first", perm=[0, 3, 1, 2])
    if node.op_type == "Conv":
        yield from _weights_first(node, before, arrays, graph)
        inputs[1] = f"{name}:weights"
    inner = helper.make_node(node.op_type, inputs, [f"{name}:last"], node.name or name)
    inner.attribute.extend(node.attribute)
    yield inner
    yield helper.make_node("Transpose", [f"{name}:last"], [name], f"{node.name or name}_last", perm=[0, 2, 3, 1])


def _weights_first(node: NodeProto, before: list[NodeProto], arrays: Mapping[str, np.ndarray],
                   graph: onnx.GraphProto) -> Iterator[NodeProto]:
    """Yield what makes the weights (outputs, inputs, rows, columns) of (outputs, rows, columns, inputs)."""
    order, target = (0, 3, 1, 2), f"{node.output[0]}:weights"
    if node.input[1] in arrays:
        _constant(graph, target, arrays[node.input[1]].transpose(order))
        return
    made = next((each for each in before if node.input[1] in each.output), None)
    levels = None if made is None or made.op_type != "DequantizeLinear" else next(
        (tensor for tensor in graph.initializer if tensor.name == made.input[0]), None)
    if made is None or levels is None or len(levels.dims) != 4:
        yield helper.make_node("Transpose", [node.input[1]], [target], perm=order)
        return
    _constant(graph, f"{target}:levels", numpy_helper.to_array(levels).transpose(order))
    axis = {each.name: order.index(each.i % 4) for each in made.attribute if each.name == "axis"}
    yield helper.make_node("DequantizeLinear", [f"{target}:levels", *made.input[1:]], [target], f"{target}_dequantise",
                           **axis)
