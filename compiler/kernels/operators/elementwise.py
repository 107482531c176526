"""Operators that compute each element by itself, with broadcasting: a formula, evaluated by NumPy and printed as C."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_tables
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import Nest, StridedElement, broadcast_strides, elementwise, nest
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Dims,
    Refused,
    at_most,
    broadcast,
    operand,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, evaluate, variable
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["Elementwise", "ElementwisePerChannel", "Formula"]

Formula = Callable[..., Expression]
"""(call, one expression per input or None) → the result."""


class Elementwise(CheckedKernel):
    """An operator given by a formula.

    Parameters
    ----------
    op
        The operator's name.
    formula
        Takes the call and one expression per input, None for absent ones.
    dtypes
        One collection of dtypes per input; inputs beyond the last take the last's.
    inputs
        The fewest and the most inputs.
    same
        Whether all inputs must have the first one's dtype.
    """

    def __init__(self, op: str, formula: Formula, dtypes: Sequence[Collection[str]], *,
                 inputs: tuple[int, int] = (1, 1), same: bool = True, exactness: str = "exact",
                 limits: str = "") -> None:
        self.op = op
        self.formula = formula
        self.dtypes = dtypes
        self.inputs = inputs
        self.same = same
        self.exactness = exactness
        self.limits = limits or " ".join(dtypes[0])

    def result(self, call: Call) -> tuple[str, Dims]:
        fewest, most = self.inputs
        at_most(call, most)
        shapes = []
        for position in range(max(fewest, len(call.inputs))):
            if position >= fewest and operand(call, position) is None:
                continue
            found = required(call, position, self.dtypes[min(position, len(self.dtypes) - 1)])
            if self.same and found.dtype != call.inputs[0].dtype:
                raise Refused(f"{self.op} must have inputs of the same dtype, not {call.inputs[0].dtype} and "
                              f"{found.dtype}")
            shapes.append(self._dims(call, position))
        return self.expression(call).dtype, broadcast(call, shapes)

    def expression(self, call: Call) -> Expression:
        """Return the formula for ``call``, with inputs ``x0``, ``x1``, .."""
        return self.formula(call, *(variable(f"x{position}", each.dtype) if each.dtype else None
                                    for position, each in enumerate(call.inputs)))

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        values = {f"x{position}": array.reshape(self._dims(call, position))
                  for position, array in enumerate(arrays) if array is not None}
        result = np.asarray(evaluate(self.expression(call), values))
        return np.array(np.broadcast_to(result, call.output.dims))

    def c_body(self, call: Call, function: str) -> list[str]:
        return [*c_tables(self.expression(call)), *elementwise(self._nest(call))]

    def _nest(self, call: Call) -> Nest:
        inputs = {f"x{position}": StridedElement(f"in{position}", self._strides(call, position))
                  for position, each in enumerate(call.inputs) if each.dtype}
        return nest(call.output.dims, StridedElement("out", call.output.strides), inputs, self.expression(call))

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(self.expression(call))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        planned = self._nest(call)
        total = float(START)
        for depth in range(len(planned.sizes) + 1):
            loads, innermost = len(planned.inputs.get(depth, ())), depth == len(planned.sizes)
            work = [each for _, each in planned.hoisted.get(depth, ())] + [planned.result] * innermost
            formula = sum(self.formula_cycles(call, part) for part in work)
            each = LOOP + access_cycles(memory, loads, int(innermost)) + formula
            total += math.prod(planned.sizes[:depth]) * each
        return int(total)

    def formula_cycles(self, call: Call, part: Expression) -> float:
        """Return the cycles for computing ``part`` of the formula once."""
        return expression_cycles(part)

    def _dims(self, call: Call, position: int) -> Dims:
        """Return the dims that an input is broadcast from."""
        return call.inputs[position].dims

    def _strides(self, call: Call, position: int) -> Dims:
        """Return an input's strides over the dims of the output."""
        found = call.inputs[position]
        dims = self._dims(call, position)
        strides = found.strides if dims == found.dims else tuple(0 if dim == 1 else found.strides[0] for dim in dims)
        return broadcast_strides(dims, strides, call.output.dims)


class ElementwisePerChannel(Elementwise):
    """An operator given by a formula; inputs after the first may be vectors along an axis of the first."""

    @abstractmethod
    def axis(self, call: Call, position: int) -> int | None:
        """Return the axis along which the input at ``position`` lies; None for ordinary broadcasting."""

    def _dims(self, call: Call, position: int) -> Dims:
        found = call.inputs[position]
        axis = self.axis(call, position)
        if axis is None or not found.dims or position == 0:
            return found.dims
        rank = len(call.inputs[0].dims)
        if len(found.dims) != 1 or found.dims[0] not in (1, call.inputs[0].dims[axis]):
            raise Refused(f"{self.op} must have a vector of {call.inputs[0].dims[axis]} as input {position}, "
                          f"not {found.dims!r}")
        return (1,) * axis + found.dims + (1,) * (rank - 1 - axis)
