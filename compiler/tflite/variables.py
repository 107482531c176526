"""Variables of a .tflite file, which keep state from call to call, as inputs and outputs of its graph.

READ_VARIABLE before the first ASSIGN_VARIABLE gives what the call before has left: it becomes an input. What is
assigned last becomes an output. A subgraph of CALL_ONCE says what the variables are before the first call, which must
be zeros: so every engine starts a state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.tflite.stored.tensors import TfliteModel, TfliteOperator, TfliteTensor

__all__ = ["INITIALISER", "READ", "VARIABLE", "WRITE", "with_open_state"]

VARIABLE, READ, WRITE, INITIALISER = "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"
_AGAIN = "convert the model again"
_COPY = "RESHAPE"


def with_open_state(model: TfliteModel, initial: Mapping[int, TfliteModel]) -> TfliteModel:
    """Return a model without operators on variables: `TfliteModel.state` says which input is which output.

    Parameters
    ----------
    model : TfliteModel
        The first subgraph.
    initial : mapping of int to TfliteModel
        By number, the subgraphs that CALL_ONCE runs.

    Raises
    ------
    UnsupportedNodeError
        If a variable does not begin with zeros, changes its shape or type, or is used otherwise.
    """
    if not any(each.kind in (VARIABLE, INITIALISER) for each in model.operators):
        return model
    walk = _VariableWalk(model, _starts(model, initial))
    for operator in model.operators:
        walk.take(operator)
    return walk.opened()


def _starts(model: TfliteModel, initial: Mapping[int, TfliteModel]) -> dict[str, np.ndarray]:
    """Return what variables are before the first call, by name."""
    found: dict[str, np.ndarray] = {}
    for operator in model.operators:
        if operator.kind != INITIALISER:
            continue
        graph = initial[int(operator.options["InitSubgraphIndex"])]
        names: dict[int, str] = {}
        for each in graph.operators:
            if each.kind == VARIABLE and len(each.outputs) == 1:
                names[each.outputs[0]] = _name(each)
            elif each.kind == WRITE and len(each.inputs) == 2 and each.inputs[0] in names:
                value = graph.tensors[each.inputs[1]].data if each.has(1) else None
                if value is None:
                    raise operator.refusal("it computes what a variable begins with", _AGAIN)
                found[names[each.inputs[0]]] = value
            else:
                raise operator.refusal(f"its subgraph has the operator {each.kind}",
                                       "convert the model so that only variables begin there")
    return found


def _name(operator: TfliteOperator) -> str:
    return f"{operator.options['Container']}/{operator.options['SharedName']}"


@dataclass
class _VariableWalk:
    """The operators in order: which tensor each variable is now."""

    model: TfliteModel
    starts: Mapping[str, np.ndarray]
    handles: dict[int, str] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)
    kept: list[TfliteOperator] = field(default_factory=list)

    def take(self, operator: TfliteOperator) -> None:
        """Follow the next operator; it stays if it is none on variables."""
        operator = replace(operator, inputs=tuple(self.same.get(each, each) for each in operator.inputs))
        if operator.kind == VARIABLE and len(operator.outputs) == 1:
            self.handles[operator.outputs[0]] = _name(operator)
        elif operator.kind == READ and len(operator.outputs) == 1:
            self._read(operator, self._variable(operator))
        elif operator.kind == WRITE and len(operator.inputs) == 2 and operator.has(1):
            self.now[self._variable(operator)] = operator.inputs[1]
        elif operator.kind in (VARIABLE, READ, WRITE) or any(each in self.handles for each in operator.inputs):
            raise operator.refusal("it uses a variable otherwise than by reading or assigning it", _AGAIN)
        elif operator.kind != INITIALISER:
            self.kept.append(operator)

    def _variable(self, operator: TfliteOperator) -> str:
        if not operator.inputs or operator.inputs[0] not in self.handles:
            raise operator.refusal("its first input is no variable", _AGAIN)
        return self.handles[operator.inputs[0]]

    def _read(self, operator: TfliteOperator, name: str) -> None:
        (index,) = operator.outputs
        if name not in self.now:
            self._check_start(operator, name, self.model.tensors[index])
            self.now[name] = self.first[name] = index
            return
        before, read = self.model.tensors[self.now[name]], self.model.tensors[index]
        if not _alike(before, read):
            raise operator.refusal(f"it reads {_kind(read)}, and the variable is {_kind(before)}", _AGAIN)
        if not (np.array_equal(before.scales, read.scales) and np.array_equal(before.zeros, read.zeros)):
            raise operator.refusal("it reads levels of another scale than were assigned", _AGAIN)
        self.same[index] = before.index

    def _check_start(self, operator: TfliteOperator, name: str, tensor: TfliteTensor) -> None:
        """Refuse a variable that does not begin with zeros of the shape that is read."""
        start = self.starts.get(name)
        if start is None:
            raise operator.refusal("its variable has no value before the first call", _AGAIN)
        if start.shape != tensor.shape or start.dtype != np.dtype(tensor.dtype):
            raise operator.refusal(f"it reads {_kind(tensor)}, and the variable begins as {start.dtype} of "
                                   f"{list(start.shape)}", _AGAIN)
        if (start != (tensor.zero if tensor.is_levels else 0)).any():
            raise operator.refusal("its variable does not begin with zeros",
                                   "convert the model with a state that begins with zeros")

    def opened(self) -> TfliteModel:
        """Return the model with its state open."""
        made = {index for operator in self.kept for index in operator.outputs}
        tensors, outputs = list(self.model.tensors), [self.same.get(each, each) for each in self.model.outputs]
        state: dict[int, int] = {}
        for name, read in self.first.items():
            last = self.now[name]
            before, after = tensors[read], tensors[last]
            if not _alike(before, after):
                raise UnsupportedNodeError(after.name, WRITE, f"it assigns {_kind(after)} to a variable that is read "
                                           f"as {_kind(before)}", _AGAIN)
            if last not in made or last in outputs:
                last = len(tensors)
                tensors.append(replace(after, index=last, name=f"{before.name} (next)", data=None))
                self.kept.append(TfliteOperator(index=-1, kind=_COPY, inputs=(after.index,), outputs=(last,),
                                                label=tensors[last].name))
            outputs.append(last)
            state[read] = last
        return replace(self.model, tensors=tuple(tensors), operators=tuple(self.kept),
                       inputs=(*self.model.inputs, *self.first.values()), outputs=tuple(outputs), state=state)


def _alike(one: TfliteTensor, other: TfliteTensor) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype)


def _kind(tensor: TfliteTensor) -> str:
    return f"{tensor.dtype} of {list(tensor.shape)}"
