"""End a model at tensors that a user names: what only later nodes need goes."""

from collections.abc import Iterator, Sequence

import onnx
from onnx import helper

from tilewright.compiler.onnx.reading_notes import add_note
from tilewright.errors import InputError, nearest

__all__ = ["computed_tensors", "end_at", "needed_for", "read_by"]

_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose result depends on no value."""


def end_at(proto: onnx.ModelProto, ends: Sequence[str]) -> None:
    """Make ``ends``, tensors or nodes, the outputs of a model, in place and in their order; a note says what is left.

    Raises
    ------
    InputError
        If one of them is no tensor that the model computes from its inputs.
    """
    computed = computed_tensors(proto.graph)
    first = {node.name: node.output[0] for node in proto.graph.node if node.name and node.output}
    found = list(dict.fromkeys(name if name in computed else first.get(name, name) for name in ends))
    for name in found:
        if name not in computed:
            raise InputError(f"Option --end must name a tensor that the model computes from its inputs, not {name!r}"
                             f"{nearest(name, computed)}")
    types = {value.name: value.type for value in (*onnx.shape_inference.infer_shapes(proto).graph.value_info,
                                                  *proto.graph.value_info, *proto.graph.output)}
    before = len(proto.graph.node)
    del proto.graph.output[:]
    for name in found:
        value = proto.graph.output.add(name=name)
        value.type.CopyFrom(types.get(name, helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)))
    nodes, tensors = needed_for(proto.graph, found)
    lists = {"node": nodes, **{name: [each for each in getattr(proto.graph, name) if each.name in tensors]
                               for name in ("initializer", "input", "value_info")}}
    for name, items in lists.items():
        proto.graph.ClearField(name)
        getattr(proto.graph, name).extend(items)
    add_note(proto, f"ends at {', '.join(found)}: {before - len(nodes)} of {before} nodes are left to the host")


def computed_tensors(graph: onnx.GraphProto) -> list[str]:
    """Return the tensors whose values depend on those of inputs, in the order of the nodes."""
    constants = {tensor.name for tensor in graph.initializer}
    known = {value.name for value in graph.input} - constants
    found = []
    for node in graph.node:
        if node.op_type not in _SHAPES and known.intersection(read_by(node)):
            results = [name for name in node.output if name]
            known.update(results)
            found += results
    return found


def read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Yield every tensor that a node reads, those in its branches too."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from read_by(inner)
            for value in graph.output:
                yield value.name


def needed_for(graph: onnx.GraphProto, ends: Sequence[str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes, and the names of the tensors, that ``ends`` depend on; themselves included."""
    needed, nodes = set(ends), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(read_by(node))
    return nodes[::-1], needed
