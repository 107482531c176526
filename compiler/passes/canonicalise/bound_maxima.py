"""Max pooling beyond the datapath's operands, or dear by them, becomes several poolings.

The maximum over a window is that of the maxima over its parts, and these may overlap: a pooling of k1 pixels every t
pixels, t <= k1, and one of k2 behind it see (k2 - 1) t + k1 pixels. Rows and columns are pooled one after the other.
With a dilation of d every d-th pixel belongs together: a row of W pixels of C channels is, byte for byte, one of W / d
pixels of d C channels, and H rows are H / d rows of d W pixels, in which the window has no dilation.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import ExactWindow, IntegerOperator, QMaxPool
from tilewright.compiler.graph.move_operators import QAlias, QPad, QSlice
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.isa.limits import MAX_WINDOW, MAX_WINDOW_STRIDE

__all__ = ["BoundMaxima"]

_LEAST = -128
_TIMES = 4
"""A pooling takes a cycle for each pixel that a window adds; this many times what its axes take apart is too many."""


class BoundMaxima(Pass):
    """Replace each QMaxPool whose window, padding, stride or dilation is none of the datapath's, or whose cost is."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, QMaxPool) and (
                    not _is_bounded(window := node.operator.exact_window)
                    or _is_dear(window, (graph.tensors[node.output].shape or ())[2:])):
                graph = _Steps(graph, node, node.operator).replaced()
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes
                    if isinstance(node.operator, QMaxPool) and not _is_bounded(node.operator.exact_window)]:
            raise PassError(f"Windows of maxima must all be the datapath's, not those of {', '.join(left)}")


def _is_bounded(window: ExactWindow) -> bool:
    return (max(*window.kernel, *window.pads) <= MAX_WINDOW and max(window.strides) <= MAX_WINDOW_STRIDE
            and window.dilations == (1, 1))


def _is_dear(window: ExactWindow, counts: Sequence[int]) -> bool:
    each = [kernel / stride if count > 1 else 1
            for kernel, stride, count in zip(window.kernel, window.strides, counts, strict=True)]
    return math.prod(each) > _TIMES * sum(each)


@dataclass(frozen=True, slots=True)
class _AxisWindow:
    """A window along one axis: ``count`` of them over ``size`` pixels, ``before`` pixels of padding in front."""

    size: int
    kernel: int
    stride: int
    before: int
    count: int

    @property
    def sees_all(self) -> bool:
        """Whether there is one window, of the whole image: its parts may lie side by side and reach beyond it."""
        return (self.count, self.before, self.kernel) == (1, 0, self.size)

    @property
    def whole(self) -> "_AxisWindow":
        """The same window, as often as it fits without padding behind the image, if that is more often."""
        return replace(self, count=max(self.count, (self.size + self.before - self.kernel) // self.stride + 1))

    @property
    def after(self) -> int:
        """Padding behind the image that the last window reaches."""
        return max(0, (self.count - 1) * self.stride + self.kernel - self.size - self.before)


def _steps(window: _AxisWindow) -> Iterator[_AxisWindow]:
    """Yield windows within the limits, one applied to what the one before gives, whose maxima are those of ``window``.

    The last one may give more maxima than are asked for, and where the datapath has no such stride, one for each pixel.
    """
    if window.count == 1:
        # The only window is what it sees of the image, and its stride says nothing.
        window = replace(window, kernel=min(window.size, window.kernel - window.before), before=0, stride=1)
    while window.kernel > MAX_WINDOW or window.stride > MAX_WINDOW_STRIDE:
        step = MAX_WINDOW_STRIDE if window.sees_all else next(
            each for each in range(MAX_WINDOW_STRIDE, 0, -1) if window.stride % each == 0)
        if window.kernel <= max(step, 1 if step > 1 else MAX_WINDOW):
            window = replace(window, stride=1, count=(window.count - 1) * window.stride + 1)
            break
        first, window = _first(window, step)
        yield first
    if window.count == 1:
        window = replace(window, stride=min(window.kernel, MAX_WINDOW_STRIDE))
    yield window.whole


def _first(window: _AxisWindow, step: int) -> tuple[_AxisWindow, _AxisWindow]:
    """Return a window with the stride ``step``, and the one that makes ``window`` of what it gives."""
    sizes = [step] if window.sees_all else [
        size for size in range(step, MAX_WINDOW + 1) if (window.kernel - size) % step == 0]
    kernel = next((size for size in sizes if (window.kernel - size) // step < MAX_WINDOW), sizes[-1])
    before = window.before - step * max(0, -(-(window.before - kernel + 1) // step))
    seen = min(window.size, (window.count - 1) * window.stride - window.before + window.kernel)
    stride, rest = max(1, window.stride // step), (window.before - before) // step
    # Enough to see all pixels, and that the last window begins with one of them.
    count = max(1, -(-(seen + before - kernel) // step) + 1, (window.count - 1) * stride - rest + 1)
    first = _AxisWindow(window.size, kernel, step, before, count).whole
    return first, _AxisWindow(first.count, -(-(window.kernel - kernel) // step) + 1, stride, rest, window.count)


class _Steps:
    """The nodes and tensors that come in place of one pooling."""

    def __init__(self, graph: Graph, node: Node, operator: QMaxPool) -> None:
        self.graph, self.node, self.operator = graph, node, operator
        self.x, self.y = graph.tensors[node.inputs[0]], graph.tensors[node.output]
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []

    def replaced(self) -> Graph:
        """Return the graph with the pooling in steps."""
        window, (height, width) = self.operator.exact_window, (self.y.shape or ())[2:]
        counts, current = (height, width), self.x
        dilated = [axis for axis in range(2) if window.dilations[axis] > 1 and window.kernel[axis] > 1]
        for axis in dilated:
            current = self._dilated(current, axis, counts[axis])
        chains = [[] if axis in dilated else [*_steps(_AxisWindow(
            (self.x.shape or ())[2 + axis], window.kernel[axis], window.strides[axis], window.pads[axis],
            counts[axis]))] for axis in range(2)]
        if not dilated and all(each.kernel == each.stride or each.count == 1 for chain in chains for each in chain):
            current = self._together(current, chains)
        else:
            for axis, chain in enumerate(chains):
                for each in chain:
                    current = self._pooled(current, axis, each)
        for axis in range(2):
            step = window.strides[axis] // math.prod(each.stride for each in chains[axis]) if chains[axis] else 1
            current = self._taken(current, axis, 0, max(1, step), counts[axis])
        last = self.nodes[-1].with_(output=self.y.name)
        return self.graph.with_tensors(*self.tensors[:-1]).replaced((self.node,), *self.nodes[:-1], last)

    def _add(self, x: Tensor, operator: IntegerOperator, *shape: int) -> Tensor:
        made = replace(self.x, name=f"{self.y.name}:step {len(self.nodes)}", shape=(1, *shape))
        self.nodes.append(Node(operator, (x.name,), made.name, self.node.onnx_nodes))
        self.tensors.append(made)
        return made

    def _pool(self, x: Tensor, rows: _AxisWindow | None, columns: _AxisWindow | None) -> Tensor:
        """Add a pooling along one axis or both."""
        shape = x.shape or ()
        down, right = (each or _AxisWindow(size, 1, 1, 0, size)
                       for each, size in zip((rows, columns), shape[2:], strict=True))
        if (down.kernel, right.kernel, down.stride, right.stride) == (1, 1, 1, 1):
            return x
        window = ExactWindow(kernel=(down.kernel, right.kernel), strides=(down.stride, right.stride),
                             pads=(down.before, right.before, down.after, right.after))
        return self._add(x, replace(self.operator, window=window), shape[1], down.count, right.count)

    def _pooled(self, x: Tensor, axis: int, window: _AxisWindow) -> Tensor:
        return self._pool(x, window, None) if axis == 0 else self._pool(x, None, window)

    def _together(self, x: Tensor, chains: list[list[_AxisWindow]]) -> Tensor:
        """Add poolings of windows that lie side by side: both axes at once."""
        for index in range(max(map(len, chains))):
            x = self._pool(x, *(chain[index] if index < len(chain) else None for chain in chains))
        return x

    def _taken(self, x: Tensor, axis: int, start: int, step: int, count: int) -> Tensor:
        """Add a slice along an axis, of every ``step``-th pixel from ``start``, unless there are no others."""
        shape = list(x.shape or ())[1:]
        if shape[1 + axis] == count:
            return x
        starts = [0, 0, 0]
        starts[1 + axis] = start
        steps = (step, 1) if axis == 0 else (1, step)
        shape[1 + axis] = count
        return self._add(x, QSlice((starts[0], starts[1], starts[2]), steps), *shape)

    def _dilated(self, x: Tensor, axis: int, count: int) -> Tensor:
        """Add the pooling along an axis whose pixels belong together in turns, and the slice of what is asked for."""
        window = self.operator.exact_window
        turns, kernel, before = window.dilations[axis], window.kernel[axis], window.pads[axis]
        channels, *size = (x.shape or ())[1:]
        if spare := -size[axis] % turns:
            pads = (0, 0, spare, 0) if axis == 0 else (0, 0, 0, spare)
            size[axis] += spare
            x = self._add(x, QPad(pads, _LEAST), channels, *size)
        front = -(-before // turns)
        start = front * turns - before
        each = size[axis] // turns
        x = self._add(x, QAlias(), *_VIEWS[axis](channels, size[0], size[1], turns))
        inner = _AxisWindow(each, kernel, 1, front, ((count - 1) * window.strides[axis] + start) // turns + 1)
        for step in _steps(inner):
            x = self._pooled(x, axis, step)
        size[axis] = (x.shape or ())[2 + axis] * turns
        x = self._add(x, QAlias(), channels, *size)
        return self._taken(x, axis, start, window.strides[axis], count)


def _rows_apart(channels: int, height: int, width: int, turns: int) -> tuple[int, int, int]:
    return channels, height // turns, width * turns


def _columns_apart(channels: int, height: int, width: int, turns: int) -> tuple[int, int, int]:
    return channels * turns, height, width // turns


_VIEWS: tuple[Callable[[int, int, int, int], tuple[int, int, int]], ...] = (_rows_apart, _columns_apart)
"""Of the axes of rows and of columns, the shape in which pixels ``turns`` apart are neighbours."""
