"""Sums and functions of each element take the image that their operand is a view of, so that they can join its layer.

A sum or a function of a tensor of three dimensions is that of any image over the same bytes. The operand may be a view
of an image with a pixel for each row, as a product of matrices makes it: in that shape the product takes it on.
"""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import OneLayer, QAdd, QClamp, QScale, QTable
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["FollowViews"]

_OF_ELEMENTS = (QAdd, QTable, QClamp)
_IMAGE_RANK = 4


class FollowViews(Pass):
    """Replace ``f(view(op(x)))`` by ``view(f(op(x)))`` where op is one layer and f computes each element by itself."""

    def apply(self, graph: Graph) -> Graph:
        before = graph
        for node in before.nodes:
            if isinstance(node.operator, _OF_ELEMENTS):
                graph = _following(graph, node)
        return graph if graph is before else graph.without_unread(lambda node: not isinstance(node.operator, QAlias))


def _following(graph: Graph, node: Node) -> Graph:
    """Return the graph with ``node`` between images of a producer's shape; or as it was."""
    result, roots = graph.tensors[node.output], [_root(graph, name) for name in node.inputs]
    root = next((each for each, name in zip(roots, node.inputs, strict=True)
                 if each != name and _is_taken(graph, node, name, each)), None)
    shape = graph.tensors[root].shape if root is not None else None
    if shape is None or len(shape) != _IMAGE_RANK or shape[0] != 1:
        return graph
    nodes, names = [], []
    for each in roots:
        name = each
        if graph.tensors[each].shape != shape:
            name = f"{each}:as {node.output}"
            graph = graph.with_tensors(replace(graph.tensors[each], name=name, shape=shape))
            nodes.append(Node(QAlias(), (each,), name))
        names.append(name)
    if shape == result.shape:
        return graph.replaced((node,), *nodes, node.with_(inputs=tuple(names)))
    made = f"{node.output}:in the shape of its operand"
    graph = graph.with_tensors(replace(result, name=made, shape=shape))
    nodes += [node.with_(inputs=tuple(names), output=made), Node(QAlias(), (made,), node.output)]
    return graph.replaced((node,), *nodes)


def _root(graph: Graph, name: str) -> str:
    """Return the tensor that ``name`` is a view of, of the same levels; itself if of none."""
    while (node := graph.producer(name)) is not None and isinstance(node.operator, QAlias) \
            and graph.tensors[node.inputs[0]].parameters == graph.tensors[name].parameters:
        name = node.inputs[0]
    return name


def _is_taken(graph: Graph, node: Node, name: str, root: str) -> bool:
    """Tell whether the layer that makes ``root`` can take ``node`` on: nothing else reads it or its views."""
    while name != root:
        if graph.only_reader(name) is None:
            return False
        view = graph.producer(name)
        assert view is not None
        name = view.inputs[0]
    maker = graph.producer(root)
    if maker is None or graph.only_reader(root) is None or not isinstance(maker.operator, OneLayer | QTable):
        return False
    return not isinstance(node.operator, QAdd) or not isinstance(maker.operator, QScale)
