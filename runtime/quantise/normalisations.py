"""Normalisations that were taken apart are put together in a float model, so that only their result is quantised."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from tilewright.compiler.errors import CompileError
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxOperator
from tilewright.compiler.onnx.reader import load
from tilewright.compiler.passes.recognise.normalisations.quantised_variance import levels_of_variances
from tilewright.compiler.passes.recognise.normalisations.rebuild import Rebuilt, rebuilt
from tilewright.compiler.passes.recognise.normalisations.taken_apart import TakenApart

__all__ = ["found_apart", "give_up_variances", "groups_apart", "inside_groups", "opset_of", "put_together"]

_LEAST_RANK = 3
"""Of what is normalised by channels."""

_LAYER_OPSET, _ROOT_OPSET = 17, 23
"""From which on ONNX has LayerNormalization and RMSNormalization."""


def opset_of(found: list[tuple[TakenApart, Rebuilt]]) -> int:
    """Return the first opset that has them all."""
    return _LAYER_OPSET if all(apart.centred for apart, _ in found) else _ROOT_OPSET


def found_apart(proto: onnx.ModelProto) -> list[tuple[TakenApart, Rebuilt]]:
    """Return the normalisations in a clean model that were taken apart, each with what stands for it.

    There are none in one that the compiler's reader refuses: compiling it is what tells why.
    """
    kinds = {node.op_type for node in proto.graph.node}
    centred = kinds & {"ReduceMean", "GlobalAveragePool"} and kinds & {"Sqrt", "Pow"}
    lengths = kinds & {"ReduceSum", "ReduceSumSquare"} and kinds & {"Sqrt", "Pow"}
    if not (centred or lengths or kinds & {"ReduceL2", "LpNormalization", "InstanceNormalization"}):
        return []
    graph = _read(proto)
    return [] if graph is None else rebuilt(graph)


def _read(proto: onnx.ModelProto) -> Graph | None:
    """Return a clean model as the compiler reads it; None if that refuses it: compiling it is what tells why."""
    try:
        return load(proto.SerializeToString())
    except CompileError:
        return None


def give_up_variances(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Make variances of normalisations, quantised on their way to the quotient, float again, in place; say so.

    What is left is one operator, and it keeps the digits of its variance.
    """
    kinds = {node.op_type for node in proto.graph.node}
    if not {"QuantizeLinear", "ReduceMean"} <= kinds or not kinds & {"Sqrt", "Pow"}:
        return ()
    graph = _read(proto)
    levels = set() if graph is None else levels_of_variances(graph)
    sources = {node.output[0]: node.input[0] for node in proto.graph.node if node.output[0] in levels}
    floats = {node.output[0]: sources[node.input[0]] for node in proto.graph.node
              if node.op_type == "DequantizeLinear" and node.input[0] in sources}
    if not floats:
        return ()
    for node in proto.graph.node:
        node.input[:] = [floats.get(name, name) for name in node.input]
    makers = {name: node.op_type for node in proto.graph.node for name in node.output}
    given_up = sorted(name for name in floats.values() if makers.get(name) == "ReduceMean")
    remark = (f"variances of normalisations that were quantised ({', '.join(given_up[:3])}) became float again: the "
              "normalisation is one operator then")
    return (remark,)


def put_together(graph: onnx.GraphProto, found: list[tuple[TakenApart, Rebuilt]]) -> None:
    """Put each into a graph of :func:`opset_of` them or a newer one, in place, where its result was made.

    Those of groups of channels stay apart: ONNX Runtime would take them apart otherwise.
    """
    made = {name for node in graph.node for name in node.output} | {value.name for value in graph.input}
    for apart, new in found:
        if {apart.x, apart.output} <= made and not apart.groups:
            _replace(graph, apart, new)


def groups_apart(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Replace each GroupNormalization of constants as PyTorch exports it, in place, where its input has a shape."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    nodes: list[NodeProto] = []
    for node in graph.node:
        shape = shapes.get(node.input[0], ()) if node.op_type == "GroupNormalization" else ()
        groups = next((each.i for each in node.attribute if each.name == "num_groups"), 0)
        vectors = [constants.get(name) for name in node.input[1:3]] if groups else []
        gain, shift = [*vectors, None, None][:2]
        if len(shape) < _LEAST_RANK or not all(shape) or groups < 1 or gain is None or shift is None \
                or any(each.size not in (groups, shape[1]) for each in (gain, shift)):
            nodes.append(node)
            continue
        each = [shape[1], *[1] * (len(shape) - 2)]
        values = {"split": np.array([shape[0], groups, -1]), "ones": np.ones(groups, np.float32),
                  "zeros": np.zeros(groups, np.float32), "shape": np.array(shape),
                  "gain": np.repeat(gain, shape[1] // gain.size).reshape(each),
                  "shift": np.repeat(shift, shape[1] // shift.size).reshape(each)}
        graph.initializer.extend(numpy_helper.from_array(value, f"{node.output[0]}:{what}")
                                 for what, value in values.items())
        nodes += _steps_of(node)
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _steps_of(node: NodeProto) -> list[NodeProto]:
    """Return the nodes that stand for a GroupNormalization, whose constants are called after its result."""
    epsilon = {each.name: each.f for each in node.attribute if each.name == "epsilon"}
    steps = [("Reshape", ["split"]), ("InstanceNormalization", ["ones", "zeros"]), ("Reshape", ["shape"]),
             ("Mul", ["gain"]), ("Add", ["shift"])]
    (result,), source, made = node.output, node.input[0], list[NodeProto]()
    for index, (op, constants) in enumerate(steps):
        output = result if index == len(steps) - 1 else f"{result}:{index}"
        made.append(helper.make_node(op, [source, *(f"{result}:{what}" for what in constants)], [output],
                                     name=f"{node.name or result}:{index}",
                                     **(epsilon if op == "InstanceNormalization" else {})))
        source = output
    return made


def inside_groups(proto: onnx.ModelProto) -> list[NodeProto]:
    """Return the nodes that together normalise groups of channels: only their result is quantised."""
    made = {name: node for node in proto.graph.node for name in node.output}
    return [made[node.output] for apart, _ in found_apart(proto) if apart.groups for node in apart.nodes
            if node.output in made]


def _replace(graph: onnx.GraphProto, apart: TakenApart, new: Rebuilt) -> None:
    place = next(index for index, node in enumerate(graph.node) if apart.output in node.output)
    nodes = list(graph.node)
    nodes[place:place + 1] = [_proto(node) for node in new.nodes]
    inside, outputs = {node.output for node in apart.nodes}, {value.name for value in graph.output}
    read = {name for node in nodes for name in node.input} | outputs
    while dead := [node for node in nodes if set(node.output) <= inside and not set(node.output) & read]:
        nodes = [node for node in nodes if node not in dead]
        read = {name for node in nodes for name in node.input} | outputs
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in new.constants.items())


def _proto(node: Node) -> NodeProto:
    assert isinstance(node.operator, OnnxOperator)
    return helper.make_node(node.op, node.inputs, [node.output], name=f"{node.name}_{node.output}",
                            **node.operator.attributes)
