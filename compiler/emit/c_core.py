"""Layers of the host core as C: one function per call with the tensors as parameters, and shared ones."""

import re
from collections.abc import Callable, Iterable, Iterator

from tilewright.compiler.kernels.language.c_helpers import helper_text
from tilewright.compiler.kernels.language.kernel import CTYPES
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.kernels.staging import stage_of
from tilewright.isa.program import Call, Function, Operand

__all__ = [
    "call_lines", "call_text", "calls_of", "core_function", "core_functions", "core_name", "shared_functions",
    "stage_lines",
]

_INDENT = "    "


def calls_of(function: Function) -> tuple[Call, ...]:
    """Return the calls of a layer's function."""
    return tuple(each for each in function.body if isinstance(each, Call))


def shared_functions(calls: Iterable[Call]) -> list[str]:
    """Return the C functions that the kernels of ``calls`` share, each once."""
    text = helper_text(dict.fromkeys(name for call in calls for name in CORE_KERNELS[call.kernel].helpers(call)))
    return ["", *text.splitlines()] if text else []


def core_functions(function: Function) -> Iterator[list[str]]:
    """Yield the C functions of the calls in a layer's function."""
    for index, call in enumerate(calls_of(function)):
        yield core_function(call, core_name(function, call, index))


def core_name(function: Function, call: Call, index: int) -> str:
    """Return the name of the C function of a layer's call number ``index``."""
    number = str(index) if index else ""
    return f"{function.name}_{re.sub(r'[^0-9a-z]+', '_', call.kernel.lower())}{number}"


def core_function(call: Call, name: str) -> list[str]:
    """Return the lines of the C function ``name`` that computes ``call`` on the tensors it is given."""
    present = [(f"in{index}", operand) for index, operand in enumerate(call.inputs) if operand.present]
    parameters = [f"const {CTYPES[operand.dtype]} *restrict {each}" for each, operand in present]
    parameters.append(f"{CTYPES[call.output.dtype]} *restrict out")
    described = ", ".join(_describe(operand) for _, operand in present) or "nothing"
    return [f"/* {call.kernel}: {described} -> {_describe(call.output)}. */",
            f"static __attribute__((noinline)) void {name}(", f"{_INDENT}{', '.join(parameters)})", "{",
            *(_INDENT + line if line else "" for line in CORE_KERNELS[call.kernel].c_body(call, name)), "}"]


def _literal(address: int) -> str:
    return f"{address:#x}u"


def call_text(call: Call, name: str, address: Callable[[int], str] | None = None) -> str:
    """Return the statement that calls the C function ``name`` of ``call`` with its tensors in main memory."""
    address = address or _literal
    return _statement(call, name, [address(operand.address) for operand in call.operands])


def call_lines(call: Call, name: str, address: Callable[[int], str] | None = None) -> list[str]:
    """Return the statements that compute ``call``, with copies where it is staged.

    Behind them a fence: memory must have what the core wrote before the coprocessor reads that.
    """
    fence = '__asm__ volatile("fence" : : : "memory");'
    if not call.staged:
        return [call_text(call, name, address), fence]
    address = address or _literal
    places = [f"(stage + {offset // 4})" for offset in stage_of(call).offsets]
    copies = [f"tw_copy({place}, (const uint32_t *){address(operand.address)}, {operand.span_bytes});"
              for place, operand in zip(places[:-1], call.operands[:-1], strict=True)]
    back = f"tw_copy((uint32_t *){address(call.output.address)}, {places[-1]}, {call.output.span_bytes});"
    return [*copies, _statement(call, name, places), back, fence]


def _statement(call: Call, name: str, places: list[str]) -> str:
    const = ["const "] * (len(places) - 1) + [""]
    arguments = [f"({word}{CTYPES[operand.dtype]} *){place}"
                 for word, operand, place in zip(const, call.operands, places, strict=True)]
    return f"{name}({', '.join(arguments)});"


def stage_lines(calls: Iterable[Call]) -> list[str]:
    """Return the memory for copies, as large as the largest of the staged ``calls`` needs, and the copying."""
    size = max((stage_of(call).bytes for call in calls if call.staged), default=0)
    return ["", *_COPY.replace("SIZE", str(size // 4)).splitlines()] if size else []


_COPY = """\
/* Copies of tensors: here an access takes a cycle. */
static uint32_t stage[SIZE] __attribute__((section(".noinit"), aligned(16)));

/* Eight loads first: two of them are under way at a time, and waiting is most of the work. */
static __attribute__((noinline)) void tw_copy(uint32_t *restrict to, const uint32_t *restrict from, uint32_t bytes)
{
    uint32_t words = bytes / 4;
    for (; words >= 8; words -= 8, to += 8, from += 8) {
        uint32_t a = from[0], b = from[1], c = from[2], d = from[3], e = from[4], f = from[5], g = from[6], h = from[7];
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
        to[0] = a, to[1] = b, to[2] = c, to[3] = d, to[4] = e, to[5] = f, to[6] = g, to[7] = h;
    }
    for (; words; words--)
        *to++ = *from++;
    for (uint32_t i = 0; i < bytes % 4; i++)
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
}
"""


def _describe(operand: Operand) -> str:
    """Return type and dims in a word."""
    return f"{operand.dtype} {'x'.join(map(str, operand.dims)) or 'scalar'}"
