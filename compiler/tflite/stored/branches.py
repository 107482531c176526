"""Branches of a .tflite file, IF and the subgraphs that it names, as operators of the one graph.

A condition that is known leaves one branch. Of one that is computed both branches are, and SELECT_V2 takes the result
of one: branches have no effect but their results, as those that assign variables are refused.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilewright.compiler.tflite.stored.tensors import TfliteModel, TfliteOperator, TfliteTensor

__all__ = ["BRANCH", "with_branches_inlined"]

BRANCH = "IF"
_CHOICE = "SELECT_V2"
_MOST = 20_000
"""Operators and tensors of a graph with its branches in it."""
_AGAIN = "convert the model again"


def with_branches_inlined(model: TfliteModel, graph: Callable[[TfliteOperator, int], TfliteModel],
                          stateful: tuple[str, ...]) -> TfliteModel:
    """Return a model without IF.

    Parameters
    ----------
    model : TfliteModel
    graph : callable
        Returns a subgraph by the operator that names it, and its number; an error if there is none.
    stateful : tuple of str
        Operators that a branch must not have.

    Raises
    ------
    UnsupportedNodeError
        If a branch does not fit its IF, has state, or there are too many of them.
    """
    if not any(operator.kind == BRANCH for operator in model.operators):
        return model
    walk = _Inlining(graph, stateful, list(model.tensors))
    for operator in model.operators:
        walk.take(operator)
    return replace(model, tensors=tuple(walk.tensors), operators=tuple(walk.operators))


class _Inlining:
    """The operators so far, and all tensors: those of the first subgraph, then of each branch."""

    def __init__(self, graph: Callable[[TfliteOperator, int], TfliteModel], stateful: tuple[str, ...],
                 tensors: list[TfliteTensor]) -> None:
        self.graph, self.stateful, self.tensors = graph, stateful, tensors
        self.operators: list[TfliteOperator] = []
        self.names = {each.name for each in tensors}

    def take(self, operator: TfliteOperator) -> None:
        """Add an operator, or what stands for it."""
        if operator.kind != BRANCH:
            self.operators.append(operator)
            return
        if not operator.has(0) or self.tensors[operator.inputs[0]].dtype != "bool":
            raise operator.refusal("its condition is no truth", _AGAIN)
        known = self.tensors[operator.inputs[0]].data
        numbers = [int(operator.options[name]) for name in ("ThenSubgraphIndex", "ElseSubgraphIndex")]
        if known is not None:
            if known.size != 1:
                raise operator.refusal(f"its condition has {known.size} elements", _AGAIN)
            for before, index in zip(self._branch(operator, numbers[not known.item()]), operator.outputs, strict=True):
                self._same(operator, before, index)
                self._add(operator, "RESHAPE", (before,), index)
            return
        branches = [self._branch(operator, number) for number in numbers]
        for first, second, index in zip(*branches, operator.outputs, strict=True):
            for each in (first, second):
                self._same(operator, each, index)
            self._add(operator, _CHOICE, (operator.inputs[0], first, second), index)

    def _add(self, operator: TfliteOperator, kind: str, inputs: tuple[int, ...], output: int) -> None:
        self.operators.append(replace(operator, kind=kind, inputs=inputs, outputs=(output,), options={}))

    def _same(self, operator: TfliteOperator, index: int, output: int) -> None:
        found, stated = self.tensors[index], self.tensors[output]
        if (found.shape, found.dtype) != (stated.shape, stated.dtype):
            raise operator.refusal(f"a branch gives {found.dtype} of {list(found.shape)}, and its output is "
                                   f"{stated.dtype} of {list(stated.shape)}", _AGAIN)
        if not (np.array_equal(found.scales, stated.scales) and np.array_equal(found.zeros, stated.zeros)):
            raise operator.refusal("a branch gives levels of another scale than its output's", _AGAIN)

    def _branch(self, operator: TfliteOperator, number: int) -> tuple[int, ...]:
        """Add a subgraph's operators, and return the tensors that are its outputs."""
        graph = self.graph(operator, number)
        given, wanted = operator.inputs[1:], graph.inputs
        if len(given) != len(wanted) or len(graph.outputs) != len(operator.outputs) or len(set(wanted)) != len(wanted):
            raise operator.refusal(f"it has {len(given)} inputs and {len(operator.outputs)} outputs, and its branch "
                                   f"{len(wanted)} and {len(graph.outputs)}", _AGAIN)
        if len(self.tensors) + len(graph.tensors) + len(self.operators) > _MOST:
            raise operator.refusal(f"its branches have more than {_MOST:,} tensors", "convert the model without them")
        places = dict(zip(wanted, given, strict=True))
        for inner, outer in places.items():
            if outer < 0 or (graph.tensors[inner].shape, graph.tensors[inner].dtype) != (
                    self.tensors[outer].shape, self.tensors[outer].dtype):
                raise operator.refusal("an input of its branch has another shape or type", _AGAIN)
        for tensor in graph.tensors:
            if tensor.index not in places:
                places[tensor.index] = len(self.tensors)
                self.tensors.append(replace(tensor, index=len(self.tensors), name=self._fresh(tensor.name, operator)))
        for each in graph.operators:
            if each.kind in self.stateful:
                raise operator.refusal(f"its branch has the operator {each.kind}", "convert the model without state "
                                       "in branches")
            self.take(replace(each, index=-1, inputs=tuple(places.get(index, -1) for index in each.inputs),
                              outputs=tuple(places[index] for index in each.outputs)))
        return tuple(places[index] for index in graph.outputs)

    def _fresh(self, name: str, operator: TfliteOperator) -> str:
        """Return a name that no tensor has."""
        found = name = name if name not in self.names else f"{name} of {operator.label}"[:1900]
        count = 1
        while found in self.names:
            found, count = f"{name} {count}", count + 1
        self.names.add(found)
        return found
