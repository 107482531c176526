"""The line of ``model.c`` on which each command of a program stands: what a trace shows beside the command."""

from collections.abc import Iterator, Sequence

from tilewright.compiler.emit.c import statement_lines
from tilewright.compiler.emit.c_core import call_lines, core_name
from tilewright.isa.program import Call, Function, Loop, Program, Statement

__all__ = ["command_lines"]


def command_lines(program: Program, text: str) -> Iterator[int]:
    """Yield for each command that ``program`` executes, in order, its line in ``text``, counted from 1.

    ``text`` is what `compiler.emit.c.program_text` returns for the same program.
    """
    numbers = {line: number for number, line in enumerate(text.splitlines(), 1)}
    for function in program.functions:
        # The brace stands between the head and the body.
        yield from _executed(function.body, _sizes(function), numbers[f"static void {function.name}(void)"] + 2)


def _sizes(function: Function) -> list[int]:
    """Return the lines that each statement of a function takes."""
    sizes, calls = [], 0
    for statement in function.body:
        if isinstance(statement, Call):
            sizes.append(len(list(call_lines(statement, core_name(function, statement, calls)))))
            calls += 1
        else:
            sizes.append(len(list(statement_lines(statement))))
    return sizes


def _executed(body: Sequence[Statement], sizes: Sequence[int], first: int) -> Iterator[int]:
    for statement, size in zip(body, sizes, strict=True):
        if isinstance(statement, Loop):
            inner = [len(list(statement_lines(each))) for each in statement.body]
            once = list(_executed(statement.body, inner, first + 1))
            for _ in range(statement.count):
                yield from once
        elif not isinstance(statement, Call):
            yield first
        first += size
