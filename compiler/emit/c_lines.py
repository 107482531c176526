"""The line of ``model.c`` on which each command of a program stands, for traces."""

import re
from collections.abc import Iterator, Sequence

from tilewright.compiler.emit.c import all_functions, statement_lines
from tilewright.compiler.emit.c_core import call_lines, core_name
from tilewright.isa.extension import Extension
from tilewright.isa.program import Call, Function, Loop, Program, Statement

__all__ = ["command_lines"]

_HEAD = re.compile(r"static (?:void|uint32_t) (\w+)\(void\)")
_LOCAL = re.compile(r" +uint32_t fault;")


def command_lines(program: Program, text: str, extension: Extension | None = None) -> Iterator[int]:
    """Yield for each command that ``program`` executes, in order, its line in ``text``, counted from 1.

    ``text`` is what `compiler.emit.c.program_text` returns for the same program and extension.
    """
    source = text.splitlines()
    heads = {found[1]: index for index, line in enumerate(source) if (found := _HEAD.fullmatch(line))}
    for function in all_functions(program):
        first = heads[function.name] + 2        # behind the brace
        first += bool(_LOCAL.fullmatch(source[first]))
        yield from _executed(function.body, _sizes(function, extension), first + 1, extension)


def _sizes(function: Function, extension: Extension | None) -> list[int]:
    """Return the lines that each statement of a function takes."""
    sizes, calls = [], 0
    for statement in function.body:
        if isinstance(statement, Call):
            sizes.append(len(list(call_lines(statement, core_name(function, statement, calls)))))
            calls += 1
        else:
            sizes.append(len(list(statement_lines(statement, extension))))
    return sizes


def _executed(body: Sequence[Statement], sizes: Sequence[int], first: int,
              extension: Extension | None) -> Iterator[int]:
    for statement, size in zip(body, sizes, strict=True):
        if isinstance(statement, Loop):
            inner = [len(list(statement_lines(each, extension))) for each in statement.body]
            once = list(_executed(statement.body, inner, first + 1, extension))
            for _ in range(statement.count):
                yield from once
        elif not isinstance(statement, Call):
            yield first
        first += size
