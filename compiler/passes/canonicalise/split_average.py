"""Averages whose windows at the border count fewer values become one average per number counted, side by side.

``AveragePool`` with padding that does not count (``count_include_pad=0``) divides by the pixels that lie in the image.
Inside, that is the whole window; along each border and in each corner another number, for which there is a layer
with a window of just that size. Slices of the input and parts of the output are a matter of addresses.
"""

from dataclasses import dataclass, replace

from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.rewrite import Pass, PassError


class SplitAverage(Pass):
    """Replace ``QAverage(x)`` with uncounted padding by a QConcat of QAverages of QSlices, without padding."""

    def apply(self, graph: Graph) -> Graph:
        for node in [node for node in graph.nodes if _uncounted(node)]:
            graph = _Split(graph, node).replaced()
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if _uncounted(node)]:
            raise PassError(f"Averages must all count their whole window, not those of {', '.join(left)}")


def _uncounted(node: Node) -> bool:
    return node.op == "QAverage" and any(node.attrs["pads"]) and not node.attrs.get("count_include_pad", 0)


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring windows of one axis that count equally many pixels: ``count`` of them over first .. stop - 1."""

    first: int
    stop: int
    kernel: int
    count: int


def _groups(size: int, kernel: int, stride: int, before: int, after: int) -> list[_Group]:
    found: list[_Group] = []
    for window in range((size + before + after - kernel) // stride + 1):
        start = window * stride - before
        first, stop = max(0, start), min(size, start + kernel)
        last = found[-1] if found else None
        if last is not None and stop - first == kernel == last.kernel:
            found[-1] = replace(last, stop=stop, count=last.count + 1)
        else:
            found.append(_Group(first, stop, stop - first, 1))
    return found


class _Split:
    """What comes in place of one average."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.x, self.y = graph.tensors[node.inputs[0]], graph.tensors[node.output]
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}

    def replaced(self) -> Graph:
        """Return the graph with the average in pieces."""
        attrs, size = self.node.attrs, (self.x.shape or ())[2:]
        kernel, strides, pads = attrs["kernel"], attrs["strides"], attrs["pads"]
        rows, columns = (_groups(size[i], kernel[i], strides[i], pads[i], pads[i + 2]) for i in range(2))
        parts = []
        for index, row in enumerate(rows):
            pieces = [self._average(row, column, f"{index}, {i}") for i, column in enumerate(columns)]
            parts.append(self._concat(pieces, 2, f"{index}"))
        self._concat(parts, 1, "")
        nodes = [new for node in self.graph.nodes for new in (self.nodes if node is self.node else (node,))]
        return self.graph.with_(nodes=tuple(nodes), tensors={**self.graph.tensors, **self.tensors})

    def _new(self, like: Tensor, what: str, height: int, width: int) -> str:
        name = f"{self.y.name}:{what}"
        self.tensors[name] = replace(like, name=name, shape=(*(like.shape or ())[:2], height, width))
        return name

    def _average(self, row: _Group, column: _Group, index: str) -> str:
        """Add the average of one piece and return its result."""
        source, (height, width) = self.x.name, (row.stop - row.first, column.stop - column.first)
        if (height, width) != (self.x.shape or ())[2:]:
            source = self._new(self.x, f"input {index}", height, width)
            self.nodes.append(Node("QSlice", (self.x.name,), source, {
                "starts": (0, row.first, column.first), "steps": (1, 1)}, self.node.onnx_nodes))
        output = self._new(self.y, f"average {index}", row.count, column.count)
        strides = tuple(stride if group.count > 1 else 1 for stride, group in
                        zip(self.node.attrs["strides"], (row, column), strict=True))
        attrs = {**self.node.attrs, "kernel": (row.kernel, column.kernel), "strides": strides, "pads": (0, 0, 0, 0),
                 "windowed": True}
        self.nodes.append(self.node.with_(inputs=(source,), output=output, attrs=attrs))
        return output

    def _concat(self, parts: list[str], axis: int, index: str) -> str:
        """Add a concatenation, of several parts or for the result itself, and return what it writes."""
        if index and len(parts) == 1:
            return parts[0]
        shapes = [(self.tensors[part].shape or ())[2:] for part in parts]
        size = (shapes[0][0], sum(width for _, width in shapes)) if axis == 2 else \
            (sum(height for height, _ in shapes), shapes[0][1])
        output = self._new(self.y, f"rows {index}", *size) if index else self.y.name
        self.nodes.append(Node("QConcat", tuple(parts), output, {"axis": axis}, self.node.onnx_nodes))
        return output
