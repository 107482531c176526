"""A coprocessor program as a tree: loops around issues whose operands are affine in the loop variables.

The compiler writes it; the C code is printed from it, the fast engine executes it, and so both run the same
commands in the same order. It has one JSON form, used in artefacts.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import Error
from tilewright.isa.assembler import EncodedCommand, command

__all__ = [
    "ABSENT", "DTYPES", "MAX_RANK", "Affine", "Call", "EncodedProgram", "Function", "Issue", "Loop", "Operand",
    "Program", "ProgramError", "Statement", "Term", "affine", "from_json", "issue", "step", "to_json",
]

DTYPES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
          "float32": 4}
"""Element types of the tensors that the host core touches, by NumPy's names, and the bytes of each."""

MAX_RANK = 8
_MAX_ELEMENTS = 1 << 31


class ProgramError(Error, ValueError):
    """A program is malformed."""


@dataclass(frozen=True, slots=True)
class Term:
    """``coefficient * variable``, or ``coefficient * ((variable + phase) % modulus)`` where modulus is not 0."""

    variable: str
    coefficient: int
    modulus: int = 0
    phase: int = 0


@dataclass(frozen=True, slots=True)
class Affine:
    """``constant`` plus a sum of terms."""

    constant: int = 0
    terms: tuple[Term, ...] = ()

    def __add__(self, other: "Affine | int") -> "Affine":
        other = affine(other)
        return Affine(self.constant + other.constant, self.terms + other.terms)

    def value(self, variables: Mapping[str, int]) -> int:
        """Return the value at ``variables``."""
        total = self.constant
        for term in self.terms:
            index = variables[term.variable]
            total += term.coefficient * ((index + term.phase) % term.modulus if term.modulus else index)
        return total


def affine(value: "Affine | int") -> Affine:
    """Return ``value`` as an :class:`Affine`."""
    return value if isinstance(value, Affine) else Affine(value)


def step(variable: str, coefficient: int, modulus: int = 0) -> Affine:
    """Return ``coefficient * variable`` (``variable % modulus`` where given)."""
    return Affine(0, (Term(variable, coefficient, modulus),)) if coefficient else Affine(0)


@dataclass(frozen=True, slots=True)
class Issue:
    """One instruction: names of mnemonic, variant and flags; operands by field name."""

    mnemonic: str
    variant: str
    flags: tuple[str, ...] = ()
    operands: Mapping[str, Affine] = field(default_factory=dict)

    def values(self, variables: Mapping[str, int]) -> dict[str, int]:
        """Return the operands at ``variables``."""
        return {name: value.value(variables) if value.terms else value.constant
                for name, value in self.operands.items()}

    def command(self, variables: Mapping[str, int]) -> EncodedCommand:
        """Return the command at ``variables``."""
        return command(self.mnemonic, self.variant, self.flags, **self.values(variables))


@dataclass(frozen=True, slots=True)
class Loop:
    """``body`` for variable = 0 .. count - 1."""

    variable: str
    count: int
    body: "tuple[Statement, ...]"


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor in main memory as the host core sees it; ``strides`` count elements. An absent one has no ``dtype``."""

    address: int
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def present(self) -> bool:
        """Whether there is a tensor: optional inputs of an operator may be absent."""
        return self.dtype != ""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to behind the last; 0 where there are none."""
        if not self.present or not self.elements:
            return 0
        last = sum((size - 1) * stride for size, stride in zip(self.dims, self.strides, strict=True))
        return (last + 1) * DTYPES[self.dtype]


ABSENT = Operand(0, "", (), ())


@dataclass(frozen=True, slots=True)
class Call:
    """An operator that the host core computes itself, on main memory, while the coprocessor stands still.

    ``kernel`` is its name in ``compiler.kernels``; ``attrs`` are numbers, strings and lists of them. With ``staged`` it
    works on copies of its operands in the core's own memory.
    """

    kernel: str
    inputs: tuple[Operand, ...]
    output: Operand
    attrs: Mapping[str, Any] = field(default_factory=dict)
    staged: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The tensors it touches: inputs that are present, then the output."""
        return (*(each for each in self.inputs if each.present), self.output)

    def __str__(self) -> str:
        return f"{self.kernel} to {self.output.address:#x}"


Statement = Issue | Loop | Call


def issue(mnemonic: str, variant: str, *flags: str, **operands: Affine | int) -> Issue:
    """Build an issue; flags are names like ``wait_act_ready``."""
    return Issue(mnemonic, variant, flags, {name: affine(value) for name, value in operands.items()})


@dataclass(frozen=True, slots=True)
class Function:
    """The code of one layer: its name, a comment of a line or two, and its statements."""

    name: str
    comment: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Functions called in order, and an ``opening`` that only the first of several runs begins with.

    It counts to the first function.
    """

    functions: tuple[Function, ...]
    opening: tuple[Statement, ...] = ()

    def actions(self) -> Iterator[tuple[int, EncodedCommand | Call]]:
        """Yield (index of the function, command or call of the host core) in the order of the first run."""
        for each in _expand(self.opening, {}):
            yield 0, each
        for index, function in enumerate(self.functions):
            for each in _expand(function.body, {}):
                yield index, each

    def commands(self) -> Iterator[tuple[int, EncodedCommand]]:
        """Yield (index of the function, command) in program order, without calls."""
        for index, each in self.actions():
            if not isinstance(each, Call):
                yield index, each


@dataclass(frozen=True, slots=True)
class EncodedProgram(Program):
    """A program whose commands are encoded once, for callers that iterate over it several times."""

    encoded: tuple[tuple[int, EncodedCommand | Call], ...] = ()

    @classmethod
    def of(cls, program: Program) -> "EncodedProgram":
        """Return ``program`` with its commands encoded."""
        return cls(program.functions, program.opening, tuple(program.actions()))

    def actions(self) -> Iterator[tuple[int, EncodedCommand | Call]]:
        """Yield the same as `Program.actions`."""
        return iter(self.encoded)


def _expand(body: tuple[Statement, ...], variables: dict[str, int]) -> Iterator[EncodedCommand | Call]:
    for statement in body:
        if isinstance(statement, Issue):
            yield statement.command(variables)
        elif isinstance(statement, Call):
            yield statement
        else:
            for index in range(statement.count):
                yield from _expand(statement.body, variables | {statement.variable: index})


def to_json(program: Program) -> list[Any]:
    """Return the program as lists, dicts, strings and numbers."""
    functions = [{"name": f.name, "comment": f.comment, "body": [_statement_json(s) for s in f.body]}
                 for f in program.functions]
    return functions + ([{"opening": [_statement_json(s) for s in program.opening]}] if program.opening else [])


def _statement_json(statement: Statement) -> dict[str, Any]:
    if isinstance(statement, Loop):
        return {"loop": statement.variable, "count": statement.count,
                "body": [_statement_json(s) for s in statement.body]}
    if isinstance(statement, Call):
        return {"call": statement.kernel, "inputs": list(map(_operand_json, statement.inputs)),
                "output": _operand_json(statement.output),
                "attrs": {name: _attribute_json(value) for name, value in statement.attrs.items()},
                "staged": statement.staged}
    operands = {name: value.constant if not value.terms else
                [value.constant, *([t.variable, t.coefficient, t.modulus, t.phase] for t in value.terms)]
                for name, value in statement.operands.items()}
    return {"issue": f"{statement.mnemonic}.{statement.variant}", "flags": list(statement.flags),
            "operands": operands}


def _operand_json(operand: Operand) -> dict[str, Any] | None:
    if not operand.present:
        return None
    return {"address": operand.address, "dtype": operand.dtype, "dims": list(operand.dims),
            "strides": list(operand.strides)}


def _attribute_json(value: Any) -> Any:
    """Return an attribute as JSON has it, which knows no infinity and no NaN."""
    if isinstance(value, (list, tuple)):
        return [_attribute_json(each) for each in value]
    return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def from_json(data: Any) -> Program:
    """Read what :func:`to_json` returns.

    Raises
    ------
    ProgramError
        If ``data`` has another form; the cause is the exception behind it.
    """
    try:
        functions = tuple(Function(f["name"], f["comment"], tuple(map(_statement, f["body"])))
                          for f in data if "opening" not in f)
        return Program(functions, tuple(_statement(s) for f in data if "opening" in f for s in f["opening"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProgramError(f"Program must have the form that to_json returns: {error}") from error


def _statement(data: Mapping[str, Any]) -> Statement:
    if "loop" in data:
        return Loop(data["loop"], int(data["count"]), tuple(map(_statement, data["body"])))
    if "call" in data:
        return _call(data)
    mnemonic, _, variant = data["issue"].partition(".")
    operands = {name: _affine(value) for name, value in data["operands"].items()}
    return Issue(mnemonic, variant, tuple(data["flags"]), operands)


def _call(data: Mapping[str, Any]) -> Call:
    """Read a call; its numbers are checked here, whether its kernel exists and takes it elsewhere."""
    output = _operand(data["output"])
    if not isinstance(data["call"], str) or not output.present:
        raise ProgramError(f"Call must have a kernel and an output, not {data['call']!r:.40} and {output!r:.60}")
    if not isinstance(data["staged"], bool):
        raise ProgramError(f"Call must say whether it is staged, not {data['staged']!r:.40}")
    attrs = {str(name): _attribute(value) for name, value in data["attrs"].items()}
    return Call(data["call"], tuple(map(_operand, data["inputs"])), output, attrs, data["staged"])


def _operand(data: Mapping[str, Any] | None) -> Operand:
    if data is None:
        return ABSENT
    operand = Operand(data["address"], data["dtype"], tuple(data["dims"]), tuple(data["strides"]))
    if operand.dtype not in DTYPES:
        raise ProgramError(f"Operand must have a type of {', '.join(DTYPES)}, not {operand.dtype!r:.40}")
    numbers = (operand.address, *operand.dims, *operand.strides)
    if not all(type(number) is int and 0 <= number < 1 << 32 for number in numbers):
        raise ProgramError(f"Operand must have an address, sizes and strides of 0..2**32 - 1, not {numbers!r:.80}")
    if len(operand.dims) != len(operand.strides) or len(operand.dims) > MAX_RANK:
        raise ProgramError(f"Operand must have as many strides as sizes, at most {MAX_RANK}, not {operand.dims!r:.60} "
                           f"and {operand.strides!r:.60}")
    if operand.elements > _MAX_ELEMENTS or operand.address + operand.span_bytes > 1 << 32:
        raise ProgramError(f"Operand must end inside the address space, not have sizes {operand.dims!r:.60} and "
                           f"strides {operand.strides!r:.60} at {operand.address:#x}")
    if operand.elements * DTYPES[operand.dtype] > operand.span_bytes:
        raise ProgramError(f"Operand must have no two elements in one place, as sizes {operand.dims!r:.60} and strides "
                           f"{operand.strides!r:.60} have")
    if operand.address % min(4, DTYPES[operand.dtype]):
        raise ProgramError(f"Operand of type {operand.dtype} must be aligned, not at {operand.address:#x}")
    return operand


def _attribute(value: Any, depth: int = 0) -> Any:
    if isinstance(value, list):
        if depth == MAX_RANK:
            raise ProgramError(f"Attribute must have lists at most {MAX_RANK} deep")
        return [_attribute(each, depth + 1) for each in value]
    if isinstance(value, dict) and value.keys() == {"float"}:
        return float(value["float"])
    if not isinstance(value, (int, float, str)):
        raise ProgramError(f"Attribute must be a number, a string or a list of them, not {value!r:.40}")
    return value


def _affine(value: Any) -> Affine:
    if isinstance(value, int):
        return Affine(value)
    constant, *terms = value
    return Affine(int(constant), tuple(Term(str(v), int(c), int(m), int(p)) for v, c, m, p in terms))
