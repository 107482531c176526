"""Nodes in execution order, found by the tensors that they write and read, in a list that is never changed.

A changed copy costs as much as the change: the copies share persistent maps (hash tries), so that a pass which rewrites
every node of a graph, one by one, is still linear. What was there before stays as it was, for whoever takes it back.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from immutables import Map

from tilewright.compiler.graph.node import Node

__all__ = ["NodeList"]

_Place = tuple[int, ...]
"""Where a node stands. Places are in lexicographic order; between (3,) and (4,) there is room for (3, 0), (3, 1) …"""


@dataclass(frozen=True, slots=True)
class _Index:
    """Nodes by place, the place of the one that writes a value, and of those that read it, with how often each does."""

    nodes: Map[_Place, Node]
    writers: Map[str, _Place]
    readers: Map[str, Map[_Place, int]]


class NodeList(Sequence[Node]):
    """Nodes of which each writes a value of its own."""

    __slots__ = ("_index", "_order")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._order: tuple[Node, ...] | None = tuple(nodes)
        self._index: _Index | None = None

    def __len__(self) -> int:
        return len(self._nodes())

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes())

    def __getitem__(self, index: Any) -> Any:
        return self._nodes()[index]

    def producer(self, value: str) -> Node | None:
        """Return the node that writes ``value``, if one does."""
        index = self._indexed()
        place = index.writers.get(value)
        return None if place is None else index.nodes[place]

    def readers(self, value: str) -> tuple[Node, ...]:
        """Return the nodes that read ``value``, in order."""
        index = self._indexed()
        return tuple(index.nodes[place] for place in sorted(index.readers.get(value, ())))

    def uses(self, value: str) -> int:
        """Return how many inputs of nodes are ``value``."""
        return sum(self._indexed().readers.get(value, Map[_Place, int]()).values())

    def in_order(self, values: Iterable[str]) -> tuple[Node, ...]:
        """Return the nodes that write ``values``, in order."""
        index = self._indexed()
        return tuple(index.nodes[place] for place in sorted(index.writers[value] for value in values))

    def replaced(self, old: Iterable[Node], new: Sequence[Node]) -> Self:
        """Return a copy in which ``new`` stand for all of ``old``, at the place of the last of them."""
        index = self._indexed()
        places = sorted(index.writers[node.output] for node in old)
        last = places[-1]
        edit = _Edit(index)
        for place in places:
            edit.remove(place)
        for number, node in enumerate(new):
            edit.add(last if len(new) == 1 else (*last, number), node)
        return self._of(edit.done())

    def with_inputs(self, value: str, other: str) -> Self:
        """Return a copy in which every node that reads ``value`` reads ``other`` instead."""
        index = self._indexed()
        edit = _Edit(index)
        for place in index.readers.get(value, ()):
            node = index.nodes[place]
            edit.remove(place)
            edit.add(place, replace(node, inputs=tuple(other if name == value else name for name in node.inputs)))
        return self._of(edit.done())

    def mapped(self, rewrite: Callable[[Node], Node]) -> Self:
        """Return a list of ``rewrite(node)`` of every node."""
        return type(self)(map(rewrite, self))

    def _nodes(self) -> tuple[Node, ...]:
        if self._order is None:
            assert self._index is not None
            self._order = tuple(node for _, node in sorted(self._index.nodes.items(), key=_place_of))
        return self._order

    def _indexed(self) -> _Index:
        if self._index is None:
            edit = _Edit(_Index(Map(), Map(), Map()))
            for number, node in enumerate(self._order or ()):
                edit.add((number,), node)
            self._index = edit.done()
        return self._index

    @classmethod
    def _of(cls, index: _Index) -> Self:
        new = cls.__new__(cls)
        new._order, new._index = None, index
        return new


def _place_of(item: tuple[_Place, Node]) -> _Place:
    return item[0]


class _Edit:
    """An index while it changes."""

    def __init__(self, index: _Index) -> None:
        self._nodes, self._writers = index.nodes.mutate(), index.writers.mutate()
        self._readers = index.readers.mutate()

    def add(self, place: _Place, node: Node) -> None:
        """Add a node where there is none."""
        self._nodes[place] = node
        if node.output not in self._writers:
            self._writers[node.output] = place
        for name in node.inputs:
            uses: Map[_Place, int] = self._readers.get(name, Map())
            self._readers[name] = uses.set(place, uses.get(place, 0) + 1)

    def remove(self, place: _Place) -> None:
        """Remove the node that stands there."""
        node = self._nodes.pop(place)
        if self._writers.get(node.output) == place:
            del self._writers[node.output]
        for name in set(node.inputs):
            uses = self._readers[name].delete(place)
            if uses:
                self._readers[name] = uses
            else:
                del self._readers[name]

    def done(self) -> _Index:
        """Return the index as it is now."""
        return _Index(self._nodes.finish(), self._writers.finish(), self._readers.finish())
