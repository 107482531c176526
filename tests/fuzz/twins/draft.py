"""A model that is being rewritten: its constants, who makes and who reads a tensor, names that nobody has."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["QUANTISATION", "Draft", "Levels", "attribute"]

QUANTISATION = ("QuantizeLinear", "DequantizeLinear")

T = TypeVar("T")


@dataclass(frozen=True)
class Levels:
    """A tensor of levels within the model: the Q that makes it, and the DQs that alone read it."""

    name: str
    q: onnx.NodeProto
    dqs: tuple[onnx.NodeProto, ...]


@dataclass
class Draft:
    """A model, and the random choices of one rewriting; ``external`` asks for data in a file of their own."""

    model: onnx.ModelProto
    rng: random.Random
    external: bool = False
    _count: int = field(default=0, init=False)

    @property
    def graph(self) -> onnx.GraphProto:
        return self.model.graph

    @cached_property
    def _taken(self) -> set[str]:
        graph = self.graph
        return {each.name for each in (*graph.input, *graph.output, *graph.initializer)} | {
            name for node in graph.node for name in (node.name, *node.input, *node.output)} | {
            name for node in graph.node for each in node.attribute for inner in each.g.node
            for name in (inner.name, *inner.output)}

    def fresh(self, stem: str) -> str:
        """Return a name that no tensor and no node has."""
        while (name := f"{stem.partition('~')[0]}~{self._count}") in self._taken:
            self._count += 1
        self._taken.add(name)
        return name

    @property
    def opset(self) -> int:
        return next(each.version for each in self.model.opset_import if each.domain in ("", "ai.onnx"))

    @property
    def outputs(self) -> set[str]:
        return {value.name for value in self.graph.output}

    def constants(self) -> dict[str, np.ndarray]:
        """Return the initializers that no caller can replace, and the values of Constant nodes."""
        given = {value.name for value in self.graph.input}
        found = {each.name: numpy_helper.to_array(each) for each in self.graph.initializer if each.name not in given}
        for node in self.graph.node:
            if node.op_type == "Constant" and (value := attribute(node, "value")) is not None:
                found[node.output[0]] = numpy_helper.to_array(value)
        return found

    def constant(self, array: np.ndarray, stem: str = "constant") -> str:
        """Add a constant and return its name."""
        name = self.fresh(stem)
        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def add(self, op: str, inputs: Sequence[str], stem: str, *, output: str = "", domain: str = "",
            **attributes: object) -> str:
        """Add a node, name its result and return that name; `in_order` puts the node where it belongs."""
        name = output or self.fresh(stem)
        self.graph.node.append(helper.make_node(op, list(inputs), [name], self.fresh(f"{op}"), domain=domain,
                                                **attributes))
        return name

    def import_domain(self, domain: str) -> None:
        """Import ``domain`` unless it is imported."""
        if all(each.domain != domain for each in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid(domain, 1))

    def makers(self) -> dict[str, onnx.NodeProto]:
        return {name: node for node in self.graph.node for name in node.output if name}

    def readers(self) -> dict[str, list[tuple[onnx.NodeProto, int]]]:
        """Return for each tensor the nodes that read it, and as which of their inputs."""
        found: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        for node in self.graph.node:
            for index, name in enumerate(node.input):
                if name:
                    found.setdefault(name, []).append((node, index))
        return found

    def levels(self) -> list[Levels]:
        """Return the tensors of levels that one Q makes and only DQs read, none of them an output."""
        readers, outputs = self.readers(), self.outputs
        found = []
        for node in self.graph.node:
            if node.op_type != "QuantizeLinear" or node.output[0] in outputs:
                continue
            dqs = tuple(reader for reader, index in readers.get(node.output[0], ())
                        if reader.op_type == "DequantizeLinear" and index == 0)
            if dqs and len(dqs) == len(readers[node.output[0]]):
                found.append(Levels(node.output[0], node, dqs))
        return found

    def some(self, places: Sequence[T]) -> list[T]:
        """Return about half of ``places``, at least one if there is any."""
        chosen = [each for each in places if self.rng.random() < 0.5]
        return chosen or ([self.rng.choice(list(places))] if places else [])

    def drop(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Take ``nodes`` out."""
        gone = {id(each) for each in nodes}
        left = [node for node in self.graph.node if id(node) not in gone]
        del self.graph.node[:]
        self.graph.node.extend(left)

    def in_order(self) -> None:
        """Put the nodes in an order in which each stands behind what it reads, near to the one that they have."""
        self.order(list(self.graph.node))

    def order(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Put ``nodes``, all there are, in the order nearest to that in which each stands behind what it reads."""
        makers = {name: node for node in nodes for name in node.output if name}
        placed: set[int] = set()
        done: list[onnx.NodeProto] = []
        for node in nodes:
            stack = [(node, _sources(node, makers))]
            while stack:
                top, sources = stack[-1]
                source = next((each for each in sources if id(each) not in placed), None)
                if source is not None:
                    stack.append((source, _sources(source, makers)))
                    continue
                stack.pop()
                if id(top) not in placed:
                    placed.add(id(top))
                    done.append(top)
        copies = [helper.make_node("Identity", [], []) for _ in done]
        for copy, node in zip(copies, done, strict=True):
            copy.CopyFrom(node)
        del self.graph.node[:]
        self.graph.node.extend(copies)

    def finish(self) -> None:
        """Put the nodes in order, and leave out what nobody reads and notes about tensors that may be gone."""
        self.in_order()
        read = {name for node in self.graph.node for name in _read(node)} | self.outputs
        given = {value.name for value in self.graph.input}
        kept = [each for each in self.graph.initializer if each.name in read or each.name in given]
        copies = [onnx.TensorProto() for _ in kept]
        for copy, each in zip(copies, kept, strict=True):
            copy.CopyFrom(each)
        del self.graph.initializer[:]
        self.graph.initializer.extend(copies)
        del self.graph.value_info[:]


def _sources(node: onnx.NodeProto, makers: dict[str, onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    return iter([makers[name] for name in _read(node) if name in makers])


def _read(node: onnx.NodeProto) -> list[str]:
    """Return what a node reads, in its branches too."""
    return [*node.input, *(name for each in node.attribute for inner in each.g.node for name in inner.input)]


def attribute(node: onnx.NodeProto, name: str, default=None):
    """Return an attribute's value, or ``default``."""
    for each in node.attribute:
        if each.name == name:
            return helper.get_attribute_value(each)
    return default
