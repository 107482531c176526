"""Scores that a mask takes out: they stay just below all others, so that levels are left for those that count.

Exporters add -inf, the least float or -10,000, or put it in the place of a score (Where). The range of such sums would
leave one level for all other scores. Behind a softmax whatever is 16 below all others is nothing: the weights of
10,000 such elements are below 1/512.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType

__all__ = ["bound_masks"]

_MASKED = -100.0
"""A constant below this is no bias, but takes a score out."""

_BELOW = 16.0
_LEVELS, _LOWEST = 255, -128
_MOVES = {"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
_OF_MASKS = _MOVES | {"Add", "And", "Cast", "Equal", "Expand", "Gather", "Greater", "GreaterOrEqual", "Less",
                      "LessOrEqual", "Max", "Min", "Mul", "Not", "Or", "Slice", "Sub", "Where"}
"""Operators that computed masks are made by: none has weights."""


@dataclass(frozen=True, slots=True)
class _Masked:
    """An Add of scores and a mask, both by name."""

    node: onnx.NodeProto
    scores: str
    mask: str


def bound_masks(proto: onnx.ModelProto, feeds: Iterable[Mapping[str, np.ndarray]],
                ) -> dict[str, list[dict[str, object]]]:
    """Bound the masks of a float model, in place, and return the quantisation of the masked scores.

    A mask is a constant, or is computed without weights by constants that take scores out.

    Parameters
    ----------
    proto : ModelProto
        Its results stay the same, but for rows of which nothing counts.
    feeds : iterable of mapping
        Samples by input, whose scores count.

    Returns
    -------
    dict
        As the quantiser takes it (its option TensorQuantOverrides), by the name of an Add's result.
    """
    _add_what_where_puts(proto.graph)
    found = _masked(proto.graph)
    given: dict[str, list[dict[str, object]]] = {}
    if not found:
        return given
    constants = _constants(proto.graph)
    for each, (low, high) in zip(found, _ranges(proto, found, feeds), strict=True):
        lowest = low - high - _BELOW
        if each.mask in constants:
            _replace(proto.graph, each.node, each.mask, np.maximum(constants[each.mask], lowest))
        else:
            for node, name in _deciding(proto.graph, each.mask, constants):
                _replace(proto.graph, node, name, np.maximum(constants[name], lowest))
        scale = np.float32((high - low + _BELOW) / _LEVELS)
        given[each.node.output[0]] = [{
            "quant_type": QuantType.QInt8, "scale": np.array(scale, np.float32),
            "zero_point": np.array(round(_LOWEST - float((low - _BELOW) / scale)), np.int8)}]
    _leave_out_nan(proto.graph)
    return given


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Return the constant floats of a graph."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
            if tensor.data_type == TensorProto.FLOAT}


def _replace(graph: onnx.GraphProto, node: onnx.NodeProto, name: str, values: np.ndarray) -> None:
    """Let a node read other values in the place of a constant."""
    bounded = f"{node.output[0]}:mask"
    graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), bounded))
    node.input[list(node.input).index(name)] = bounded


def _add_what_where_puts(graph: onnx.GraphProto) -> None:
    """Write a Where that puts a constant in the place of scores as an Add of 0 or of that constant."""
    constants = _constants(graph)
    for node in [each for each in graph.node if each.op_type == "Where" and _softmax_reads(graph, each.output[0])]:
        place = next((i for i in (1, 2) if node.input[i] in constants and (constants[node.input[i]] <= _MASKED).all()),
                     None)
        if place is None or node.input[3 - place] in constants:
            continue
        index = list(graph.node).index(node)
        zero, mask = f"{node.output[0]}:kept", f"{node.output[0]}:added"
        graph.initializer.append(numpy_helper.from_array(np.array(0, np.float32), zero))
        chosen = [node.input[0], *(node.input[i] if i == place else zero for i in (1, 2))]
        added = helper.make_node("Add", [node.input[3 - place], mask], [node.output[0]], node.name)
        graph.node[index].CopyFrom(helper.make_node("Where", chosen, [mask], f"{node.name}:mask"))
        graph.node.insert(index + 1, added)


def _masked(graph: onnx.GraphProto) -> list[_Masked]:
    """Return the sums of scores and masks that softmaxes alone read, moved or not."""
    constants, found = _constants(graph), []
    for node in graph.node:
        if node.op_type != "Add" or not _softmax_reads(graph, node.output[0]):
            continue
        masks = [name for name in node.input if _is_mask(graph, name, constants)]
        if len(masks) == 1 and node.input[0] != node.input[1]:
            found.append(_Masked(node, next(each for each in node.input if each != masks[0]), masks[0]))
    return found


def _is_mask(graph: onnx.GraphProto, name: str, constants: Mapping[str, np.ndarray]) -> bool:
    if name in constants:
        return bool((constants[name] <= _MASKED).any())
    return bool(_deciding(graph, name, constants))


def _deciding(graph: onnx.GraphProto, name: str, constants: Mapping[str, np.ndarray],
              ) -> list[tuple[onnx.NodeProto, str]]:
    """Return the nodes that a mask is computed by with constants that take scores out, and these constants.

    There are none if it is computed by operators that make no masks.
    """
    makers = {output: node for node in graph.node for output in node.output}
    left, seen, found = [name], set(), []
    while left:
        node = makers.get(left.pop())
        if node is None or node.output[0] in seen:
            continue
        seen.add(node.output[0])
        if node.op_type not in _OF_MASKS:
            return []
        left += node.input
        if node.op_type in ("Where", "Mul"):
            found += [(node, each) for each in node.input if (constants.get(each, np.zeros(1)) <= _MASKED).any()]
    return found


def _softmax_reads(graph: onnx.GraphProto, name: str) -> bool:
    """Tell whether softmaxes alone read a tensor, moved or not."""
    outputs = {value.name for value in graph.output}
    while name not in outputs:
        readers = [node for node in graph.node if name in node.input]
        if len(readers) != 1 or readers[0].op_type not in _MOVES:
            return bool(readers) and all(each.op_type == "Softmax" for each in readers)
        name = readers[0].output[0]
    return False


def _leave_out_nan(graph: onnx.GraphProto) -> None:
    """Let what reads a Where of 0 and a softmax's weights read these, which are numbers now."""
    makers = {output: node for node in graph.node for output in node.output}
    for node in graph.node:
        tested = makers.get(node.input[0]) if node.op_type == "Where" else None
        if tested is None or tested.op_type != "IsNaN" or tested.input[0] != node.input[2]:
            continue
        weights = makers.get(node.input[2])
        if weights is not None and weights.op_type == "Softmax":
            node.CopyFrom(helper.make_node("Identity", [node.input[2]], [node.output[0]], node.name))


def _ranges(proto: onnx.ModelProto, found: list[_Masked], feeds: Iterable[Mapping[str, np.ndarray]],
            ) -> list[tuple[float, float]]:
    """Return the least and the greatest score of the samples with what each mask adds where it counts, or 0."""
    watched = onnx.ModelProto()
    watched.CopyFrom(proto)
    del watched.graph.output[:]
    for number, each in enumerate(found):
        for op, what in (("ReduceMin", each.scores), ("ReduceMax", each.scores), ("Identity", each.mask)):
            name = f"{op} {number} of scores"
            watched.graph.node.append(helper.make_node(op, [what], [name], **(
                {} if op == "Identity" else {"keepdims": 0})))
            watched.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(watched.SerializeToString(), options, providers=["CPUExecutionProvider"])
    ranges = [(0.0, 0.0)] * len(found)
    added = [(0.0, 0.0)] * len(found)
    for feed in feeds:
        results = session.run(None, dict(feed))
        for i, (low, high, mask) in enumerate(zip(results[::3], results[1::3], results[2::3], strict=True)):
            kept = mask[mask > _MASKED]
            ranges[i] = min(ranges[i][0], float(low)), max(ranges[i][1], float(high))
            added[i] = float(kept.min(initial=added[i][0])), float(kept.max(initial=added[i][1]))
    return [(low + least, high + most) for (low, high), (least, most) in zip(ranges, added, strict=True)]
