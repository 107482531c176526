"""Find the instruction that wrote a byte of memory: replay the program command by command, watching one address."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.emit.c import program_text, statement_lines
from tilewright.compiler.emit.c_core import call_lines
from tilewright.compiler.kernels.execute import run_on_core
from tilewright.compiler.network.operands import to_memory
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.memory import AddressWindow
from tilewright.isa.program import Call, Issue, Loop, Program, Statement
from tilewright.runtime.execution.job import Job
from tilewright.sim.values.core_calls import execute_call
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory, Steps

__all__ = ["Writer", "find_writer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The last instruction that wrote a byte.

    Attributes
    ----------
    function : str
        The C function it is in, one layer's.
    function_index : int
        Of the layer; the number of layers for the function behind the last.
    command : int
        How many commands and calls of the whole program came before it.
    instruction : str
        The command with its operands as executed, or the call of the host core.
    line : int
        Of the program in C, model.c, counted from 1.
    text : str
        The text of that line.
    variables : dict of str to int
        The loop variables then.
    value : int
        The byte it wrote when the program was replayed, as int8.
    """

    function: str
    function_index: int
    command: int
    instruction: str
    line: int
    text: str
    variables: dict[str, int]
    value: int

    def __str__(self) -> str:
        at = "".join(f", {name} = {value}" for name, value in self.variables.items())
        return (f"{self.instruction}; command {self.command} of the program, {self.function}, model.c line "
                f"{self.line}{at}")


def find_writer(job: Job, inputs: Mapping[str, NDArray[np.generic]], address: int) -> Writer | None:
    """Return the last writer of the byte at ``address`` when the program runs in order; None if there is none.

    Parameters
    ----------
    job : Job
    inputs : mapping of str to ndarray
        As `runtime.execution.engines.execute` takes them.
    address : int
        Of main memory.

    Raises
    ------
    ExecutionError
        If the program cannot be executed.
    """
    memory = _Watched(job.memory_bytes, job.windows, address)
    for start, content in job.images:
        memory.put(start, content if isinstance(content, bytes) else content.read_bytes())
    for name, array in inputs.items():
        info, start = job.tensors[name]
        memory.put(start, to_memory(array, info))
    executor, timing = Executor(job.machine, memory), MemoryTiming.default(job.machine)
    found = None
    for number, place in enumerate(_places(job.program)):
        memory.touched = False
        action = place.statement if isinstance(place.statement, Call) else place.statement.command(place.variables)
        if isinstance(action, Call):
            execute_call(action, memory, timing, run_on_core)
            memory.touched = action.output.address <= address < action.output.address + action.output.span_bytes
        else:
            executor.execute(action)
        if memory.touched:
            found = number, place, action, memory.get(address, 1)
    if found is None:
        return None
    number, place, action, content = found
    line, text = _line(job, place)
    return Writer(function=job.program.functions[place.function].name, function_index=place.function, command=number,
                  instruction=_instruction(action), line=line, text=text, variables=dict(place.variables),
                  value=int(np.frombuffer(content, np.int8)[0]))


class _Watched(MainMemory):
    """Main memory that tells when a store of the coprocessor covers one address."""

    def __init__(self, size: int, windows: tuple[AddressWindow, ...], address: int) -> None:
        super().__init__(size, windows)
        self.address, self.touched = address, False

    def write_strided(self, address: int, data: NDArray[np.int8], steps: Steps, bus_bytes: int) -> None:
        super().write_strided(address, data, steps, bus_bytes)
        rows, runs, size = data.shape
        starts = address + np.arange(rows)[:, None] * steps[0] + np.arange(runs) * steps[1]
        self.touched |= bool(((starts <= self.address) & (self.address < starts + size)).any())


@dataclass(frozen=True, slots=True)
class _Place:
    """A statement at some turn of its loops: index of its function, line in the body, loop variables."""

    function: int
    line: int
    statement: Issue | Call
    variables: Mapping[str, int]


def _places(program: Program) -> Iterator[_Place]:
    """Yield every statement of a program as often as it is executed, in order."""
    for index, function in enumerate(program.functions):
        lengths: dict[int, int] = {}
        for line, statement, variables in _turns(function.body, {}, 0, lengths):
            yield _Place(index, line, statement, variables)


def _turns(body: tuple[Statement, ...], variables: dict[str, int], line: int,
           lengths: dict[int, int]) -> Iterator[tuple[int, Issue | Call, dict[str, int]]]:
    """Yield (line, statement, loop variables); ``lengths`` keeps how many lines each statement has, by its id."""
    for statement in body:
        if isinstance(statement, Loop):
            for turn in range(statement.count):
                yield from _turns(statement.body, variables | {statement.variable: turn}, line + 1, lengths)
        else:
            yield line, statement, variables
        if id(statement) not in lengths:
            lengths[id(statement)] = len(_text(statement))
        line += lengths[id(statement)]


def _text(statement: Statement) -> list[str]:
    return call_lines(statement, "") if isinstance(statement, Call) else list(statement_lines(statement))


def _instruction(action: EncodedCommand | Call) -> str:
    """Return a command with its flags and operands, or a call with its operands."""
    if isinstance(action, Call):
        return f"call of {action}"
    operands = ", ".join(f"{name} {value:#x}" if name == "address" else f"{name} {value}"
                         for name, value in action.operands.items())
    flags = f" ({', '.join(sorted(action.flags))})" if action.flags else ""
    return f"{action.instruction.mnemonic}.{action.variant.name} {operands}{flags}"


def _line(job: Job, place: _Place) -> tuple[int, str]:
    """Return where in the program in C a statement begins, counted from 1, and what stands there.

    Of a call it is the line with the function that computes it, between those that copy its tensors.
    """
    name = job.program.functions[place.function].name
    lines = program_text(job.program, job.name).splitlines()
    first = lines.index(f"static void {name}(void)") + 2 + place.line
    stop = first + len(_text(place.statement))
    if isinstance(place.statement, Call):
        first = next(line for line in range(first, stop) if lines[line].strip().startswith(f"{name}_"))
        stop = first + 1
    return first + 1, " ".join(line.strip() for line in lines[first:stop])
