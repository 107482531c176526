"""Models that quantise at run time, as float models: what DynamicQuantizeLinear makes has ranges of samples instead.

A product of integers and the factors behind it are one product of real numbers, in ONNX's own definitions::

    Mul(Cast(ConvInteger(q, w, z, w_z)), s · w_s) = Conv(s · (q - z), w_s · (w - w_z)) ≈ Conv(x, DequantizeLinear(w))

where DynamicQuantizeLinear makes q, s and z of x. A bias that is divided by s · w_s and rounded, and added to the sums,
as Neural Compressor writes it, is added behind. Weights keep their levels. What is of no such form stays as it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

__all__ = ["FIXED_NOTE", "with_fixed_ranges"]

FIXED_NOTE = ("ranges that the file computes at run time were fixed from the samples: these are the results of the "
              "network quantised statically, not of the file")
"""Of a model that is computed otherwise than its file says, because its user gave samples for its ranges."""

_REAL = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}


def with_fixed_ranges(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model without what quantises at run time, so that its ranges may be had from samples.

    Parameters
    ----------
    model : ModelProto
        As `compiler.onnx.reader.read_model` returns it; it stays as it is.

    Returns
    -------
    ModelProto or None
        None if none of its products has the form that `quantize_dynamic` or Neural Compressor writes.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    found = _RunTime.of(graph)
    new = dict(found.real_product(node) for node in graph.node if node.op_type in _REAL)
    if not any(new.values()):
        return None
    nodes = [NodeProto.FromString(each.SerializeToString()) for node in graph.node
             for each in new.get(node.output[0], ()) or (found.without_levels(node),)]
    del graph.node[:]
    graph.node.extend(reversed([*_read_nodes(nodes, {value.name for value in graph.output})]))
    graph.initializer.extend(found.added)
    return made


@dataclass(slots=True)
class _SumFactors:
    """Factors of a sum of integers: scales that are computed, and constants as they are broadcast."""

    scales: list[str] = field(default_factory=list)
    constants: list[np.ndarray] = field(default_factory=list)

    @property
    def of_channels(self) -> np.ndarray:
        """The product of the constants, one or one for each channel."""
        return np.asarray(np.prod(np.broadcast_arrays(np.ones(1), *(each.ravel() for each in self.constants)), axis=0))

    def add(self, other: "_SumFactors") -> None:
        self.scales += other.scales
        self.constants += other.constants


@dataclass(frozen=True, slots=True)
class _RealOperand:
    """An operand of a product: floats that were quantised for it, and their scale, or constant levels."""

    name: str
    scale: str = ""


@dataclass(slots=True)
class _RunTime:
    """A graph that quantises at run time: who makes and reads what, and the floats behind levels and scales."""

    makers: Mapping[str, NodeProto]
    readers: Mapping[str, list[NodeProto]]
    constants: Mapping[str, np.ndarray]
    outputs: frozenset[str]
    quantisers: Mapping[str, NodeProto]
    added: list[TensorProto] = field(default_factory=list)

    @classmethod
    def of(cls, graph: onnx.GraphProto) -> "_RunTime":
        readers: dict[str, list[NodeProto]] = {}
        for node in graph.node:
            for name in _reads(node):
                readers.setdefault(name, []).append(node)
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        constants |= {node.output[0]: numpy_helper.to_array(each.t) for node in graph.node if node.op_type == "Constant"
                      for each in node.attribute if each.name == "value"}
        return cls({name: node for node in graph.node for name in node.output}, readers, constants,
                   frozenset(value.name for value in graph.output),
                   {name: node for node in graph.node if node.op_type == "DynamicQuantizeLinear"
                    for name in node.output})

    def without_levels(self, node: NodeProto) -> NodeProto:
        """Return the node, or what passes on the floats whose levels it dequantises."""
        source = self.quantisers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if source is None or list(node.input) != list(source.output)[:len(node.input)]:
            return node
        return helper.make_node("Identity", source.input[:1], node.output, name=node.name)

    def real_product(self, product: NodeProto) -> tuple[str, list[NodeProto]]:
        """Return the last result of a product of integers and its factors, and the product of real numbers for it.

        There are no nodes if it has another form.
        """
        last, factors, bias = self._behind(product)
        operands = [self._operand(product, place) for place in (0, 1)] if last else [None]
        scales = sorted(each.scale for each in operands if each is not None and each.scale)
        if None in operands or not scales or scales != sorted(factors.scales):
            return "", []
        names = [each.name for each in operands if each]
        if bias is None:
            return last, self._as_real(product, last, names, factors.constants)
        nodes = self._as_real(product, f"{last}:sums", names, factors.constants)
        added = self._constant(bias, f"{last}:bias")
        return last, nodes and [*nodes, helper.make_node("Add", [f"{last}:sums", added], [last], name=f"{last}:Add")]

    def _behind(self, product: NodeProto) -> tuple[str, _SumFactors, np.ndarray | None]:
        """Return the last result behind a product's Cast and factors, "" without a Cast; the factors, and the bias."""
        factors, cast = _SumFactors(), self._only_reader(product.output[0])
        added = None
        if cast is not None and cast.op_type == "Add":
            added = self._rounded_bias(cast.input[1] if cast.input[0] == product.output[0] else cast.input[0])
            cast = self._only_reader(cast.output[0]) if added is not None else None
        if cast is None or cast.op_type != "Cast":
            return "", factors, None
        last = cast.output[0]
        while (node := self._only_reader(last)) is not None and node.op_type == "Mul":
            given = self._factors(node.input[1] if node.input[0] == last else node.input[0])
            if given is None:
                break
            factors.add(given)
            last = node.output[0]
        if added is not None and (sorted(added[1].scales) != sorted(factors.scales)
                                  or not np.array_equal(added[1].of_channels, factors.of_channels)):
            return "", factors, None
        return last, factors, None if added is None else added[0]

    def _rounded_bias(self, name: str) -> tuple[np.ndarray, _SumFactors] | None:
        """Return a bias and the factors by which it is divided before it is rounded; None of another value."""
        shape, maker = None, None
        for op in ("Reshape", "Cast", "Floor", "Div"):
            maker = self.makers.get(name)
            if maker is None or maker.op_type != op:
                if op == "Reshape":
                    continue
                return None
            if op == "Reshape":
                shape = self.constants.get(maker.input[1])
            name = maker.input[0]
        factors = self._factors(maker.input[1]) if maker is not None else None
        if factors is None or name not in self.constants:
            return None
        bias = self.constants[name]
        return (bias if shape is None else bias.reshape(tuple(shape))), factors

    def _only_reader(self, name: str) -> NodeProto | None:
        near = self.readers.get(name, [])
        return near[0] if len(near) == 1 and name not in self.outputs else None

    def _factors(self, name: str) -> _SumFactors | None:
        """Return what a factor consists of; None if it is no product of constants and scales of run time."""
        if name in self.constants:
            return _SumFactors(constants=[self.constants[name]])
        maker = self.makers.get(name)
        if name in self.quantisers:
            return _SumFactors(scales=[name]) if name == self.quantisers[name].output[1] else None
        if maker is None or maker.op_type != "Mul":
            return None
        parts = [self._factors(each) for each in maker.input]
        both = _SumFactors()
        for part in parts:
            if part is None:
                return None
            both.add(part)
        return both

    def _operand(self, product: NodeProto, place: int) -> "_RealOperand | None":
        """Return an operand: the floats that were quantised for it, or constant levels."""
        name, zero = product.input[place], product.input[place + 2] if len(product.input) > place + 2 else ""
        source = self.quantisers.get(name)
        if source is not None:
            levels, scale, zero_point = source.output
            return _RealOperand(source.input[0], scale) if (name, zero) == (levels, zero_point) else None
        return _RealOperand(name) if place and name in self.constants and (not zero or zero in self.constants) else None

    def _as_real(self, product: NodeProto, output: str, names: list[str],
                 constants: list[np.ndarray]) -> list[NodeProto]:
        """Return the product of floats; of constant weights, with all constant factors in their scale."""
        name, conv = product.name or product.output[0], product.op_type == "ConvInteger"
        nodes: list[NodeProto] = []
        if names[1] in self.constants:
            scale = _of_channels(constants, self.constants[names[1]], conv=conv)
            if scale is None:
                return []
            nodes.append(self._weights(product, names[1], scale, conv=conv))
            names, constants = [names[0], nodes[-1].output[0]], []
        results = [f"{output}:{index}" for index in range(len(constants))]
        real = helper.make_node(_REAL[product.op_type], names, [(*results, output)[0]], name=name)
        real.attribute.extend(product.attribute)
        nodes.append(real)
        for index, value in enumerate(constants):
            factor = self._constant(value, f"{output}:factor {index}")
            nodes.append(helper.make_node("Mul", [results[index], factor], [(*results, output)[index + 1]],
                                          name=f"{name}:Mul {index}"))
        return nodes

    def _weights(self, product: NodeProto, name: str, scale: np.ndarray, *, conv: bool) -> NodeProto:
        """Return the DequantizeLinear of a product's weights, with one scale, or one for each channel."""
        levels = self.constants[name]
        zero = self.constants[product.input[3]] if len(product.input) > 3 and product.input[3] else \
            np.zeros((), levels.dtype)
        count = max(scale.size, zero.size)
        shape = () if count == 1 else (count,)
        label = f"{product.name or product.output[0]}:weights"
        given = [self._constant(np.broadcast_to(each.ravel(), (count,)).reshape(shape), f"{label}' {what}")
                 for each, what in ((scale, "scale"), (zero, "zero point"))]
        axis = {"axis": 0 if conv else levels.ndim - 1} if shape else {}
        return helper.make_node("DequantizeLinear", [name, *given], [label], name=label, **axis)

    def _constant(self, value: np.ndarray, name: str) -> str:
        self.added.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name


def _of_channels(constants: list[np.ndarray], weights: np.ndarray, *, conv: bool) -> np.ndarray | None:
    """Return factors as float32, one or one for each output channel; None if they differ along something else."""
    channels = weights.shape[0] if conv else weights.shape[-1]
    behind = weights.ndim - 2 if conv else 0
    scale = np.ones(1, np.float32)
    for each in constants:
        along = each.reshape(()).reshape(1) if each.size == 1 else each.ravel()
        dims = [1] * behind if conv else []
        if each.size > 1 and (each.size != channels or each.shape[-1 - behind:] != (channels, *dims)):
            return None
        scale = scale * along.astype(np.float32)
    return scale if scale.size in (1, channels) and (scale > 0).all() else None


def _read_nodes(nodes: list[NodeProto], outputs: set[str]) -> Iterator[NodeProto]:
    """Yield the nodes of which something is read, from the last to the first."""
    read = set(outputs)
    for node in reversed(nodes):
        if read & set(node.output):
            read |= set(_reads(node))
            yield node


def _reads(node: NodeProto) -> Iterator[str]:
    """Yield the names that a node reads, those in bodies of a Loop, an If or a Scan too."""
    yield from node.input
    for each in node.attribute:
        for body in (each.g, *each.graphs):
            yield from (value.name for value in body.output)
            for inner in body.node:
                yield from _reads(inner)
