"""A coprocessor program as a tree: loops around issues whose operands are affine in the loop variables.

The compiler writes it; the C code is printed from it, the fast engine executes it, and so both run the same
commands in the same order. It has one JSON form, used in artefacts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.isa.assembler import Command, command


class ProgramError(ValueError):
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

    def command(self, variables: Mapping[str, int]) -> Command:
        """Return the command at ``variables``."""
        values = {name: value.value(variables) for name, value in self.operands.items()}
        return command(self.mnemonic, self.variant, self.flags, **values)


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


ABSENT = Operand(0, "", (), ())


@dataclass(frozen=True, slots=True)
class Call:
    """An operator that the host core computes itself, on main memory, while the coprocessor stands still.

    ``kernel`` is its name in ``compiler.core``; ``attrs`` are numbers, strings and lists of them.
    """

    kernel: str
    inputs: tuple[Operand, ...]
    output: Operand
    attrs: Mapping[str, Any] = field(default_factory=dict)


Statement = Issue | Loop | Call


def issue(mnemonic: str, variant: str, *flags: str, **operands: Affine | int) -> Issue:
    """Build an issue; flags are names like ``wait_act_ready``."""
    return Issue(mnemonic, variant, flags, {name: affine(value) for name, value in operands.items()})


@dataclass(frozen=True, slots=True)
class Function:
    """The code of one layer: its name, what it does in a line or two, and its statements."""

    name: str
    comment: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Functions called in order."""

    functions: tuple[Function, ...]

    def commands(self) -> Iterator[tuple[int, Command]]:
        """Yield (index of the function, command) in program order."""
        for index, function in enumerate(self.functions):
            for each in _expand(function.body, {}):
                yield index, each


def _expand(body: tuple[Statement, ...], variables: dict[str, int]) -> Iterator[Command]:
    for statement in body:
        if isinstance(statement, Issue):
            yield statement.command(variables)
        else:
            for index in range(statement.count):
                yield from _expand(statement.body, variables | {statement.variable: index})


def to_json(program: Program) -> list[Any]:
    """Return the program as lists, dicts, strings and numbers."""
    return [{"name": f.name, "comment": f.comment, "body": [_statement_json(s) for s in f.body]}
            for f in program.functions]


def _statement_json(statement: Statement) -> dict[str, Any]:
    if isinstance(statement, Loop):
        return {"loop": statement.variable, "count": statement.count,
                "body": [_statement_json(s) for s in statement.body]}
    operands = {name: value.constant if not value.terms else
                [value.constant, *([t.variable, t.coefficient, t.modulus, t.phase] for t in value.terms)]
                for name, value in statement.operands.items()}
    return {"issue": f"{statement.mnemonic}.{statement.variant}", "flags": list(statement.flags),
            "operands": operands}


def from_json(data: Any) -> Program:
    """Read what :func:`to_json` returns.

    Raises
    ------
    ProgramError
        If ``data`` has another form; the cause is the exception behind it.
    """
    try:
        return Program(tuple(Function(f["name"], f["comment"], tuple(map(_statement, f["body"]))) for f in data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProgramError(f"Program must have the form that to_json returns: {error}") from error


def _statement(data: Mapping[str, Any]) -> Statement:
    if "loop" in data:
        return Loop(data["loop"], int(data["count"]), tuple(map(_statement, data["body"])))
    mnemonic, _, variant = data["issue"].partition(".")
    operands = {name: _affine(value) for name, value in data["operands"].items()}
    return Issue(mnemonic, variant, tuple(data["flags"]), operands)


def _affine(value: Any) -> Affine:
    if isinstance(value, int):
        return Affine(value)
    constant, *terms = value
    return Affine(int(constant), tuple(Term(str(v), int(c), int(m), int(p)) for v, c, m, p in terms))
