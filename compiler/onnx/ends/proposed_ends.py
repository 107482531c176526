"""Tensors to end a model at, so that all nodes before them are compiled, if some are not."""

from collections.abc import Collection, Mapping

import onnx

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.onnx.cleaning import is_function
from tilewright.compiler.onnx.ends.end_at import computed_tensors, needed_for, read_by
from tilewright.compiler.onnx.faults import WAY_OUT
from tilewright.compiler.onnx.reader import is_compiled, load

__all__ = ["refuse_early"]

_MOVES = frozenset({"Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})

_MOST = 24
"""Ends of a command that is still read."""


def refuse_early(proto: onnx.ModelProto) -> None:
    """Refuse a model with nodes that are not compiled before it is quantised, with the options that end it before.

    Raises
    ------
    UnsupportedNodeError
        If there are such nodes; ``options`` are those with which the same command leaves them to the host.
    """
    if not _may_be_refused(proto):
        return
    try:
        load(proto.SerializeToString())
    except UnsupportedNodeError as error:
        refused = {each.node for each in (error, *error.others)}
        ends = _ends_before(proto.graph, refused)
        if not ends or len(ends) > _MOST or error.way_out != WAY_OUT:
            return      # refused later, with what else is known of it
        left = len(proto.graph.node) - len(needed_for(proto.graph, ends)[0])
        ended = f"end the model before it, which leaves {left} of {len(proto.graph.node)} nodes to the host"
        first, *others = (UnsupportedNodeError(each.node, each.op, each.reason, ended)
                          for each in (error, *error.others))
        first.others = tuple(others)
        first.options = tuple(word for name in ends for word in ("--end", name))
        raise first from error


def _may_be_refused(proto: onnx.ModelProto) -> bool:
    """Tell whether a node may not be compiled, without inferring shapes."""
    versions = {each.domain: each.version for each in proto.opset_import}
    read = {name for node in proto.graph.node for name in node.input} | {value.name for value in proto.graph.output}
    computed = set(computed_tensors(proto.graph))
    return any((not is_compiled(node) and not is_function(node, versions))
               or (node.op_type != "Split" and not read.isdisjoint(filter(None, node.output[1:])))
               for node in proto.graph.node if not computed.isdisjoint(node.output))


def _ends_before(graph: onnx.GraphProto, refused: Collection[str]) -> list[str]:
    """Return the tensors behind which nodes that are ``refused``, and all that depends on them, begin.

    There are none where one of the refused is none of the file's nodes, or nothing is before them.
    """
    computed, behind, nodes = set(computed_tensors(graph)), set[str](), list[onnx.NodeProto]()
    for node in graph.node:
        if (node.name or (node.output[0] if node.output else "")) in refused or behind.intersection(read_by(node)):
            behind.update(name for name in node.output if name)
            nodes.append(node)
    labels = {node.name or (node.output[0] if node.output else "") for node in nodes}
    if not labels.issuperset(refused):
        return []
    borders = [name for node in nodes for name in read_by(node)] + [value.name for value in graph.output]
    makers = {name: node for node in graph.node for name in node.output}
    ends = dict.fromkeys(_before_moves(name, makers, computed) for name in borders
                         if name in computed and name not in behind)
    return list(ends)


def _before_moves(name: str, makers: Mapping[str, onnx.NodeProto], computed: Collection[str]) -> str:
    """Return the tensor with the same values before a host moves them, which costs it nothing."""
    while (node := makers[name]).op_type in _MOVES and node.input[0] in computed:
        name = node.input[0]
    return name
