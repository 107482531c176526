"""Scores that a constant mask takes out: they stay just below all others, so that levels are left for those that count.

Exporters add -inf, the least float or -10,000. The range of such sums would leave one level for all other scores.
Behind a softmax whatever is 16 below all others is nothing: the weights of 10,000 such elements are below 1/512.
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


@dataclass(frozen=True, slots=True)
class _Masked:
    """An Add of scores and a mask: the node, the input that is computed, and the mask's values."""

    node: onnx.NodeProto
    scores: str
    mask: np.ndarray


def bound_masks(proto: onnx.ModelProto, feeds: Iterable[Mapping[str, np.ndarray]],
                ) -> dict[str, list[dict[str, object]]]:
    """Bound the masks of a float model, in place, and return the quantisation of the masked scores.

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
    found = _masked(proto.graph)
    given: dict[str, list[dict[str, object]]] = {}
    if not found:
        return given
    for each, (low, high) in zip(found, _ranges(proto, found, feeds), strict=True):
        kept = each.mask[each.mask > _MASKED]
        low, high = min(low + kept.min(initial=0), 0.0), max(high + kept.max(initial=0), 0.0)
        name = f"{each.node.output[0]}:mask"
        bounded = np.maximum(each.mask, low - high - _BELOW).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(bounded, name))
        place = list(each.node.input).index(each.scores)
        each.node.input[1 - place] = name
        scale = np.float32((high - low + _BELOW) / _LEVELS)
        given[each.node.output[0]] = [{
            "quant_type": QuantType.QInt8, "scale": np.array(scale, np.float32),
            "zero_point": np.array(round(_LOWEST - float((low - _BELOW) / scale)), np.int8)}]
    return given


def _masked(graph: onnx.GraphProto) -> list[_Masked]:
    """Return the sums of scores and masks that softmaxes alone read, moved or not."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs, found = {value.name for value in graph.output}, []
    for node in graph.node:
        given = [name for name in node.input if name in constants]
        if node.op_type != "Add" or len(given) != 1 or constants[given[0]].data_type != TensorProto.FLOAT:
            continue
        mask = numpy_helper.to_array(constants[given[0]])
        name = node.output[0]
        while name not in outputs and len(readers.get(name, ())) == 1 and readers[name][0].op_type in _MOVES:
            name = readers[name][0].output[0]
        behind = readers.get(name, [])
        if name not in outputs and behind and all(each.op_type == "Softmax" for each in behind) \
                and (mask <= _MASKED).any():
            found.append(_Masked(node, next(each for each in node.input if each != given[0]), mask))
    return found


def _ranges(proto: onnx.ModelProto, found: list[_Masked], feeds: Iterable[Mapping[str, np.ndarray]],
            ) -> list[tuple[float, float]]:
    """Return the least and the greatest score of the samples, before each mask."""
    watched = onnx.ModelProto()
    watched.CopyFrom(proto)
    del watched.graph.output[:]
    for number, each in enumerate(found):
        for op in ("ReduceMin", "ReduceMax"):
            name = f"{op} {number} of scores"
            watched.graph.node.append(helper.make_node(op, [each.scores], [name], keepdims=0))
            watched.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ()))
    session = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    values = np.array([session.run(None, dict(feed)) for feed in feeds], np.float64)
    return list(zip(values[:, ::2].min(axis=0).tolist(), values[:, 1::2].max(axis=0).tolist(), strict=True))
