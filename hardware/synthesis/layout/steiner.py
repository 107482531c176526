"""Rectilinear trees over the pins of a net: how much wire it takes, and which way.

A minimum spanning tree (Prim 1957), then Steiner points as long as one saves wire: of a node and two of its neighbours,
the point with the middle of their three abscissae and ordinates. That is the greedy refinement of a spanning tree, as
in Borah, Owens and Irwin, IEEE TCAD 13(12), 1994; the best tree of a net of two or three pins, and near it for more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Point", "WireTree", "wire_tree"]

Point = tuple[float, float]

_REFINED = 64
"""Pins up to which a net gets Steiner points; a larger one keeps its spanning tree, which is at most 1.5 times the best
(Hwang, SIAM J. Appl. Math. 30(1), 1976)."""


@dataclass(frozen=True, slots=True)
class WireTree:
    """The pins' points and those that were added after them, and the edges between two of them, by number."""

    points: tuple[Point, ...]
    edges: tuple[tuple[int, int], ...]

    def spans(self) -> list[tuple[float, float]]:
        """Return how far each edge goes across, and how far up."""
        return [(abs(self.points[a][0] - self.points[b][0]), abs(self.points[a][1] - self.points[b][1]))
                for a, b in self.edges]

    @property
    def length(self) -> float:
        """Return the length of all edges."""
        return sum(across + up for across, up in self.spans())


def wire_tree(pins: Sequence[Point]) -> WireTree:
    """Return a short tree over ``pins``, in whatever unit they have."""
    edges = _spanning(pins)
    return _refined(pins, edges) if 3 <= len(pins) <= _REFINED else WireTree(tuple(pins), tuple(edges))


def _spanning(pins: Sequence[Point]) -> list[tuple[int, int]]:
    """Return a minimum spanning tree; each edge leads from the tree to the node that it adds."""
    if len(pins) == 2:
        return [(0, 1)]
    places = np.array(pins, float).reshape(-1, 2)
    distance = np.full(len(places), np.inf)
    nearest = np.zeros(len(places), int)
    outside = np.ones(len(places), bool)
    edges, last = [], 0
    for _ in range(len(places) - 1):
        outside[last] = False
        step = np.abs(places - places[last]).sum(axis=1)
        closer = step < distance
        distance[closer], nearest[closer] = step[closer], last
        last = int(np.argmin(np.where(outside, distance, np.inf)))
        edges.append((int(nearest[last]), last))
    return edges


def _refined(pins: Sequence[Point], edges: Sequence[tuple[int, int]]) -> WireTree:
    """Return the tree with Steiner points."""
    points = list(pins)
    near: list[set[int]] = [set() for _ in points]
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    waiting = list(range(len(points)))
    while waiting:
        node = waiting.pop()
        if (found := _saving(node, points, near)) is None:
            continue
        first, second, middle = found
        added = len(points)
        points.append(middle)
        near.append({node, first, second})
        for each in (first, second):
            near[node].remove(each)
            near[each].remove(node)
            near[each].add(added)
        near[node].add(added)
        waiting += [first, second, added, node]
    return WireTree(tuple(points), tuple((a, b) for a, others in enumerate(near) for b in sorted(others) if a < b))


def _saving(node: int, points: Sequence[Point], near: Sequence[set[int]]) -> tuple[int, int, Point] | None:
    """Return the two neighbours and the point that save the most wire at a node, if any do."""
    best, found = 1e-9, None
    x, y = points[node]
    others = sorted(near[node])
    for place, a in enumerate(others):
        for b in others[place + 1:]:
            middle = sorted((x, points[a][0], points[b][0]))[1], sorted((y, points[a][1], points[b][1]))[1]
            # The edges to both run together from the node to the middle.
            saved = abs(middle[0] - x) + abs(middle[1] - y)
            if saved > best:
                best, found = saved, (a, b, middle)
    return found
