"""Any function of one tensor of 16 bits: a table of its 65,536 values in main memory.

Words lie as two planes of bytes, as the datapath has them (`isa.words.word_planes`), and so does the result; nothing
has to be copied before or behind. Four elements are a step: a word of each plane.
"""

from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_loops import INDENT, Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Refused, at_most, required
from tilewright.compiler.kernels.language.core_cycles import START, access_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["WORD_LOOK_UP", "WordLookUp", "word_table"]

_VALUES = 1 << 16
_STEP = 4
"""Elements of a step."""

_STEP_WORK = 44
"""Cycles of a step besides its accesses: bytes become indices, and entries bytes; counted in the core's code."""

_REST_WORK = 14
"""Cycles of an element by itself."""


def word_table(values: np.ndarray) -> np.ndarray:
    """Return the table, int16 (65,536,), of ``values``, int16 by ascending word.

    Entry and index hold the bits of a byte of each plane, the upper plane's above.
    """
    words = np.arange(-_VALUES // 2, _VALUES // 2)
    return np.asarray(_bits(np.asarray(values)[np.argsort(_bits(words), kind="stable")]), np.uint16).view(np.int16)


def _bits(words: np.ndarray) -> np.ndarray:
    """Return the bits of the planes of words: a lower byte is 128 less than in the word."""
    return (words.astype(np.int32) & 0xFFFF) ^ 0x80


class WordLookUp(CheckedKernel):
    """Words become entries of the second input, a `word_table`; both are int8 (1, C, 2 H, W), the upper plane first."""

    op = "WordLookUp"
    limits = "planes of words as int8, and a table of 65,536 int16"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 2)
        planes, table = required(call, 0, ("int8",)), required(call, 1, ("int16",))
        if len(planes.dims) != 4 or planes.dims[0] != 1 or planes.dims[2] % 2:
            raise Refused(f"{self.op} must have two planes of one image, not {planes.dims!r}")
        if table.dims != (_VALUES,):
            raise Refused(f"{self.op} must have a table of {_VALUES}, not {table.dims!r}")
        return "int8", planes.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        del call
        planes, table = arrays
        assert planes is not None
        assert table is not None
        upper, lower = np.split(planes.view(np.uint8).astype(np.int32), 2, axis=2)
        found = table[upper << 8 | lower].astype(np.int32)
        return np.concatenate([found >> 8, found], axis=2).astype(np.int8)

    def c_body(self, call: Call, function: str) -> list[str]:
        del function
        table = "const uint16_t *const table = (const uint16_t *)(const void *)in1;"
        if not _in_words(call):
            return [table, *_one_by_one(call)]
        count = call.output.elements // 2
        return [
            table,
            "typedef uint32_t __attribute__((may_alias)) word;",
            f"const word *const uppers = (const word *)(const void *)in0, *const lowers = uppers + {count // _STEP};",
            f"word *const out_uppers = (word *)(void *)out, *const out_lowers = out_uppers + {count // _STEP};",
            f"for (int32_t i = 0; i < {count // _STEP}; i++) {{",
            f"{INDENT}uint32_t u = uppers[i], l = lowers[i];",
            f'{INDENT}__asm__ volatile("" : "+r"(u), "+r"(l));',
            f"{INDENT}const uint32_t even = (u & 0xff00ff) << 8 | (l & 0xff00ff);",
            f"{INDENT}const uint32_t odd = (u & 0xff00ff00) | (l >> 8 & 0xff00ff);",
            f"{INDENT}uint32_t a = table[even & 0xffff], b = table[odd & 0xffff];",
            f"{INDENT}uint32_t c = table[even >> 16], d = table[odd >> 16];",
            f'{INDENT}__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));',
            f"{INDENT}const uint32_t p = a | c << 16, q = b | d << 16;",
            f"{INDENT}out_uppers[i] = (p >> 8 & 0xff00ff) | (q & 0xff00ff00);",
            f"{INDENT}out_lowers[i] = (p & 0xff00ff) | (q & 0xff00ff) << 8;", "}"]

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        count = call.output.elements // 2
        steps = count // _STEP if _in_words(call) else 0
        step = _STEP_WORK + access_cycles(memory, 2) + access_cycles(memory, _STEP) + access_cycles(memory, 0, 2)
        rest = _REST_WORK + access_cycles(memory, 2) + access_cycles(memory, 1, 2)
        return START + steps * step + (count - steps * _STEP) * rest


def _one_by_one(call: Call) -> list[str]:
    """Return the loops over the elements of planes that lie anyhow."""
    (_, channels, height, width), steps = call.output.dims, (call.inputs[0].strides, call.output.strides)

    def one(places: list[str]) -> list[str]:
        upper, out = (offset_text(0, each, places) for each in steps)
        lower, out_lower = (offset_text(height // 2 * each[2], each, places) for each in steps)
        return [f"const uint32_t found = table[(uint8_t)in0[{upper}] << 8 | (uint8_t)in0[{lower}]];",
                f"out[{out}] = (int8_t)(found >> 8);", f"out[{out_lower}] = (int8_t)found;"]

    return loops((1, channels, height // 2, width), one)


def _in_words(call: Call) -> bool:
    """Tell whether planes are words of main memory, or of the copies of them, and lie alike without gaps."""
    planes, out = call.inputs[0], call.output
    return (planes.elements // 2 % _STEP == 0 and all(each.address % 4 == 0 for each in (planes, out))
            and planes.strides == out.strides
            and planes.strides[2] * planes.dims[2] == planes.span_bytes == planes.elements)


WORD_LOOK_UP = WordLookUp()
