"""Kernels that state the result that a call must have, and reject every other call."""

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.errors import Error
from tilewright.isa.program import MAX_RANK, Call, Operand

__all__ = [
    "ALL", "INTEGERS", "CheckedKernel", "Dims", "Refused", "at_most", "attribute", "axis_of", "broadcast", "integers",
    "operand", "opset", "optional", "required",
]

Dims = tuple[int, ...]

INTEGERS = ("int8", "uint8", "int32", "int64")
ALL = ("float32", *INTEGERS, "bool")

_NEWEST_OPSET = 1000
"""Stands for the newest operator set where a call names none."""


class Refused(Error, ValueError):
    """A kernel cannot run a call; the message gives the reason."""


class CheckedKernel(Kernel):
    """A kernel that derives dtype and dims of the result from the inputs and attributes."""

    def refusal(self, call: Call) -> str | None:
        try:
            for operand in (*call.inputs, call.output):
                if operand.dtype and (math.prod(operand.dims) == 0 or len(operand.dims) > MAX_RANK):
                    return f"{self.op} takes tensors with elements and of rank up to {MAX_RANK}, not {operand.dims!r}"
            dtype, dims = self.result(call)
        except Refused as reason:
            return str(reason)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return f"{self.op} must have the inputs and attributes of its ONNX definition: {error}"
        if (call.output.dtype, call.output.dims) != (dtype, dims):
            return f"{self.op} gives {dtype} {dims!r} here, not {call.output.dtype} {call.output.dims!r}"
        return None

    @abstractmethod
    def result(self, call: Call) -> tuple[str, Dims]:
        """Return dtype and dims of the result.

        Raises
        ------
        Refused
            If the kernel cannot run ``call``.
        """


def attribute(call: Call, name: str, default: Any) -> Any:
    """Return an attribute, or ``default`` where it is left out."""
    value = call.attrs.get(name)
    return default if value is None else value


def opset(call: Call) -> int:
    """Return the version of the operator set."""
    return int(attribute(call, "opset", _NEWEST_OPSET))


def integers(call: Call, name: str) -> list[int] | None:
    """Return an attribute or parameter that is a list of integers; None if it is left out.

    Raises
    ------
    Refused
        If it is something else.
    """
    value = call.attrs.get(name)
    if value is None:
        return None
    values = [value] if isinstance(value, int) else list(value)
    if not all(isinstance(each, int) and -2**63 <= each < 2**63 for each in values):
        raise Refused(f"{call.kernel} must have a constant list of integers as {name}, not {value!r}")
    return values


def axis_of(axis: int, rank: int) -> int:
    """Return ``axis`` counted from the front.

    Raises
    ------
    Refused
        If there is no such axis.
    """
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise Refused(f"axis must be from {-rank} to {rank - 1}, not {axis!r}")
    return axis % rank


def operand(call: Call, position: int) -> Operand | None:
    """Return an input, None if it is absent."""
    if position < len(call.inputs) and call.inputs[position].dtype:
        return call.inputs[position]
    return None


def required(call: Call, position: int, dtypes: Collection[str]) -> Operand:
    """Return an input that must be there and have one of ``dtypes``.

    Raises
    ------
    Refused
        If it is not or has another.
    """
    found = operand(call, position)
    if found is None:
        raise Refused(f"{call.kernel} must have input {position}")
    if found.dtype not in dtypes:
        raise Refused(f"{call.kernel} takes {' '.join(dtypes)} as input {position}, not {found.dtype}")
    return found


def optional(call: Call, position: int, dtypes: Collection[str]) -> Operand | None:
    """Return an input as :func:`required` does, None if it is absent."""
    return required(call, position, dtypes) if operand(call, position) else None


def at_most(call: Call, count: int) -> None:
    """Refuse a call with more than ``count`` inputs."""
    if any(each.dtype for each in call.inputs[count:]):
        raise Refused(f"{call.kernel} takes at most {count} inputs, not {len(call.inputs)}")


def broadcast(call: Call, dims: Sequence[Dims]) -> Dims:
    """Return the dims that ``dims`` are broadcast to, as NumPy does.

    Raises
    ------
    Refused
        If they do not fit.
    """
    rank = max(map(len, dims))
    result = []
    for column in zip(*((1,) * (rank - len(each)) + each for each in dims), strict=True):
        sizes = {size for size in column if size != 1}
        if len(sizes) > 1:
            raise Refused(f"{call.kernel} must have inputs that broadcast, not {' and '.join(map(str, dims))}")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)
