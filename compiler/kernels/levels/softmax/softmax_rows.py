"""Rows of bytes for the softmax of levels: each loaded once, by words where it lies in one run.

The core has two accesses under way if they follow each other at once: two words of a row, or two results.
"""

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array, ctype
from tilewright.compiler.kernels.language.c_loops import INDENT, merged
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = [
    "c_loaded", "c_pairs", "c_stored", "in_one_run", "load_cycles", "pairs_by_words", "pairs_cycles", "store_cycles",
]

_WORD = "typedef uint32_t __attribute__((may_alias)) word;"
_PAIR, _MOST = 2, 255
_STEP = 4
"""Rows of two in a step: the bytes of two words."""

_PAIR_WORK, _BYTES_WORK = 11, 10
"""Cycles of a row of two besides its accesses, measured in RTL: by words, and byte by byte."""

_ROW_WORK, _WORD_WORK, _BYTE_WORK = 16, 3, 3
"""Of a row's copy, and of each of its words or bytes, besides its accesses."""


def in_one_run(rows: Rows, operand: Operand) -> bool:
    """Tell whether the elements of a row follow one another in memory."""
    dims, (steps,) = merged(tuple(operand.dims[axis] for axis in rows.along),
                            [tuple(operand.strides[axis] for axis in rows.along)])
    return len(dims) <= 1 and steps in ((), (1,))


def c_loaded(rows: Rows, source: Operand, indices: list[str]) -> list[str]:
    """Return the lines that make ``x`` a pointer to the bytes of a row in the core's own memory."""
    kind, first = ctype(source.dtype), rows.element("in0", source, indices, ["0"] * len(rows.along))
    if not in_one_run(rows, source):
        return [f"static {kind} x[{rows.length}];", f"{kind} *next = x;",
                *rows.each_element(lambda inner: [f"*next++ = {rows.element('in0', source, indices, inner)};"])]
    return [f"static uint32_t held[{rows.length // 4 + 2}];", _WORD,
            f"const uintptr_t start = (uintptr_t)&{first}, shift = start & 3;",
            "const word *const from = (const word *)(start - shift);",
            f"const uint32_t words = (shift + {rows.length + 3}) / 4;",
            "uint32_t w = 0;",
            "for (; w + 1 < words; w += 2) {",
            f"{INDENT}uint32_t a = from[w], b = from[w + 1];",
            f'{INDENT}__asm__ volatile("" : "+r"(a), "+r"(b));',
            f"{INDENT}held[w] = a, held[w + 1] = b;", "}",
            "if (w < words)", f"{INDENT}held[w] = from[w];",
            '__asm__ volatile("" : : : "memory");',
            f"const {kind} *const x = (const {kind} *)held + shift;"]


def load_cycles(rows: Rows, source: Operand, memory: MemoryTiming) -> float:
    """Return the cycles of the lines of :func:`c_loaded`."""
    if not in_one_run(rows, source):
        return _ROW_WORK + rows.length * (_BYTE_WORK + access_cycles(memory))
    words = rows.length / 4 + (0.75 if rows.length % 4 else 0)
    return _ROW_WORK + words * (_WORD_WORK + access_cycles(memory, 2) / 2)


def c_stored(rows: Rows, call: Call, indices: list[str], value: list[str]) -> list[str]:
    """Return the loop that stores results, where the lines ``value`` set ``y`` to that of byte ``x[k]``."""
    kind, length = ctype(call.output.dtype), rows.length
    body = [INDENT + line for line in value]
    if not in_one_run(rows, call.output):
        def store(inner: list[str]) -> list[str]:
            return [f"{kind} y;", "{", *body, "}", f"{rows.element('out', call.output, indices, inner)} = y;", "k++;"]
        return ["uint32_t k = 0;", *rows.each_element(store)]
    first = rows.element("out", call.output, indices, ["0"] * len(rows.along))
    lines = [f"{kind} *const to = &{first};", "uint32_t k = 0;", f"{kind} y;"]
    if length > 1:
        lines += [f"{kind} before;", f"while (k < {length - length % 2}) {{", *(INDENT + line for line in (
            "{", *body, "}", "before = y, k++;", "{", *body, "}", "k++;",
            '__asm__ volatile("" : "+r"(before), "+r"(y));', "to[k - 2] = before, to[k - 1] = y;")), "}"]
    if length % 2:
        lines += ["{", *body, "}", "to[k] = y;"]
    return lines


def store_cycles(rows: Rows, target: Operand, memory: MemoryTiming) -> float:
    """Return the cycles of the stores of a row."""
    if not in_one_run(rows, target):
        return rows.length * (LOOP + access_cycles(memory, 0, 1))
    return rows.length // 2 * (LOOP + access_cycles(memory, 2)) + rows.length % 2 * access_cycles(memory, 0, 1)


def pairs_by_words(call: Call, rows: Rows) -> bool:
    """Tell whether all rows of two, of input and output, lie in one run, in the same order."""
    strides = [call.inputs[0].strides, call.output.strides]
    dims, steps = merged(call.output.dims, strides)
    return (len(dims) == 1 and steps == ((1,), (1,)) and in_one_run(rows, call.output))


def c_pairs(call: Call, rows: Rows, table: np.ndarray) -> list[str]:
    """Return the C of rows of two: ``table`` has both results by the first element less the second, from -255 on."""
    lines = _pairs_by_words(call) if pairs_by_words(call, rows) else _pairs_by_bytes(call, rows)
    return [*c_array("pairs", table.reshape(-1)), *lines]


def _pairs_by_words(call: Call) -> list[str]:
    byte, kind, count, step = ctype(call.inputs[0].dtype), ctype(call.output.dtype), call.output.elements, _PAIR * _STEP
    names = [f"y{k}" for k in range(step)]
    lines = []
    for row in range(_STEP):
        word, shift = "ab"[row // 2], 16 * (row % 2)
        first, second = (f"({byte})({word} >> {shift + 8 * k})" for k in range(_PAIR))
        lines += [f"const {kind} *const p{row} = pairs + 2 * ({_MOST} + {first} - {second});",
                  f"{kind} y{2 * row} = p{row}[0], y{2 * row + 1} = p{row}[1];"]
    held = ", ".join(f'"+r"({name})' for name in names)
    stores = " ".join(f"out[i + {k}] = {name};" for k, name in enumerate(names))
    return [_WORD, "const word *const words = (const word *)(const void *)in0;", "int32_t i = 0;",
            f"for (; i < {count - count % step}; i += {step}) {{",
            *(INDENT + line for line in (
                "uint32_t a = words[i / 4], b = words[i / 4 + 1];", '__asm__ volatile("" : "+r"(a), "+r"(b));',
                *lines, f'__asm__ volatile("" : {held});', stores)), "}",
            f"for (; i < {count}; i += {_PAIR}) {{",
            f"{INDENT}const {kind} *const p = pairs + 2 * ({_MOST} + in0[i] - in0[i + 1]);",
            f"{INDENT}out[i] = p[0], out[i + 1] = p[1];", "}"]


def _pairs_by_bytes(call: Call, rows: Rows) -> list[str]:
    source, kind = call.inputs[0], ctype(call.output.dtype)
    places = [[str(k) if rows.dims[axis] == _PAIR else "0" for axis in rows.along] for k in range(_PAIR)]

    def row(indices: list[str]) -> list[str]:
        first, second = (rows.element("in0", source, indices, each) for each in places)
        return [f"const int32_t x = {first}, y = {second};",
                f"const {kind} *const p = pairs + 2 * ({_MOST} + x - y);",
                *(f"{rows.element('out', call.output, indices, each)} = p[{k}];" for k, each in enumerate(places))]

    return rows.each_row(row, unrolled=_STEP)


def pairs_cycles(call: Call, rows: Rows, memory: MemoryTiming) -> int:
    """Return the cycles of the lines of :func:`c_pairs`."""
    if not pairs_by_words(call, rows):
        return START + rows.count * (_BYTES_WORK + 2 * access_cycles(memory, 2))
    steps, rest = divmod(rows.count, _STEP)
    step = _STEP * _PAIR_WORK + (1 + _STEP) * access_cycles(memory, 2)
    return START + steps * step + rest * (_BYTES_WORK + 2 * access_cycles(memory, 2))
