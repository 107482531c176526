"""Cycles of operations on the host core: RV32IMC with soft floats, code in zero-wait memory.

Measured on CV32E40X in RTL: loops over 200 normally distributed numbers, less an empty loop. Sums and products of
numbers alike in size are a little quicker, and what a choice costs depends on the data: a layer's estimate is within
35 % of what it takes, most within 15 % (tests/end_to_end/test_core_kernels.py).
"""

from tilewright.compiler.kernels.language.expression import FLOATS, Expression, scaled_sum
from tilewright.isa.machine import MemoryTiming

__all__ = ["BRANCH", "CALL", "LOOK_UP", "LOOP", "ROW", "SINGLE", "START", "access_cycles", "expression_cycles"]

SINGLE = {"add": 70, "subtract": 70, "multiply": 53, "divide": 97, "sqrt": 420, "compare": 11}
_DOUBLE = {"add": 156, "subtract": 156, "multiply": 127, "divide": 210, "compare": 52}
_INTEGER = {"multiply": 2, "divide": 35, "high": 5}
_WIDE = {"add": 3, "subtract": 3, "multiply": 8, "divide": 200, "left_shift": 6, "right_shift": 6}
"""Of 64-bit integers."""

_CAST = {("float32", "int32"): 46, ("int32", "float32"): 18, ("float32", "int64"): 110, ("int64", "float32"): 60,
        ("float64", "int32"): 61, ("int32", "float64"): 20, ("float64", "float32"): 21, ("float32", "float64"): 30}
"""By dtype of the result and of the operand, int32 standing for all integers but int64."""

_SCALED_SUM = 108
"""Of an int32 as a float32, times a float32, plus one."""

_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
_IS_NAN = 4
CALL = 4
BRANCH = 1

_EDGE = 100
"""Below this a side of a choice is taken for an edge case."""

LOOP = 4
"""Of one iteration of an inner loop, with its addresses."""

LOOK_UP = 4
"""Of an element of a constant table: its address, and the wait for it."""

ROW = 12
"""Of what stands around an inner loop."""

START = 60
"""Of a call, with the pointers' set-up."""


def access_cycles(memory: MemoryTiming, loads: int = 1, stores: int = 0) -> int:
    """Return the cycles of loads that follow each other, of which two are under way at a time, and of stores."""
    return loads + stores + (memory.latency_cycles - 1) * (-(-loads // 2) + stores)


def expression_cycles(expression: Expression, *, inside: bool = False) -> float:
    """Return the cycles for computing ``expression`` once.

    Of the two sides of a choice it is the mean; but ``inside`` a function a side that costs next to nothing is an edge
    case, and the other one counts.
    """
    known: set[int] = set()

    def cost(node: Expression) -> float:
        if id(node) in known or node.op in ("input", "constant"):
            return 0
        known.add(id(node))
        if (parts := scaled_sum(node)) is not None:
            return _SCALED_SUM + sum(map(cost, parts))
        args = [cost(arg) for arg in node.args]
        if node.op == "where":
            edge = inside and min(args[1:]) < _EDGE
            return BRANCH + args[0] + (max(args[1:]) if edge else sum(args[1:]) / 2)
        return sum(args) + _operation_cycles(node)

    return cost(expression)


def _operation_cycles(node: Expression) -> float:
    """Return what one operation costs without its operands."""
    if node.op == "call":
        return CALL + expression_cycles(node.value.body, inside=True)
    dtype = node.args[0].dtype
    if node.op == "cast":
        pair = tuple(each if each in (*FLOATS, "int64") else "int32" for each in (node.dtype, dtype))
        return _CAST.get((pair[0], pair[1]), 1)
    if node.op == "look_up":
        return LOOK_UP
    if node.op in ("view", "copysign", "negative", "absolute", "logical_not") and dtype in FLOATS:
        return 2
    if node.op in _COMPARISONS and dtype in FLOATS:
        same = node.args[0] is node.args[1]
        return _IS_NAN if same else (SINGLE if dtype == "float32" else _DOUBLE)["compare"]
    if dtype in FLOATS:
        return (SINGLE if dtype == "float32" else _DOUBLE)[node.op]
    return (_WIDE if "64" in dtype else _INTEGER).get(node.op, 3 if "64" in dtype else 1)
