"""Nodes in an order in which each comes behind those that it reads from, as ONNX demands and some exporters forget."""

import onnx

__all__ = ["in_order"]


def in_order(graph: onnx.GraphProto) -> bool:
    """Put the nodes of a graph in order, in place, and tell whether they were in another.

    Nodes that are in order stay as they are. Nodes that depend on their own result, or on what nothing computes, stay
    behind the others: `compiler.onnx.faults.check_order` names them.
    """
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known |= {tensor.values.name for tensor in graph.sparse_initializer} | {""}
    made = {name for node in graph.node for name in node.output}
    seen = set(known)
    for node in graph.node:
        if any(name in made and name not in seen for name in _read(node)):
            break
        seen.update(node.output)
    else:
        return False
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    nodes, order, state = list(graph.node), [], [0] * len(graph.node)
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            state[index] = 1
            missing = [makers[name] for name in _read(nodes[index]) if name not in known and name in makers]
            missing = [each for each in missing if state[each] == 0]
            if missing:
                stack += reversed(missing)
                continue
            state[index] = 2
            order.append(index)
            stack.pop()
    copies = [onnx.NodeProto.FromString(nodes[index].SerializeToString()) for index in order]
    del graph.node[:]
    graph.node.extend(copies)
    return True


def _read(node: onnx.NodeProto) -> list[str]:
    """Return what a node reads, the graphs in it included."""
    names = [*node.input]
    todo = [inner for attribute in node.attribute for inner in (attribute.g, *attribute.graphs) if inner.node]
    while todo:
        graph = todo.pop()
        for inner in graph.node:
            names += inner.input
            todo += [each for attribute in inner.attribute for each in (attribute.g, *attribute.graphs) if each.node]
        names += [value.name for value in graph.output]
    return names
