"""Inputs of a node that are computed of constants alone: weights whose gates an exporter puts in another order."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

__all__ = ["constant_inputs"]

_MOVES = {"Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
"""Operators that are computed here: they move elements, and make none."""


def constant_inputs(node: onnx.NodeProto, graph: onnx.GraphProto, opset: int,
                    constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of the inputs of a node that are no constants, but moved constants."""
    makers = {name: each for each in graph.node for name in each.output if name}
    found = {}
    for name in dict.fromkeys(node.input):
        inside = _makers_of(name, makers, constants) if name in makers else None
        if inside:
            found[name] = _value(name, [each for each in graph.node if each.output[0] in inside], opset, constants)
    return found


def _makers_of(name: str, makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, np.ndarray]) -> set[str]:
    """Return the results from which a tensor is made, itself included; nothing if not all is moved constants."""
    seen, todo = set[str](), [name]
    while todo:
        each = todo.pop()
        if not each or each in constants or each in seen:
            continue
        if each not in makers or makers[each].op_type not in _MOVES or makers[each].domain not in ("", "ai.onnx"):
            return set()
        seen.add(each)
        todo += makers[each].input
    return seen


def _value(name: str, nodes: Sequence[onnx.NodeProto], opset: int,
           constants: Mapping[str, np.ndarray]) -> np.ndarray:
    read = {each for node in nodes for each in node.input} & constants.keys()
    graph = helper.make_graph(nodes, "constants", [], [helper.make_tensor_value_info(
        name, onnx.TensorProto.FLOAT, None)], [numpy_helper.from_array(constants[each], each) for each in read])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return np.asarray(ReferenceEvaluator(model).run(None, {})[0])
