"""Reasons why the host core cannot run a call: an operator, a type or a rank that no kernel accepts."""

from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.isa.program import DTYPES, MAX_RANK, Call

__all__ = ["refusal_of"]


def refusal_of(call: Call) -> str | None:
    """Return why the host core cannot run ``call``, or None if it can."""
    kernel = CORE_KERNELS.get(call.kernel)
    if kernel is None:
        return "the host core has no kernel for this operator"
    for operand in call.operands:
        if operand.dtype not in DTYPES:
            return f"the host core has no numbers of type {operand.dtype}"
        if len(operand.dims) > MAX_RANK:
            return f"the host core takes tensors of up to {MAX_RANK} dimensions, not {len(operand.dims)}"
    for index, name in kernel.parameters.items():
        if index < len(call.inputs) and call.inputs[index].present and index not in kernel.computable:
            return f"its input {name} must be a constant"
    return kernel.refusal(call)
