"""How much of a loop is unrolled at most, and why one is not unrolled."""

from tilewright.errors import CompileError

__all__ = ["MOST_NODES", "NotUnrolledError", "require_few"]

MOST_NODES = 8192
"""Operators of all steps of a node together. ONNX Runtime's quantiser takes a time that grows with their square."""


class NotUnrolledError(CompileError):
    """A node of control flow that cannot be unrolled: the reason, and what to do about it."""


def require_few(steps: int, operators: int) -> None:
    """Refuse a loop whose steps have more operators together than are unrolled.

    Raises
    ------
    NotUnrolledError
        If there are too many.
    """
    if steps * operators > MOST_NODES:
        raise NotUnrolledError(
            f"its {steps:,} steps of {operators} operators are {steps * operators:,} together, and at most "
            f"{MOST_NODES:,} are unrolled", f"give it at most {MOST_NODES // max(1, operators):,} steps, with --shape "
            "if an input's shape tells their number, and keep the state between calls")
