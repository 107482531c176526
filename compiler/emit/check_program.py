"""Check a program from an untrusted file before it is run: known names, bounded loops, operands that fit."""

from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.isa.encoding import KNOWN, EncodingError
from tilewright.isa.lacking import lacking
from tilewright.isa.machine import Machine
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.program import Call, Issue, Loop, Program, ProgramError, Statement

__all__ = ["check_program"]

_MAX_COMMANDS = 4_000_000
_MAX_DEPTH = 8


def check_program(program: Program, memory_bytes: int, machine: Machine) -> None:
    """Raise :exc:`ProgramError` unless ``program`` can be expanded, and that in reasonable time.

    ``machine`` must have what its commands use. What the host core computes itself must stay inside the
    ``memory_bytes`` of main memory.

    Whether every operand fits in every iteration shows when the command is built.
    """
    if not program.functions:
        raise ProgramError("Program must have a function")
    for function in program.functions:
        if not isinstance(function.name, str) or not isinstance(function.comment, str):
            raise ProgramError(f"Function must have a name and a comment, not {function.name!r:.40}")
    if not all(isinstance(each, Issue) for each in program.opening):
        raise ProgramError("Opening of a program must be of commands of the coprocessor alone")
    bodies = [program.opening, *(function.body for function in program.functions)]
    total = sum(_count(body, {}, machine) for body in bodies)
    for call in (each for body in bodies for each in body if isinstance(each, Call)):
        for operand in call.operands:
            end = operand.address + operand.span_bytes
            if not MAIN_BASE <= operand.address <= end <= MAIN_BASE + memory_bytes:
                raise ProgramError(f"Call of {call.kernel} must stay inside the {memory_bytes} bytes of main memory, "
                                   f"not touch {operand.address:#x}..{end:#x}")
    if total > _MAX_COMMANDS:
        raise ProgramError(f"Program must have at most {_MAX_COMMANDS} commands, not {total}")


def _count(body: tuple[Statement, ...], variables: dict[str, int], machine: Machine) -> int:
    """Return the commands that ``body`` expands to; ``variables`` are those of the loops around it."""
    if len(variables) > _MAX_DEPTH:
        raise ProgramError(f"Loops must be nested at most {_MAX_DEPTH} deep")
    total = 0
    for statement in body:
        if isinstance(statement, Loop):
            if not isinstance(statement.variable, str) or statement.variable in variables:
                raise ProgramError(f"Loop must have a variable of its own, not {statement.variable!r:.40}")
            if not 1 <= statement.count <= _MAX_COMMANDS:
                raise ProgramError(f"Loop {statement.variable!r:.40} must run 1..{_MAX_COMMANDS} times, "
                                   f"not {statement.count}")
            total += statement.count * _count(statement.body, variables | {statement.variable: 0}, machine)
        elif isinstance(statement, Call):
            if variables:
                raise ProgramError(f"Call of {statement.kernel} must not be in a loop")
            _check_call(statement)
            total += 1
        else:
            _check_issue(statement, variables)
            _check_unit(statement, machine)
            total += 1
    return total


def _check_call(call: Call) -> None:
    """Raise :exc:`ProgramError` unless there is such a kernel and it takes ``call``."""
    if call.kernel not in CORE_KERNELS:
        raise ProgramError(f"Call must be of a kernel of the host core, not {call.kernel!r:.40}")
    try:
        refusal = CORE_KERNELS[call.kernel].refusal(call)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A kernel asks for what its operator must have; what a damaged file lacks shows as one of these.
        refusal = f"its operands or attributes are invalid ({error})"
    if refusal is not None:
        raise ProgramError(f"Call of {call.kernel} cannot run: {refusal:.200}")


def _check_unit(issue: Issue, machine: Machine) -> None:
    """Raise :exc:`ProgramError` unless ``machine`` has the units that ``issue`` may need."""
    may_be = {name: int(bool(operand.terms) or operand.constant != 0) for name, operand in issue.operands.items()}
    if (unit := lacking(machine, issue.mnemonic, issue.variant, may_be)) is not None:
        raise ProgramError(f"{issue.mnemonic}.{issue.variant} needs {unit}, which machine {machine.name} lacks")


def _check_issue(issue: Issue, variables: dict[str, int]) -> None:
    if issue.mnemonic not in KNOWN:
        raise ProgramError(f"Mnemonic must be one of {', '.join(KNOWN)}, not {issue.mnemonic!r:.40}")
    try:
        variant = KNOWN[issue.mnemonic].variant(issue.variant)
        variant.flag_bits(*issue.flags)
    except (EncodingError, TypeError) as error:
        raise ProgramError(str(error)) from error
    known = {field.name for field in variant.fields}
    for name, operand in issue.operands.items():
        if name not in known:
            raise ProgramError(f"{issue.mnemonic}.{issue.variant} has no operand {name!r:.40}")
        for term in operand.terms:
            if term.variable not in variables or term.modulus < 0 or term.phase < 0:
                raise ProgramError(f"Operand {name} must use variables of the loops around it, "
                                   f"not {term.variable!r:.40}")
