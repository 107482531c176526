"""Several operators that compute each element by itself, one behind the other, in one loop.

Each step is an operator of its own, with its kernel's formula, so that every operation is rounded as by itself; what
lies between two steps is never in memory.
"""

from collections.abc import Mapping

from tilewright.compiler.kernels.language.checked import ALL, Refused
from tilewright.compiler.kernels.language.expression import Expression
from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.isa.program import Call, Operand

__all__ = ["MOST_STEPS", "StepChain", "may_join"]

MOST_STEPS = 16
"""Of a chain."""


def may_join(kernel: Kernel | None) -> bool:
    """Tell whether a kernel is a formula of its inputs alone, so that it may be a step of a chain."""
    return type(kernel) is Elementwise and not kernel.parameters and not kernel.values


class StepChain(Elementwise):
    """Attribute ``steps`` lists operators: each a list of its name, the positions of its inputs, and its attributes.

    Positions from 0 on are inputs of the call; -1 is the result of the step before. The last step's is the result.
    Attributes are a list of names and values in turn.
    """

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        super().__init__("Chain", self._formula, [ALL], inputs=(1, 2 * MOST_STEPS), same=False,
                         limits="steps that are formulas of their inputs")
        self.kernels = kernels

    def _formula(self, call: Call, *inputs: Expression | None) -> Expression:
        """Return the last step's formula, of what the steps before it make."""
        steps = call.attrs.get("steps")
        if not isinstance(steps, list) or not 1 <= len(steps) <= MOST_STEPS:
            raise Refused(f"Chain must have a list of up to {MOST_STEPS} steps, not {steps!r}")
        before: Expression | None = None
        for op, positions, attributes in steps:
            kernel = self.kernels.get(op)
            if not isinstance(kernel, Elementwise) or not may_join(kernel):
                raise Refused(f"Chain takes steps that are formulas of their inputs, not {op}")
            between = Operand(0, before.dtype if before is not None else "", call.output.dims, ())
            operands = tuple(between if position < 0 else call.inputs[position] for position in positions)
            own = Call(op, operands, between, dict(zip(attributes[::2], attributes[1::2], strict=True)))
            kernel.result(own)
            before = kernel.formula(own, *(before if position < 0 else inputs[position] for position in positions))
        assert before is not None
        return before
