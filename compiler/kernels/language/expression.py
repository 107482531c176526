"""Scalar arithmetic written once: NumPy evaluates an expression and C prints it, with the same roundings.

Every operation is one IEEE operation of its dtype, in both. Integers wrap around. Which NaN it is, is not defined.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "FLOATS", "NUMPY", "Expression", "Number", "Operand", "ScalarFunction", "binary", "both", "compare", "constant",
    "copysign", "equal", "evaluate", "function", "high", "is_nan", "look_up", "nodes", "not_equal", "scaled_sum",
    "sqrt", "variable", "where",
]

Number = float | int

FLOATS = ("float32", "float64")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A node: an operation on other nodes.

    Attributes
    ----------
    op : str
        ``input`` (``value`` is its name), ``constant`` (``value``), ``call`` (``value`` is a :class:`ScalarFunction`),
        ``cast``, ``view`` (the same bits as another dtype), ``where``, ``look_up`` (``value`` is the table, a tuple),
        or an operation of ``NUMPY``.
    dtype : str
        NumPy's name of the result's dtype; comparisons have ``bool``.
    label : str
        The name of the C variable, where the node becomes one.
    """

    op: str
    dtype: str
    args: "tuple[Expression, ...]" = ()
    value: Any = None
    label: str = ""

    def __add__(self, other: "Operand") -> "Expression":
        return binary("add", self, other)

    def __radd__(self, other: Number) -> "Expression":
        return binary("add", other, self)

    def __sub__(self, other: "Operand") -> "Expression":
        return binary("subtract", self, other)

    def __rsub__(self, other: Number) -> "Expression":
        return binary("subtract", other, self)

    def __mul__(self, other: "Operand") -> "Expression":
        return binary("multiply", self, other)

    def __rmul__(self, other: Number) -> "Expression":
        return binary("multiply", other, self)

    def __truediv__(self, other: "Operand") -> "Expression":
        return binary("divide", self, other)

    def __rtruediv__(self, other: Number) -> "Expression":
        return binary("divide", other, self)

    def __neg__(self) -> "Expression":
        return Expression("negative", self.dtype, (self,))

    def __abs__(self) -> "Expression":
        return Expression("absolute", self.dtype, (self,))

    def __lt__(self, other: "Operand") -> "Expression":
        return compare("less", self, other)

    def __le__(self, other: "Operand") -> "Expression":
        return compare("less_equal", self, other)

    def __gt__(self, other: "Operand") -> "Expression":
        return compare("greater", self, other)

    def __ge__(self, other: "Operand") -> "Expression":
        return compare("greater_equal", self, other)

    def __and__(self, other: "Operand") -> "Expression":
        return binary("bitwise_and", self, other)

    def __or__(self, other: "Operand") -> "Expression":
        return binary("bitwise_or", self, other)

    def __xor__(self, other: "Operand") -> "Expression":
        return binary("bitwise_xor", self, other)

    def __lshift__(self, bits: "Operand") -> "Expression":
        return binary("left_shift", self, bits)

    def __rshift__(self, bits: "Operand") -> "Expression":
        return binary("right_shift", self, bits)

    def cast(self, dtype: str) -> "Expression":
        """Convert to ``dtype``: to nearest even, towards zero from float to integer (which must be in range)."""
        return self if dtype == self.dtype else Expression("cast", dtype, (self,))

    def view(self, dtype: str) -> "Expression":
        """Return the same 32 bits as another dtype."""
        return Expression("view", dtype, (self,))

    def named(self, label: str) -> "Expression":
        """Return the same node with a name for its C variable."""
        return Expression(self.op, self.dtype, self.args, self.value, label)


Operand = Expression | Number


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFunction:
    """A named function of scalars: a static function in C."""

    name: str
    doc: str
    parameters: tuple[Expression, ...]
    body: Expression

    def __call__(self, *args: Operand) -> Expression:
        taken = tuple(_operand(arg, parameter.dtype) for arg, parameter in zip(args, self.parameters, strict=True))
        return Expression("call", self.body.dtype, taken, self)


def function(dtype: str) -> Callable[[Callable[..., Expression]], ScalarFunction]:
    """Make a :class:`ScalarFunction` of one in Python whose parameters are all of ``dtype``."""
    def made(build: Callable[..., Expression]) -> ScalarFunction:
        parameters = tuple(variable(name, dtype) for name in inspect.signature(build).parameters)
        doc = (inspect.getdoc(build) or "").splitlines()[0]
        return ScalarFunction(f"tw_{build.__name__.strip('_')}", doc, parameters, build(*parameters))
    return made


def variable(name: str, dtype: str) -> Expression:
    """Return an input."""
    return Expression("input", dtype, (), name)


def constant(value: Number, dtype: str) -> Expression:
    """Return ``value`` rounded to ``dtype``."""
    if not isinstance(value, (int, float, np.number)):
        raise TypeError(f"Constant of an expression must be a number, not {value!r}")
    with np.errstate(all="ignore"):
        return Expression("constant", dtype, (), np.dtype(dtype).type(value))


def _operand(value: Operand, dtype: str) -> Expression:
    if not isinstance(value, Expression):
        return constant(value, dtype)
    if value.dtype != dtype:
        raise TypeError(f"Operands of an expression must both be {dtype}, not {value.dtype}: cast one")
    return value


def _pair(left: Operand, right: Operand) -> tuple[Expression, Expression]:
    dtype = left.dtype if isinstance(left, Expression) else right.dtype if isinstance(right, Expression) else "float32"
    return _operand(left, dtype), _operand(right, dtype)


def binary(op: str, left: Operand, right: Operand) -> Expression:
    """Return an operation that keeps the dtype of its operands."""
    args = _pair(left, right)
    return Expression(op, args[0].dtype, args)


def compare(op: str, left: Operand, right: Operand) -> Expression:
    """Return a comparison."""
    return Expression(op, "bool", _pair(left, right))


def equal(left: Operand, right: Operand) -> Expression:
    """Return whether two values are equal."""
    return compare("equal", left, right)


def not_equal(left: Operand, right: Operand) -> Expression:
    """Return whether two values differ."""
    return compare("not_equal", left, right)


def is_nan(value: Expression) -> Expression:
    """Return whether ``value`` is no number."""
    return compare("not_equal", value, value)


def where(condition: Expression, then: Operand, otherwise: Operand) -> Expression:
    """Return ``then`` where ``condition`` holds, else ``otherwise``; C computes only the one taken, if used once."""
    args = _pair(then, otherwise)
    return Expression("where", args[0].dtype, (condition, *args))


def both(left: Expression, right: Expression) -> Expression:
    """Return whether two conditions hold."""
    return Expression("bitwise_and", "bool", (left, right))


def copysign(magnitude: Operand, sign: Expression) -> Expression:
    """Return ``magnitude`` with the sign of ``sign``."""
    return binary("copysign", magnitude, sign)


def sqrt(value: Expression) -> Expression:
    """Return the square root of a float32, rounded correctly."""
    return Expression("sqrt", "float32", (value,))


def high(left: Expression, right: Operand) -> Expression:
    """Return the upper 32 of the 64 bits of a product of two int32 or uint32."""
    return binary("high", left, right)


def look_up(table: np.ndarray, index: Expression) -> Expression:
    """Return the element of a constant vector at ``index``, which must be one of its indices."""
    return Expression("look_up", str(table.dtype), (index,), tuple(table.tolist()))


def scaled_sum(node: Expression) -> tuple[Expression, Expression, Expression] | None:
    """Return x, s and b of ``float32(x) · s + b`` with an int32 x, which C has a function for; None of other nodes."""
    if node.op != "add" or node.dtype != "float32":
        return None
    for product, offset in (node.args, node.args[::-1]):
        for whole, factor in (product.args, product.args[::-1]) if product.op == "multiply" else ():
            if whole.op == "cast" and whole.args[0].dtype == "int32":
                return whole.args[0], factor, offset
    return None


def nodes(expression: Expression) -> list[Expression]:
    """Return all nodes of an expression, each once, operands first."""
    found: dict[int, Expression] = {}

    def visit(node: Expression) -> None:
        if id(node) not in found:
            for arg in node.args:
                visit(arg)
            found[id(node)] = node

    visit(expression)
    return list(found.values())


def _divide(left: Any, right: Any) -> Any:
    if np.issubdtype(np.result_type(left), np.floating):
        return np.divide(left, right)
    # Towards zero, as in C; x / 0 is 0 and the smallest value over -1 is itself.
    quotient = np.floor_divide(left, np.where(right == 0, 1, right))
    inexact = (np.multiply(quotient, right) != left) & ((left < 0) != (right < 0))
    return np.where(right == 0, np.zeros_like(left), quotient + inexact.astype(left.dtype)).astype(left.dtype)


def _high(left: Any, right: Any) -> Any:
    dtype = np.result_type(left)
    wide = np.int64 if dtype == np.int32 else np.uint64
    return (np.multiply(left, right, dtype=wide) >> wide(32)).astype(dtype)


NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _divide, "negative": np.negative,
    "absolute": np.absolute, "sqrt": np.sqrt, "copysign": np.copysign, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal, "equal": np.equal,
    "not_equal": np.not_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "left_shift": np.left_shift, "right_shift": np.right_shift, "where": np.where,
    "logical_not": np.logical_not, "high": _high,
}
"""The NumPy function of each operation."""


def evaluate(expression: Expression, inputs: Mapping[str, Any]) -> Any:
    """Return the value of ``expression`` for arrays (or scalars) by name, of the inputs' dtypes, broadcast."""
    known: dict[int, Any] = {}

    def value(node: Expression) -> Any:
        if id(node) not in known:
            known[id(node)] = result(node)
        return known[id(node)]

    def result(node: Expression) -> Any:
        if node.op == "input":
            return inputs[node.value]
        if node.op == "constant":
            return node.value
        args = [value(arg) for arg in node.args]
        if node.op == "call":
            names = [parameter.value for parameter in node.value.parameters]
            return evaluate(node.value.body, dict(zip(names, args, strict=True)))
        if node.op == "cast":
            return np.asarray(args[0]).astype(node.dtype)[()]
        if node.op == "look_up":
            return np.array(node.value, node.dtype)[args[0]]
        if node.op == "view":
            return np.ascontiguousarray(args[0]).view(node.dtype).reshape(np.shape(args[0]))[()]
        return NUMPY[node.op](*args)

    with np.errstate(all="ignore"):
        return value(expression)
