"""Averages whose windows at the border count fewer values become one average for each count, side by side.

``AveragePool`` with padding that does not count (``count_include_pad=0``) divides by the pixels that lie in the image.
Inside, that is the whole window; along each border and in each corner another number, for which there is a layer
with a window of just that size. Slices of the input and parts of the output are a matter of addresses.
"""

from dataclasses import dataclass, replace

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import ExactWindow, QAverage
from tilewright.compiler.graph.move_operators import QConcat, QSlice
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["SplitAverage"]


class SplitAverage(Pass):
    """Replace ``QAverage(x)`` with uncounted padding by a QConcat of QAverages of QSlices, without padding."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, QAverage) and _uncounted(node.operator):
                graph = _Split(graph, node, node.operator).replaced()
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes
                    if isinstance(node.operator, QAverage) and _uncounted(node.operator)]:
            raise PassError(f"Averages must all count their whole window, not those of {', '.join(left)}")


def _uncounted(average: QAverage) -> bool:
    return any(average.exact_window.pads) and not average.counts_padding


@dataclass(frozen=True, slots=True)
class _Windows:
    """Neighbouring windows of one axis that count equally many pixels: ``count`` of them over first .. stop - 1."""

    first: int
    stop: int
    kernel: int
    count: int


def _alike(size: int, window: ExactWindow, axis: int) -> list[_Windows]:
    """Return the windows along an axis of ``size`` pixels, those inside together; a dilated one counts every few."""
    kernel, step = window.kernel[axis], window.dilations[axis]
    before, after = window.pads[axis], window.pads[axis + 2]
    found: list[_Windows] = []
    for number in range((size + before + after - step * (kernel - 1) - 1) // window.strides[axis] + 1):
        start = number * window.strides[axis] - before
        counted = [pixel for pixel in range(start, start + step * kernel, step) if 0 <= pixel < size]
        if not counted:
            raise BadModelError(f"Window {number} of an average must count a pixel of the image along axis {axis + 2}, "
                                f"and lies in the padding")
        first, stop = counted[0], counted[-1] + 1
        last = found[-1] if found else None
        if last is not None and len(counted) == kernel == last.kernel:
            found[-1] = replace(last, stop=stop, count=last.count + 1)
        else:
            found.append(_Windows(first, stop, len(counted), 1))
    return found


class _Split:
    """The nodes and tensors that come in place of one average."""

    def __init__(self, graph: Graph, node: Node, operator: QAverage) -> None:
        self.graph, self.node, self.operator = graph, node, operator
        self.x, self.y = graph.tensors[node.inputs[0]], graph.tensors[node.output]
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}

    def replaced(self) -> Graph:
        """Return the graph with the average in pieces."""
        window, size = self.operator.exact_window, (self.x.shape or ())[2:]
        rows, columns = (_alike(size[axis], window, axis) for axis in range(2))
        parts = []
        for index, row in enumerate(rows):
            pieces = [self._average(row, column, f"{index}, {i}") for i, column in enumerate(columns)]
            parts.append(self._concat(pieces, 2, f"{index}"))
        self._concat(parts, 1, "")
        return self.graph.with_tensors(*self.tensors.values()).replaced((self.node,), *self.nodes)

    def _new(self, like: Tensor, what: str, height: int, width: int) -> str:
        name = f"{self.y.name}:{what}"
        self.tensors[name] = replace(like, name=name, shape=(*(like.shape or ())[:2], height, width))
        return name

    def _average(self, row: _Windows, column: _Windows, index: str) -> str:
        """Add the average of one piece and return its result."""
        source, (height, width) = self.x.name, (row.stop - row.first, column.stop - column.first)
        if (height, width) != (self.x.shape or ())[2:]:
            source = self._new(self.x, f"input {index}", height, width)
            self.nodes.append(Node(QSlice((0, row.first, column.first)), (self.x.name,), source, self.node.onnx_nodes))
        output = self._new(self.y, f"average {index}", row.count, column.count)
        down, right = (stride if windows.count > 1 else 1 for stride, windows in
                       zip(self.operator.exact_window.strides, (row, column), strict=True))
        window = replace(self.operator.exact_window, kernel=(row.kernel, column.kernel), strides=(down, right),
                         pads=(0, 0, 0, 0))
        self.nodes.append(self.node.with_(operator=replace(self.operator, window=window, windowed=True),
                                          inputs=(source,), output=output))
        return output

    def _concat(self, parts: list[str], axis: int, index: str) -> str:
        """Add a concatenation, of several parts or for the result itself, and return what it writes."""
        if index and len(parts) == 1:
            return parts[0]
        shapes = [(self.tensors[part].shape or ())[2:] for part in parts]
        size = (shapes[0][0], sum(width for _, width in shapes)) if axis == 2 else \
            (sum(height for height, _ in shapes), shapes[0][1])
        output = self._new(self.y, f"rows {index}", *size) if index else self.y.name
        self.nodes.append(Node(QConcat(axis), tuple(parts), output, self.node.onnx_nodes))
        return output
