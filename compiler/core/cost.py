"""What operations cost on the host core, in cycles: RV32IMC with soft floats, code in zero-wait memory.

Measured on CV32E40X in RTL with the compiler-rt of the wheel ziglang; see docs/decisions.md.
"""

from tilewright.compiler.core.expression import FLOATS, Expression
from tilewright.isa.machine import MemoryTiming

SINGLE = {"add": 75, "subtract": 78, "multiply": 65, "divide": 190, "sqrt": 230, "compare": 30, "cast": 50}
DOUBLE = {"add": 120, "subtract": 124, "multiply": 150, "divide": 500, "compare": 40, "cast": 60}
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}

INTEGER = 1
DIVISION = 35
CALL = 12
BRANCH = 3

LOOP = 6
"""Of one iteration of an inner loop, with its addresses."""

ADDRESS = 2
"""Of computing an operand's address, each element."""

START = 60
"""Of a call, with the pointers' set-up."""


def access_cycles(memory: MemoryTiming) -> int:
    """Return the cycles of one load or store in main memory."""
    return memory.latency_cycles + 2


def expression_cycles(expression: Expression) -> float:
    """Return what computing ``expression`` once costs; of the two sides of a choice the mean."""
    known: set[int] = set()

    def cost(node: Expression) -> float:
        if id(node) in known or node.op in ("input", "constant"):
            return 0
        known.add(id(node))
        args = [cost(arg) for arg in node.args]
        if node.op == "where":
            return BRANCH + args[0] + (args[1] + args[2]) / 2
        return sum(args) + operation_cycles(node)

    return cost(expression)


def operation_cycles(node: Expression) -> float:
    """Return what one operation costs without its operands."""
    if node.op == "call":
        return CALL + expression_cycles(node.value.body)
    if node.op == "cast":
        kinds = {node.dtype, node.args[0].dtype} & set(FLOATS)
        return SINGLE["cast"] if "float32" in kinds else DOUBLE["cast"] if kinds else INTEGER
    dtype = node.args[0].dtype if node.args else node.dtype
    if dtype in FLOATS:
        table = SINGLE if dtype == "float32" else DOUBLE
        return table.get("compare" if node.op in COMPARISONS else node.op, 3)
    wide = 3 if "64" in dtype else 1
    return wide * (DIVISION if node.op == "divide" else INTEGER)
