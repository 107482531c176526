"""ArgMax and ArgMin along bytes that lie side by side: four elements a word, each compared in the word's upper byte.

An element shifted to the top of a word is above another one whatever is below it, if the other's lower bits are all
ones: so an element takes a shift, and a branch that is hardly ever taken. ArgMin looks for the largest complement.
"""

from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import attribute
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = ["bytes_side_by_side", "position_cycles", "position_lines"]

_BLOCK = 4
"""Words that are loaded one after the other before they are looked at: two accesses are under way at a time."""

_WORD, _BYTE, _BLOCK_START, _ROW, _BETTER, _CALL = 8, 6.4, 3.5, 8, 6, 20
"""Cycles of a word and of a byte, around a block of words, around a row, of a new best element, and of a call.

Fitted to 20 runs in RTL, of rows of 4 to 1,001 random elements, from main memory and from copies; the estimate is
within 7 % of them."""

_WAITED_WORD, _WAITED_BYTE, _WAITED_RESULT = 0.52, 0.98, 0.9
"""Share of main memory's latency that a word in a block, a byte and a result wait for; another word waits all of it."""

_LOW = (1 << 24) - 1


def bytes_side_by_side(call: Call, axis: int) -> bool:
    """Return whether the elements along ``axis`` of a call are bytes next to each other."""
    source = call.inputs[0]
    assert source is not None
    return source.dtype in ("int8", "uint8") and len(source.strides) == len(source.dims) and source.strides[axis] == 1


def _words(source: Operand, rows: Rows) -> int:
    """Return the words that a row begins with; none if rows begin anywhere in a word."""
    aligned = all(number % 4 == 0 for number in (source.address, *(source.strides[axis] for axis in rows.kept
                                                                   if source.dims[axis] > 1)))
    return rows.length // 4 if aligned else 0


def position_lines(call: Call, rows: Rows, better: str) -> list[str]:
    """Return the statements, as `Kernel.c_body` does; ``better`` is ``>`` of ArgMax or ``<`` of ArgMin."""
    source = call.inputs[0]
    assert source is not None
    last = bool(attribute(call, "select_last_index", 0))
    # So that the best element is the greatest as a signed byte.
    flip = (0x80 if source.dtype == "uint8" else 0) ^ (0xFF if better == "<" else 0)
    words = _words(source, rows)
    blocks, single = divmod(words, _BLOCK)

    def look(value: str, index: str) -> list[str]:
        kept = f"{value} & ~{_LOW}" if last else f"{value} | {_LOW}"
        return [f"if (__builtin_expect({value} {'>=' if last else '>'} best, 0)) {{", f"    best = {kept};",
                f"    index = {index};", "}"]

    def word(name: str, at: str) -> list[str]:
        lines = []
        for lane in range(4):
            value = f"(int32_t)({name} << {24 - 8 * lane})" if lane < 3 else f"(int32_t){name}"
            lines += look(value, f"{at} + {lane}")
        return lines

    def load(name: str, at: str) -> str:
        return f"uint32_t {name} = words[{at}]{f' ^ 0x{flip * 0x01010101:08x}u' if flip else ''};"

    def row(indices: list[str]) -> list[str]:
        start = rows.element("in0", source, indices, ["0"])
        lines = [f"const {source.dtype}_t *const from = &{start};",
                 f"int32_t best = {'-2147483647 - 1' if last else _LOW - (1 << 31)};",
                 "int32_t index = 0;"]
        if words:
            lines.append("const uint32_t *const words = (const uint32_t *)(const void *)from;")
        if blocks:
            names = [f"word{each}" for each in range(_BLOCK)]
            inner = [load(name, f"k + {each}") for each, name in enumerate(names)]
            held = ", ".join(f'"+r"({name})' for name in names)
            inner.append(f'__asm__("" : {held}); /* Loads come first. */')
            for each in range(_BLOCK):
                inner += word(f"word{each}", f"4 * k + {4 * each}")
            lines += [f"for (int32_t k = 0; k < {blocks * _BLOCK}; k += {_BLOCK}) {{",
                      *(INDENT + line for line in inner), "}"]
        for each in range(words - single, words):
            lines += ["{", INDENT + load("word", str(each)), *(INDENT + line for line in word("word", str(4 * each))),
                      "}"]
        left = rows.length - 4 * words
        if left:
            value = "(int32_t)((uint32_t)(uint8_t)from[k] << 24)" if not flip else \
                f"(int32_t)((uint32_t)(uint8_t)(from[k] ^ {flip}) << 24)"
            lines += ['_Pragma("clang loop unroll_count(4)")',
                      f"for (int32_t k = {4 * words}; k < {rows.length}; k++) {{", f"    const int32_t x = {value};",
                      *(INDENT + line for line in look("x", "k")), "}"]
        return [*lines, f"{rows.number('out', call.output, indices)} = index;"]

    return rows.each_row(row)


def position_cycles(call: Call, rows: Rows, memory: MemoryTiming) -> int:
    """Return the cycles of the core for elements in random order."""
    source = call.inputs[0]
    assert source is not None
    wait, words = memory.latency_cycles - 1, _words(source, rows)
    left = rows.length - 4 * words
    blocks, single = divmod(words, _BLOCK)
    found = sum(1 / k for k in range(1, min(rows.length, 256) + 1))
    row = (blocks * (_BLOCK * (_WORD + _WAITED_WORD * wait) + _BLOCK_START) + single * (_WORD + wait)
           + left * (_BYTE + _WAITED_BYTE * wait) + found * _BETTER + _ROW + _WAITED_RESULT * wait)
    return _CALL + int(rows.count * row)
