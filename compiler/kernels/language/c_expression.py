"""Expressions as C: nested where a value is used once, a variable where it is used again."""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.compiler.kernels.language.expression import FLOATS, Expression, ScalarFunction, nodes, scaled_sum
from tilewright.compiler.kernels.language.kernel import CTYPES

__all__ = ["c_array", "c_constant", "c_declarations", "c_function", "c_lines", "c_tables", "called", "ctype"]

_BINARY = {
    "multiply": ("*", 10), "divide": ("/", 10), "add": ("+", 9), "subtract": ("-", 9), "left_shift": ("<<", 8),
    "right_shift": (">>", 8), "less": ("<", 7), "less_equal": ("<=", 7), "greater": (">", 7),
    "greater_equal": (">=", 7), "equal": ("==", 6), "not_equal": ("!=", 6), "bitwise_and": ("&", 5),
    "bitwise_xor": ("^", 4), "bitwise_or": ("|", 3),
}
"""C's operator and how tightly it binds."""

_SUFFIXES = {"uint32": "u", "int64": "LL", "uint64": "ULL"}

_LAZY = {"bitwise_and": "&&", "bitwise_or": "||"}
"""The operators on conditions that leave out the second where the first decides."""

_OF_ORDER = {"less": ("tw_less", 1), "less_equal": ("tw_less_equal", 1), "greater": ("tw_less", -1),
             "greater_equal": ("tw_less_equal", -1), "equal": ("tw_equal", 1), "not_equal": ("tw_equal", 1)}
"""Comparisons of float32: the C function that tells without a soft float, and the order of its operands."""

_PER_LINE = 8
"""Numbers of a table on a line."""

_PRIMARY, _UNARY, _COMPARISON, _TERNARY = 12, 11, 6, 1


def ctype(dtype: str) -> str:
    """Return the C type of ``dtype``."""
    return "double" if dtype == "float64" else CTYPES[dtype]


def c_lines(expression: Expression) -> tuple[list[str], str]:
    """Return declarations of variables, and the C expression that uses them."""
    uses: dict[int, int] = {}
    _count(expression, uses)
    printer = _Printer(uses)
    text, _ = printer.text(expression, root=True)
    return printer.lines, text


def c_declarations(named: Sequence[tuple[str, Expression]]) -> list[str]:
    """Return declarations of variables for several expressions; common parts are computed once."""
    uses: dict[int, int] = {}
    for _, expression in named:
        _count(expression, uses)
    printer = _Printer(uses)
    for name, expression in named:
        text, _ = printer.text(expression, root=True)
        if text != name:
            printer.lines.append(f"const {ctype(expression.dtype)} {name} = {text};")
            printer.variables[id(expression)] = name
    return printer.lines


def c_tables(expression: Expression) -> list[str]:
    """Return declarations of the tables that ``expression`` looks its values up in."""
    tables = {_table_name(node): node for node in nodes(expression) if node.op == "look_up"}
    return [line for name, node in tables.items() for line in c_array(name, np.array(node.value, node.dtype))]


def c_array(name: str, values: np.ndarray) -> list[str]:
    """Return the declaration of a constant vector, in the core's own memory."""
    text = [c_constant(each) for each in values]
    lines = [", ".join(text[start:start + _PER_LINE]) + "," for start in range(0, len(text), _PER_LINE)]
    head = f"static const {ctype(str(values.dtype))} {name}[{len(text)}] = {{"
    return [head, *(f"    {line}" for line in lines), "};"]


def _table_name(node: Expression) -> str:
    """Return a name that is the own of the table that ``node`` looks its value up in."""
    return f"table_{node.dtype}_{zlib.crc32(np.array(node.value, node.dtype).tobytes()):08x}"


def c_function(function: ScalarFunction) -> str:
    """Return the definition of a static function."""
    lines, text = c_lines(function.body)
    parameters = ", ".join(f"{ctype(each.dtype)} {each.value}" for each in function.parameters)
    return "\n".join([f"/* {function.doc} */", f"static {ctype(function.body.dtype)} {function.name}({parameters})",
                      "{", *(f"    {line}" for line in [*lines, f"return {text};"]), "}"])


def called(expression: Expression) -> Iterator[str | ScalarFunction]:
    """Yield the functions that ``expression`` calls, callees first, and names of C helpers, with repetitions."""
    for arg in expression.args:
        yield from called(arg)
    if expression.op == "call":
        yield from called(expression.value.body)
        yield expression.value
    elif name := _helper(expression):
        yield name


def _helper(node: Expression) -> str | None:
    """Return the name of the C function that computes ``node``; None if C has an operator for it."""
    match node.op:
        case "sqrt":
            return "tw_sqrt"
        case "view":
            return "tw_bits" if node.dtype == "int32" else "tw_float"
        case "high":
            return f"tw_high_{node.dtype}"
        case "divide" if node.dtype not in FLOATS:
            return f"tw_divide_{node.dtype}"
    if scaled_sum(node) is not None:
        return "tw_scaled_sum"
    return _OF_ORDER[node.op][0] if _compares_floats(node) else None


def _compares_floats(node: Expression) -> bool:
    return node.op in _OF_ORDER and node.args[0].dtype == "float32"


def c_constant(value: np.generic) -> str:
    """Return a literal of exactly ``value``."""
    if isinstance(value, np.floating):
        single = isinstance(value, np.float32)
        if np.isnan(value):
            return f'__builtin_nan{"f" if single else ""}("")'
        if np.isinf(value):
            return f'{"-" if value < 0 else ""}__builtin_inf{"f" if single else ""}()'
        return f"{value!s}{'f' if single else ''}"
    number = int(value)
    if (value.dtype == np.int64 and number == -2**63) or (value.dtype == np.int32 and number == -2**31):
        return f"({number + 1}{'LL' if value.dtype == np.int64 else ''} - 1)"
    return f"{number}{_SUFFIXES.get(str(value.dtype), '')}"


def _count(node: Expression, uses: dict[int, int]) -> None:
    uses[id(node)] = uses.get(id(node), 0) + 1
    if uses[id(node)] == 1:
        for arg in node.args:
            _count(arg, uses)


class _Printer:
    """Prints one expression; ``lines`` fills with the declarations it needs."""

    def __init__(self, uses: dict[int, int]) -> None:
        self.uses = uses
        self.lines: list[str] = []
        self.variables: dict[int, str] = {}

    def text(self, node: Expression, *, root: bool = False) -> tuple[str, int]:
        """Return the C text of ``node`` and how tightly it binds."""
        if node.op == "input":
            return node.value, _PRIMARY
        if node.op == "constant":
            text = c_constant(node.value)
            return text, _UNARY if text.startswith("-") else _PRIMARY
        if id(node) in self.variables:
            return self.variables[id(node)], _PRIMARY
        text, binding = self._operation(node)
        if root or (self.uses[id(node)] == 1 and not node.label):
            return text, binding
        name = node.label or f"t{len(self.variables)}"
        self.variables[id(node)] = name
        self.lines.append(f"const {ctype(node.dtype)} {name} = {text};")
        return name, _PRIMARY

    def _operation(self, node: Expression) -> tuple[str, int]:
        if (parts := scaled_sum(node)) is not None:
            return f"tw_scaled_sum({', '.join(self.text(part)[0] for part in parts)})", _PRIMARY
        args = [self.text(arg) for arg in node.args]
        if node.op == "call":
            return f"{node.value.name}({', '.join(text for text, _ in args)})", _PRIMARY
        if node.op == "cast":
            return f"({ctype(node.dtype)}){_closed(args[0], _UNARY)}", _UNARY
        if node.op == "view":
            return f"{'tw_bits' if node.dtype == 'int32' else 'tw_float'}({args[0][0]})", _PRIMARY
        if node.op == "where":
            condition, then, otherwise = (_closed(arg, _TERNARY + 1) for arg in args)
            return f"{condition} ? {then} : {otherwise}", _TERNARY
        if node.op == "look_up":
            return f"{_table_name(node)}[{args[0][0]}]", _PRIMARY
        if node.op == "copysign":
            return f"__builtin_copysignf({args[0][0]}, {args[1][0]})", _PRIMARY
        if node.op == "high":
            return f"tw_high_{node.dtype}({args[0][0]}, {args[1][0]})", _PRIMARY
        if node.op == "sqrt":
            return f"tw_sqrt({args[0][0]})", _PRIMARY
        if node.op == "logical_not":
            return f"!{_closed(args[0], _UNARY)}", _UNARY
        if node.dtype not in FLOATS and node.op in _OF_INTEGERS:
            return self._integer(node, args)
        if node.op == "absolute":
            return f"__builtin_fabs{'f' if node.dtype == 'float32' else ''}({args[0][0]})", _PRIMARY
        if node.op == "negative":
            return f"-{_closed(args[0], _PRIMARY)}", _UNARY
        if _compares_floats(node):
            name, step = _OF_ORDER[node.op]
            call = f"{name}({', '.join(text for text, _ in args[::step])})"
            return (f"!{call}", _UNARY) if node.op == "not_equal" else (call, _PRIMARY)
        operator, binding = _BINARY[node.op]
        if node.dtype == "bool" and node.op in _LAZY:
            operator = _LAZY[node.op]
        if binding < _COMPARISON or operator == ">>":  # C's binding of these surprises: C compilers ask for parentheses
            return f"{_closed(args[0], _UNARY)} {operator} {_closed(args[1], _UNARY)}", binding
        return f"{_closed(args[0], binding)} {operator} {_closed(args[1], binding + 1)}", binding

    def _integer(self, node: Expression, args: list[tuple[str, int]]) -> tuple[str, int]:
        """Return integer arithmetic: compiled with -fwrapv, which lets it wrap around as NumPy's does."""
        value = args[0][0]
        if node.op == "divide":
            return f"tw_divide_{node.dtype}({value}, {args[1][0]})", _PRIMARY
        if node.op == "left_shift":
            unsigned = "uint64_t" if "64" in node.dtype else "uint32_t"
            text = f"({unsigned}){_closed(args[0], _UNARY)} << {_closed(args[1], _UNARY)}"
            return f"({ctype(node.dtype)})({text})", _UNARY
        if node.op == "absolute":
            text, binding = f"{_closed(args[0], _UNARY)} < 0 ? -{_closed(args[0], _PRIMARY)} : {value}", _TERNARY
        elif node.op == "negative":
            text, binding = f"-{_closed(args[0], _PRIMARY)}", _UNARY
        else:
            operator, binding = _BINARY[node.op]
            text = f"{_closed(args[0], binding)} {operator} {_closed(args[1], binding + 1)}"
        # Narrow operands are added as int.
        return (text, binding) if node.dtype in _WORDS else (f"({ctype(node.dtype)})({text})", _UNARY)


_WORDS = ("int32", "uint32", "int64", "uint64")
_OF_INTEGERS = {"add", "subtract", "multiply", "divide", "negative", "absolute", "left_shift"}


def _closed(arg: tuple[str, int], binding: int) -> str:
    text, own = arg
    return text if own >= binding else f"({text})"
