"""Look up a float32 for each byte of a run: eight bytes at a time, directly from and to main memory.

The core has two accesses under way if they follow each other at once; so two words are loaded, eight values looked up,
and these stored together. A copy in the core's own memory would cost more than all the rest.
"""

from abc import abstractmethod

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array
from tilewright.compiler.kernels.language.c_loops import merged
from tilewright.compiler.kernels.language.core_cycles import START, access_cycles
from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["FloatTable", "is_run", "look_up_run", "look_up_run_cycles"]

_STEP = 8
"""Bytes of a step: two words."""

_STEP_WORK = 40
"""Cycles of a step besides its accesses, measured in RTL."""


class FloatTable(Kernel):
    """A kernel that looks floats up by bytes; the datapath may do so in its place (compiler/plan)."""

    @abstractmethod
    def float_table(self, call: Call) -> np.ndarray | None:
        """Return the float32 that a run of bytes is looked up in; None if it is not.

        256 by ascending value of a byte; or 511 by the difference of an element of int8 from the other one of its row,
        from -255 on, if each two elements that follow one another are a row.
        """


def is_run(call: Call) -> bool:
    """Tell whether bytes that lie one after the other become floats that do."""
    source, target = call.inputs[0], call.output
    if source.dims != target.dims or source.dtype not in ("int8", "uint8"):
        return False
    dims, steps = merged(target.dims, [target.strides, source.strides])
    return dims == () or (len(dims) == 1 and steps == ((1,), (1,)))


def look_up_run(call: Call, table: np.ndarray) -> list[str]:
    """Return the C; ``table`` has 256 float32 by ascending value."""
    count = call.output.elements
    by_byte = np.roll(table, 128) if call.inputs[0].dtype == "int8" else table
    names = [f"y{k}" for k in range(_STEP)]
    words = [f"const float {name} = table[{'ab'[k // 4]} >> {8 * (k % 4)} & 255];" for k, name in enumerate(names)]
    held = ", ".join(f'"+r"({name})' for name in names)
    stores = " ".join(f"out[i + {k}] = {name};" for k, name in enumerate(names))
    return [*c_array("table", by_byte),
            "typedef uint32_t __attribute__((may_alias)) word;",
            "const word *const words = (const word *)(const void *)in0;",
            "int32_t i = 0;",
            f"for (; i < {count - count % _STEP}; i += {_STEP}) {{",
            "    uint32_t a = words[i / 4], b = words[i / 4 + 1];",
            '    __asm__ volatile("" : "+r"(a), "+r"(b));',
            *(f"    {line.removeprefix('const ')}" for line in words),
            f'    __asm__ volatile("" : {held});',
            f"    {stores}", "}",
            f"for (; i < {count}; i++)",
            "    out[i] = table[(uint8_t)in0[i]];"]


def look_up_run_cycles(call: Call, memory: MemoryTiming) -> int:
    """Return the cycles that this takes on the core."""
    steps, rest = divmod(call.output.elements, _STEP)
    pairs = (_STEP + 2) // 2
    step = _STEP_WORK + pairs * access_cycles(memory, 2)
    return START + steps * step + rest * (_STEP + access_cycles(memory, 1, 1))
