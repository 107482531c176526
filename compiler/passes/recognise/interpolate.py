"""A linear or cubic Resize of integers becomes QInterpolate, with the border of its input repeated where that pays.

ONNX Runtime weighs floats, or in the integer form the integers themselves. Either way the result here is within one
level of it, by a bound that is computed for every phase; what cannot be promised stays the host core's.
"""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QInterpolate
from tilewright.compiler.graph.move_operators import QConcat, QSlice, QUpsample
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxResize, OnnxUpsample
from tilewright.compiler.kernels.language.neighbours import COORDINATES, cubic, linear, originals
from tilewright.compiler.network.interpolation import AxisPhase, axis_phases, fixed_weights

__all__ = ["interpolated"]

_FEW, _MOST = 64, 256
"""Phases of a resize over both axes; with more than a few, it is one over the rows and one over the columns."""
_COPIES = (1, 2, 4, 8)
_NEAREST, _CUT = 0.95, 0.45
"""Levels that a sum may be off for a result within one level: if ONNX Runtime rounds it, and if it cuts it off."""
_ROUNDED = 0.5
_DEFAULTS = (("antialias", 0), ("exclude_outside", 0), ("keep_aspect_ratio_policy", "stretch"))

_Phases = tuple[AxisPhase, ...]
_WHOLE = AxisPhase(0, 1, 1, 0, 1, (1.0,))


@dataclass(frozen=True, slots=True)
class _Axis:
    """Phases of an axis, on its source with so many elements repeated before and after it."""

    phases: _Phases
    before: int = 0
    after: int = 0


def interpolated(graph: Graph, node: Node, resize: OnnxResize, x: Tensor, y: Tensor) -> tuple[Graph, tuple[Node, ...]]:
    """Return the graph with new tensors, and the integer operators for ``node``, a linear or cubic Resize.

    Parameters
    ----------
    graph : Graph
    node, resize : Node, OnnxResize
        The node and its operator.
    x, y : Tensor
        Integer input and output, with their quantisation, or of the integer form, without.

    Raises
    ------
    UnsupportedNodeError
        If it resizes axes other than height and width, or one level cannot be promised, or takes too many layers.
    """
    return _Interpolating(graph, node, resize, x, y).built()


class _Interpolating:
    """The nodes and tensors that come in place of one Resize."""

    def __init__(self, graph: Graph, node: Node, resize: OnnxResize, x: Tensor, y: Tensor) -> None:
        self.graph, self.node, self.resize, self.x, self.y = graph, node, resize, x, y
        self.direct = node.inputs[0] == x.name
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        shape = x.shape or ()
        if len(shape) != 4 or shape[0] != 1 or min(shape) < 1:
            raise self.refusal(f"its input has the shape {list(shape)}")
        self.shape = shape

    def refusal(self, reason: str) -> UnsupportedNodeError:
        """Return the error that says why the datapath does not resize."""
        return UnsupportedNodeError(self.node.name, self.node.op, reason, "use another resize")

    def built(self) -> tuple[Graph, tuple[Node, ...]]:
        """Return the graph with the tensors, and the nodes."""
        clamped, padded = ([self.axis(axis, repeated=repeated) for axis in (2, 3)] for repeated in (False, True))
        chosen = min(clamped, padded, key=_layers)
        if self.y.shape not in (None, (*self.shape[:2], *_size(chosen))):
            raise self.refusal(f"it makes {list(self.y.shape or ())} of {list(self.shape)}")
        rows, columns = chosen
        both, apart = len(rows.phases) * len(columns.phases), len(rows.phases) + len(columns.phases)
        if both > _FEW and apart <= _MOST and self.separable:
            self.separated(rows, columns)
        elif both <= _MOST:
            self.resized(self.x, self.y, (rows, columns), 0.0, direct=self.direct)
        else:
            raise self.refusal(f"it has {len(rows.phases)} by {len(columns.phases)} different pixel weights")
        return self.graph.with_tensors(*self.tensors), tuple(self.nodes)

    @property
    def separable(self) -> bool:
        """Whether a rounding between rows and columns leaves the result within one level.

        Linear weights are positive and 1 in all, so half a level stays that; where the result is cut off towards 0, it
        is too much, and the levels between must have a scale.
        """
        return self.resize.mode == "linear" and (not self.direct or (self.x.quantised and self.x.dtype == "uint8"))

    def separated(self, rows: _Axis, columns: _Axis) -> None:
        """Add a resize over the rows, and one of its result over the columns."""
        size = sum(phase.count for phase in rows.phases), self.shape[3]
        between = replace(self.x, name=f"{self.y.name}:rows resized", shape=(*self.shape[:2], *size))
        self.tensors.append(between)
        kept = [_Axis((replace(_WHOLE, count=count),)) for count in size]
        error = self.resized(self.x, between, (rows, kept[1]), 0.0, direct=False)
        self.resized(between, self.y, (kept[0], columns), error + _ROUNDED, direct=self.direct)

    # ---- what is asked for

    def axis(self, axis: int, *, repeated: bool) -> _Axis:
        """Return the phases of an axis, its border repeated as far as its neighbours reach, or not at all."""
        scale, size, dim = *self.scaled(axis), self.shape[axis]
        if scale == 1 and size == dim:
            return _Axis((replace(_WHOLE, count=dim),))
        x = originals(self.coordinates, dim, size, scale)
        if self.resize.mode == "cubic":
            places, weights = cubic(x, np.float32(self.resize.attributes.get("cubic_coeff_a", -0.75)))
        elif repeated:
            upper = x - np.floor(x)
            low = np.floor(x).astype(np.int64)
            places, weights = np.stack([low, low + 1]), np.stack([1 - upper, upper])
        else:
            places, weights = linear(x, dim)
        if not repeated:
            return _Axis(axis_phases(np.clip(places, 0, dim - 1), weights))
        phases = axis_phases(places, weights)
        before = max(0, *(-each.start for each in phases))
        last = max(each.start + each.stride * (each.count - 1) + len(each.weights) for each in phases)
        return _Axis(tuple(replace(each, start=each.start + before) for each in phases), before, max(0, last - dim))

    @property
    def older(self) -> bool:
        """Whether it is of an operator set before 11."""
        return isinstance(self.resize, OnnxUpsample) or len(self.node.inputs) == 2

    @property
    def coordinates(self) -> str:
        """The coordinate mode."""
        found = self.resize.coordinate_transformation_mode or ("asymmetric" if self.older else "half_pixel")
        stated = (("coordinate_transformation_mode", found, COORDINATES), *(
            (name, self.resize.attributes.get(name, default), (default,)) for name, default in _DEFAULTS))
        for name, value, known in stated:
            if value not in known:
                raise self.refusal(f"its {name} is {value}")
        return found

    def scaled(self, axis: int) -> tuple[np.float32, int]:
        """Return the scale of an axis, and its size in the result."""
        rank = len(self.shape)
        axes = [int(each) % rank for each in self.resize.axes or range(rank)]
        sizes, scales = self.input(3), self.input(1 if self.older else 2)
        if not scales.size and "scales" in self.resize.attributes:
            scales = np.array(self.resize.attributes["scales"], np.float32)
        given = sizes if sizes.size else scales
        if given.size != len(axes) or not (np.all(np.isfinite(given)) and np.all(given > 0)):
            raise self.refusal("its sizes are computed while the model runs, or missing")
        for other, value in zip(axes, given, strict=True):
            if other < 2 and value != (self.shape[other] if sizes.size else 1):
                raise self.refusal("it resizes axes other than height and width")
        if axis not in axes:
            return np.float32(1), self.shape[axis]
        value, dim = given[axes.index(axis)], self.shape[axis]
        if sizes.size:
            return np.float32(int(value) / dim), int(value)
        size = math.floor(np.float32(dim) * np.float32(value))
        if size < 1:
            raise self.refusal("its result is empty")
        return np.float32(value), size

    def input(self, position: int) -> np.ndarray:
        """Return a constant input, empty if there is none."""
        name = (*self.node.inputs, "", "", "", "")[position]
        return quantisation.constant(self.graph, self.node, name, "sizes").ravel() if name else np.zeros(0, np.float32)

    # ---- what is made of it

    def resized(self, x: Tensor, y: Tensor, axes: tuple[_Axis, _Axis], error: float, *, direct: bool) -> float:
        """Add a QInterpolate of ``x`` that writes ``y``, and return how many levels it is off, at most.

        ``error`` is how many levels of ``x`` may be off already; ``direct`` as of QInterpolate.
        """
        rows, columns = axes
        ratio = 1.0 if x.scale is None or y.scale is None else float(x.scale / y.scale)
        unsigned = x.dtype == "uint8"
        zeros = (-128, 127) if x.zero_point is None else (x.zero_point - 128 * unsigned,)
        most = _CUT if direct and not unsigned else _NEAREST
        error *= ratio
        for copies in _COPIES:
            off = error + max(fixed_weights(*pair, copies, zero, ratio, direct and unsigned).error
                              for pair in product(rows.phases, columns.phases) for zero in zeros)
            if off <= most:
                break
        else:
            raise self.refusal(f"its weights in 8 bits may be {off:.1f} levels off")
        source = self.copied(self.bordered(x, y, rows, columns), y, copies)
        exact = off == 0 and (unsigned if direct else _is_power(x.scale) and _is_power(y.scale))
        operator = QInterpolate(rows=rows.phases, columns=columns.phases, copies=copies, direct=direct,
                                exact=exact).of_type(x.dtype)
        self.nodes.append(Node(operator, (source.name,), y.name, self.node.onnx_nodes))
        return off

    def bordered(self, x: Tensor, y: Tensor, rows: _Axis, columns: _Axis) -> Tensor:
        """Add what repeats the border of ``x``, and return the result."""
        for index, axis in ((1, rows), (2, columns)):
            if not axis.before and not axis.after:
                continue
            shape = list(x.shape or ())
            size = shape[1 + index]
            parts = [self.border(x, y, index, at, count) for at, count in ((0, axis.before), (size - 1, axis.after))]
            shape[1 + index] = size + axis.before + axis.after
            wider = replace(x, name=f"{y.name}:border {index}", shape=tuple(shape))
            self.tensors.append(wider)
            names = (*[parts[0]] * axis.before, x.name, *[parts[1]] * axis.after)
            self.nodes.append(Node(QConcat(index), names, wider.name, self.node.onnx_nodes))
            x = wider
        return x

    def border(self, x: Tensor, y: Tensor, index: int, at: int, count: int) -> str:
        """Add the row or column of ``x`` at ``at``, if it counts, and return its name."""
        if not count:
            return ""
        shape, starts = list(x.shape or ()), [0, 0, 0]
        shape[1 + index], starts[index] = 1, at
        edge = replace(x, name=f"{y.name}:edge {index}, {at}", shape=tuple(shape))
        self.tensors.append(edge)
        self.nodes.append(Node(QSlice((0, starts[1], starts[2])), (x.name,), edge.name, self.node.onnx_nodes))
        return edge.name

    def copied(self, x: Tensor, y: Tensor, copies: int) -> Tensor:
        """Add what repeats every column of ``x``, and return the result."""
        if copies == 1:
            return x
        shape = x.shape or ()
        wider = replace(x, name=f"{y.name}:columns repeated", shape=(*shape[:3], shape[3] * copies))
        self.tensors.append(wider)
        self.nodes.append(Node(QUpsample((1, copies)), (x.name,), wider.name, self.node.onnx_nodes))
        return wider


def _size(axes: list[_Axis]) -> tuple[int, ...]:
    return tuple(sum(phase.count for phase in axis.phases) for axis in axes)


def _layers(axes: list[_Axis]) -> int:
    """Return about how many layers the phases take, and the copies of the border."""
    rows, columns = axes
    return len(rows.phases) * len(columns.phases) + sum(2 * (axis.before + axis.after) for axis in axes)


def _is_power(scale: np.float32 | None) -> bool:
    """Tell whether a scale is a power of two."""
    return scale is not None and math.frexp(float(scale))[0] == 0.5
