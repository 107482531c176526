"""Normalisations that an exporter took apart into means, differences, squares and a quotient, found in a graph.

    y = (x - mean(x)) / √(factor · mean((x - mean(x))²) + epsilon) · gain + shift

The quotient may be a product with a reciprocal or a power. Squares may be a power or a product, of the same difference
or of a second one, or their mean stands less the mean's square. TensorFlow's form, x · r + (shift - mean(x) · r) with
r = gain / √…, is found too, and so are PyTorch's of groups, whose channels an InstanceNormalization has in one, and the
quotient without a mean, of RMS and L2 normalisation. Transpositions may stand anywhere in between, as ONNX Runtime's
optimiser leaves them. So is x · r + (-mean(x) · r), as LiteRT's converter of PyTorch writes it.
Sources: symbolic_opset9.py of PyTorch (layer_norm, var_mean), tf.nn.moments, tf.nn.batch_normalization, and
flax.linen.normalization.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxDiv,
    OnnxMul,
    OnnxOperator,
    OnnxReshape,
    OnnxSub,
)
from tilewright.compiler.passes.recognise.normalisations.statistics import (
    RowStatistics,
    centred,
    deviation,
    mean,
    operands,
    reciprocal,
    untransposed,
)

__all__ = ["TakenApart", "normalisations", "of_groups"]

_NO_EPSILON = 1e-24
"""Of rows about 0 that have none: it keeps rows of zeros, and is less than a float32 shows beside any others."""


@dataclass(frozen=True, slots=True, eq=False)
class TakenApart:
    """A normalisation of ``x``, transposed by ``perm``, along ``axes``, which makes ``output``.

    Attributes
    ----------
    axes
        Those of the result, in order.
    gain, shift : ndarray
        float64, of as many dimensions as the result, with an extent of 1 along all axes along which they are the same.
    nodes
        All that compute it, in order.
    centred
        0 takes the place of the mean if not; then there is no shift.
    groups
        Of how many groups of channels means and deviations are; 0 if of each channel by itself, or along other axes.
    """

    x: str
    perm: tuple[int, ...]
    output: str
    axes: tuple[int, ...]
    epsilon: float
    gain: np.ndarray
    shift: np.ndarray
    centred: bool = True
    nodes: tuple[Node, ...] = ()
    groups: int = 0

    def shape(self, graph: Graph) -> tuple[int, ...]:
        """Return the shape of the result."""
        extents = graph.tensors[self.x].shape or ()
        return tuple(extents[axis] for axis in self.perm)


def normalisations(graph: Graph) -> Iterator[TakenApart]:
    """Yield each of them, with the products and sums behind it that are its gain and shift."""
    taken: set[str] = set()
    for node in graph.nodes:
        if node.output in taken:
            continue
        if isinstance(node.operator, OnnxArithmetic):
            found = _normal(graph, node) or _as_tensorflow(graph, node)
        else:
            found = _of_length_one(graph, node) or of_groups(graph, node)
        if found is not None:
            found = _with_affine(graph, found)
            nodes = _between(graph, found)
            taken |= {each.output for each in nodes}
            yield replace(found, nodes=nodes)


def _normal(graph: Graph, node: Node) -> TakenApart | None:
    """Return what a quotient, or a product with a reciprocal, normalises."""
    for difference, other in operands(node, OnnxDiv, OnnxMul):
        rows = centred(graph, difference)
        by, gain = (deviation(graph, other), np.ones(())) if isinstance(node.operator, OnnxDiv) else \
            _gained(graph, other)
        if by is not None and (by.of_same(rows) if by.centred else untransposed(graph, difference) == (by.x, by.perm)) \
                and (found := _found(graph, node.output, by)) is not None:
            return _scaled(graph, found, node.output, gain, np.zeros(()))
    return None


def _as_tensorflow(graph: Graph, node: Node) -> TakenApart | None:
    """Return what x · r + (shift - mean(x) · r), or x · r - mean(x) · r, normalises; r holds the gain."""
    for product, rest in operands(node, OnnxAdd, OnnxSub):
        for x, factor in operands(graph.producer(product), OnnxMul):
            by, gain = _gained(graph, factor)
            if by is None or not by.centred or untransposed(graph, x) != (by.x, by.perm):
                continue
            if isinstance(node.operator, OnnxSub):
                shift = np.zeros(()) if _is_mean_times(graph, rest, by, factor) else None
            else:
                shift = _less_mean(graph, rest, by, factor)
            found = _found(graph, node.output, by)
            if shift is not None and found is not None:
                return _scaled(graph, found, node.output, gain, shift)
    return None


def _gained(graph: Graph, name: str) -> tuple[RowStatistics | None, np.ndarray]:
    """Return the reciprocal deviation in a factor, and the gain that it is multiplied by."""
    if (by := reciprocal(graph, name)) is not None:
        return by, np.ones(())
    for factor, gain in operands(graph.producer(name), OnnxMul):
        if gain in graph.constants and (by := reciprocal(graph, factor)) is not None:
            return by, graph.constants[gain].astype(np.float64)
    return None, np.ones(())


def _less_mean(graph: Graph, name: str, by: RowStatistics, factor: str) -> np.ndarray | None:
    """Return the shift in shift - mean · r, or none in -mean · r; None for anything else."""
    if _is_minus_mean_times(graph, name, by, factor):
        return np.zeros(())
    for shift, product in operands(graph.producer(name), OnnxSub):
        if shift in graph.constants and _is_mean_times(graph, product, by, factor):
            return graph.constants[shift].astype(np.float64)
    return None


def _is_minus_mean_times(graph: Graph, name: str, by: RowStatistics, factor: str) -> bool:
    node = graph.producer(name)
    if node is not None and node.op == "Neg":
        return _is_mean_times(graph, node.inputs[0], by, factor)
    for left, other in operands(node, OnnxMul):
        before = graph.producer(left)
        if before is not None and before.op == "Neg" and (
                (other == factor and by.of_same(mean(graph, before.inputs[0])))
                or (before.inputs[0] == factor and by.of_same(mean(graph, other)))):
            return True
    return False


def _is_mean_times(graph: Graph, name: str, by: RowStatistics, factor: str) -> bool:
    return any(other == factor and by.of_same(mean(graph, left))
               for left, other in operands(graph.producer(name), OnnxMul))


def _with_affine(graph: Graph, found: TakenApart) -> TakenApart:
    """Return it with the products and sums with constants behind it, as far as they alone read it and fit it."""
    while (node := graph.only_reader(found.output)) is not None:
        constant = next((constant for x, constant in operands(node, OnnxMul, OnnxAdd, OnnxSub, OnnxDiv)
                         if x == found.output and constant in graph.constants), None)
        if constant is None:
            break
        value, one, zero = graph.constants[constant].astype(np.float64), np.ones(()), np.zeros(())
        match node.operator:
            case OnnxMul():
                more = _scaled(graph, found, node.output, value, zero)
            case OnnxDiv():
                with np.errstate(divide="ignore"):
                    more = _scaled(graph, found, node.output, 1 / value, zero)
            case OnnxAdd():
                more = _scaled(graph, found, node.output, one, value)
            case _:
                more = _scaled(graph, found, node.output, one, -value)
        if more is None:
            break
        found = more
    return found


def _found(graph: Graph, output: str, by: RowStatistics) -> TakenApart | None:
    """Return a normalisation without gain and shift; None where nothing keeps it from dividing by zero."""
    shape = graph.tensors[by.x].shape
    epsilon = by.epsilon if by.centred else max(by.epsilon, _NO_EPSILON)
    if shape is None or not math.prod(shape) or not (epsilon > 0 and by.factor > 0):
        return None
    ones = np.ones((1,) * len(shape))
    axes = tuple(axis for axis, inner in enumerate(by.perm) if inner in by.axes)
    return TakenApart(by.x, by.perm, output, axes, epsilon / by.factor, ones / math.sqrt(by.factor), ones * 0,
                      by.centred)


def _of_length_one(graph: Graph, node: Node) -> TakenApart | None:
    """Return what an LpNormalization of order 2 normalises: it divides by a row's length, and leaves rows of zeros."""
    if node.op != "LpNormalization" or not isinstance(node.operator, OnnxOperator) \
            or node.operator.attributes.get("p", 2) != 2:
        return None
    x, perm = untransposed(graph, node.inputs[0])
    shape = graph.tensors[x].shape if x in graph.tensors else None
    axis = int(node.operator.attributes.get("axis", -1))
    if shape is None or not -len(perm) <= axis < len(perm):
        return None
    by = RowStatistics(x, frozenset((perm[axis],)), perm, shape[perm[axis]], centred=False)
    return _found(graph, node.output, by)


def of_groups(graph: Graph, node: Node) -> TakenApart | None:
    """Return what an InstanceNormalization of reshaped channels normalises by groups, as PyTorch exports GroupNorm."""
    before, behind = graph.producer(node.inputs[0]) if node.inputs else None, graph.only_reader(node.output)
    if node.op != "InstanceNormalization" or not isinstance(node.operator, OnnxOperator) or before is None \
            or behind is None or not isinstance(before.operator, OnnxReshape) \
            or not isinstance(behind.operator, OnnxReshape) or behind.inputs[0] != node.output:
        return None
    shapes = [graph.tensors[name].shape if name in graph.tensors else None
              for name in (before.inputs[0], node.inputs[0], behind.output)]
    vectors = [graph.constants.get(name) for name in node.inputs[1:3]]
    shape, split, back = shapes
    if shape is None or split is None or back != shape or len(shape) < 3 or len(split) < 3 or split[0] != shape[0] \
            or shape[1] % split[1] or split[1] == shape[1] or len(vectors) < 2:
        return None
    each = (1, shape[1], *[1] * (len(shape) - 2))
    gain, shift = (None if vector is None else np.repeat(vector.astype(np.float64), shape[1] // split[1]).reshape(each)
                   for vector in vectors)
    if gain is None or shift is None:
        return None
    return TakenApart(before.inputs[0], tuple(range(len(shape))), behind.output, tuple(range(2, len(shape))),
                      float(node.operator.attributes.get("epsilon", 1e-5)), gain, shift, groups=split[1])


def _scaled(graph: Graph, found: TakenApart, output: str, gain: np.ndarray, shift: np.ndarray) -> TakenApart | None:
    """Return it times ``gain`` and plus ``shift``.

    None where these vary along axes that are not normalised. Of instances, with all axes from the second on normalised,
    they may vary along axis 1 instead.
    """
    shape, values = found.shape(graph), []
    for each in (gain, shift):
        if each.ndim > len(shape) or not np.isfinite(each).all():
            return None
        each = each.reshape((1,) * (len(shape) - each.ndim) + each.shape)
        if any(extent not in (1, whole) for extent, whole in zip(each.shape, shape, strict=True)):
            return None
        values.append(each)
    new = found.gain * values[0], found.shift * values[0] + values[1]
    if not found.centred and new[1].any():
        return None
    varying = {axis for each in new for axis, extent in enumerate(each.shape) if extent > 1}
    instances = found.centred and len(shape) > 2 and found.axes == tuple(range(2, len(shape)))
    if not (varying <= set(found.axes) or (instances and varying <= {1})):
        return None
    return replace(found, output=output, gain=new[0], shift=new[1])


def _between(graph: Graph, found: TakenApart) -> tuple[Node, ...]:
    """Return the nodes on the way from x to the output, in order."""
    seen, waiting = set(), [found.output]
    while waiting:
        name = waiting.pop()
        node = graph.producer(name)
        if name in seen or name == found.x or node is None:
            continue
        seen.add(name)
        waiting += node.inputs
    return graph.in_order(seen)
