"""Operators that only move elements: each is a few strided copies, of any dtype."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_constant
from tilewright.compiler.kernels.language.c_loops import Dims, loops, merged, offset_text, row_major
from tilewright.compiler.kernels.language.checked import ALL, CheckedKernel
from tilewright.compiler.kernels.language.core_cycles import CALL, LOOP, ROW, START, access_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = ["ANY", "CopyKernel", "StridedCopy", "c_move", "copy_helpers", "move_cycles", "whole"]

_SHORT_RUN = 16
"""Bytes below which a loop is as good as a call of tw_move."""

_UNROLLED = 16
"""The longest loop that clang unrolls wholly."""

_STEPS = 8
"""Elements of a step of a longer one: a taken branch and two pointers cost more than a byte in the core's memory."""

ANY = (*ALL, "int16", "uint16")


@dataclass(frozen=True, slots=True)
class StridedCopy:
    """A copy: element i of ``dims`` goes from ``source_offset + Σ i · source_strides`` to ``offset + Σ i · strides``.

    ``source`` is the input's position, or None to store ``value``. ``tables`` gives, for an axis, a list of source
    offsets to use instead of index times stride.
    """

    source: int | None
    dims: Dims
    strides: Dims
    source_strides: Dims
    offset: int = 0
    source_offset: int = 0
    tables: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    value: float = 0


class CopyKernel(CheckedKernel):
    """An operator given by its moves; they are done in order, so that a later one may overwrite an earlier one's."""

    limits = "any dtype"

    def __init__(self, op: str) -> None:
        self.op = op

    @abstractmethod
    def moves(self, call: Call) -> list[StridedCopy]:
        """Return the copies that make up ``call``, of which the strides count."""

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        flat = [None if array is None else np.ascontiguousarray(array).reshape(-1) for array in arrays]
        result = np.zeros(math.prod(call.output.dims), call.output.dtype)
        for move in self.moves(_without_gaps(call)):
            target = _offsets(move.dims, move.strides, {}) + move.offset
            if move.source is None:
                result[target] = move.value
                continue
            source = flat[move.source]
            assert source is not None
            result[target] = source[_offsets(move.dims, move.source_strides, move.tables) + move.source_offset]
        return result.reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        lines = []
        for index, move in enumerate(self.moves(call)):
            lines += c_move(move, call, f"{index}")
        return lines

    def helpers(self, call: Call) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for move in self.moves(call) for each in copy_helpers(move, call)))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        return START + sum(move_cycles(move, call, memory) for move in self.moves(call))


def _without_gaps(call: Call) -> Call:
    """Return ``call`` with all operands row by row."""
    inputs = tuple(replace(each, strides=row_major(each.dims)) for each in call.inputs)
    return replace(call, inputs=inputs, output=replace(call.output, strides=row_major(call.output.dims)))


def whole(position: int, source: Operand, target: Operand, *, offset: int = 0) -> StridedCopy:
    """Return the copy of all of ``source`` to the same indices of ``target``."""
    return StridedCopy(position, source.dims, target.strides, source.strides, offset)


def _offsets(dims: Dims, strides: Dims, tables: Mapping[int, tuple[int, ...]]) -> np.ndarray:
    total = np.zeros((), np.int64)
    for axis, (dim, stride) in enumerate(zip(dims, strides, strict=True)):
        steps = np.array(tables[axis], np.int64) if axis in tables else np.arange(dim) * stride
        total = total[..., None] + steps
    return total


def _merged(move: StridedCopy) -> StridedCopy:
    """Return ``move`` with the fewest dims, the output's largest steps outermost."""
    if move.tables:
        return move
    dims, (strides, source) = merged(move.dims, [move.strides, move.source_strides])
    return replace(move, dims=dims, strides=strides, source_strides=source)


def _run(move: StridedCopy, call: Call) -> int:
    """Return the bytes of the innermost run, if it is one on both sides and long enough for tw_move; else 0."""
    small = _merged(move)
    size = np.dtype(call.output.dtype).itemsize
    if small.source is None or not small.dims or small.tables:
        return 0
    if small.strides[-1] != 1 or small.source_strides[-1] != 1:
        return 0
    length = small.dims[-1] * size
    return length if length >= _SHORT_RUN and size < 4 else 0


def copy_helpers(move: StridedCopy, call: Call) -> tuple[str, ...]:
    """Return the names of the shared C functions that :func:`c_move` uses."""
    return ("tw_move",) if _run(move, call) else ()


def c_move(move: StridedCopy, call: Call, suffix: str, pointers: tuple[str, str] | None = None) -> list[str]:
    """Return the statements of a copy; ``pointers`` are what it writes and reads where those are not the call's own.

    ``suffix`` is of the names of its tables.
    """
    to, taken = pointers or ("out", f"in{move.source}")
    run = _run(move, call)
    move = _merged(move)
    if move.source is None:
        value = c_constant(np.dtype(call.output.dtype).type(move.value))
        return loops(move.dims, lambda indices: [f"{to}[{offset_text(move.offset, move.strides, indices)}] = {value};"])
    if run:
        def copy(indices: list[str]) -> list[str]:
            target = offset_text(move.offset, move.strides[:-1], indices)
            source = offset_text(move.source_offset, move.source_strides[:-1], indices)
            return [f"tw_move({to} + {target}, {taken} + {source}, {run});"]
        return loops(move.dims[:-1], copy)
    lines = [f"static const int32_t from{suffix}_{axis}[{len(table)}] = {{{', '.join(map(str, table))}}};"
             for axis, table in move.tables.items()]

    def element(indices: list[str]) -> list[str]:
        plain = tuple(0 if axis in move.tables else stride for axis, stride in enumerate(move.source_strides))
        looked = [f"from{suffix}_{axis}[{indices[axis]}]" for axis in move.tables]
        source = " + ".join([*looked, offset_text(move.source_offset, plain, indices)])
        return [f"{to}[{offset_text(move.offset, move.strides, indices)}] = {taken}[{source}];"]

    return lines + loops(move.dims, element, unrolled=_STEPS if move.dims and move.dims[-1] > _UNROLLED else 1)


def move_cycles(move: StridedCopy, call: Call, memory: MemoryTiming) -> int:
    """Estimate the core's cycles for a copy."""
    count = math.prod(move.dims)
    size = np.dtype(call.output.dtype).itemsize
    if run := _run(move, call):
        # A word's store and the load of the next are under way together.
        return count * size // run * (CALL + ROW) + count * size // 4 * (access_cycles(memory, 2) + 2)
    small = _merged(move)
    rows = math.prod(small.dims[:-1])
    if move.source is None:
        return rows * ROW + count * (2 + access_cycles(memory, 0, 1))
    # Loops are unrolled, short ones wholly, so that two accesses are under way together.
    short = not small.dims or small.dims[-1] <= _UNROLLED
    element = access_cycles(memory, 2) + (2 if short else -(-LOOP // _STEPS))
    return rows * ROW // 2 + count * element
