"""What the host core computes itself, as C: one function per call with the tensors as parameters, and shared ones."""

import re
from collections.abc import Iterable, Iterator

from tilewright.compiler.core.c_helpers import helper_text
from tilewright.compiler.core.kernel import CTYPES
from tilewright.compiler.core.registry import KERNELS
from tilewright.isa.program import Call, Function, Operand

INDENT = "    "


def calls_of(function: Function) -> tuple[Call, ...]:
    """Return the calls of a layer's function."""
    return tuple(each for each in function.body if isinstance(each, Call))


def shared_functions(calls: Iterable[Call]) -> list[str]:
    """Return the C functions that the kernels of ``calls`` share, each once."""
    text = helper_text(dict.fromkeys(name for call in calls for name in KERNELS[call.kernel].helpers(call)))
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
    described = ", ".join(describe(operand) for _, operand in present) or "nothing"
    return [f"/* {call.kernel}: {described} -> {describe(call.output)}. */",
            f"static __attribute__((noinline)) void {name}(", f"{INDENT}{', '.join(parameters)})", "{",
            *(INDENT + line if line else "" for line in KERNELS[call.kernel].c_body(call, name)), "}"]


def call_text(call: Call, name: str) -> str:
    """Return the statement that calls the C function ``name`` of ``call`` with its tensors."""
    arguments = [f"(const {CTYPES[each.dtype]} *){each.address:#x}u" for each in call.inputs if each.present]
    arguments.append(f"({CTYPES[call.output.dtype]} *){call.output.address:#x}u")
    return f"{name}({', '.join(arguments)});"


def call_lines(call: Call, name: str) -> list[str]:
    """Return the same, and a fence behind it: memory must have what it wrote before the coprocessor reads that."""
    return [call_text(call, name), '__asm__ volatile("fence" : : : "memory");']


def describe(operand: Operand) -> str:
    """Return type and dims in a word."""
    return f"{operand.dtype} {'x'.join(map(str, operand.dims)) or 'scalar'}"
