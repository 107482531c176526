"""Any function of two tensors of int8: a table of its 65,536 values in main memory."""

from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Refused, at_most, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["PAIR_LOOK_UP", "PairLookUp"]

_VALUES = 256
_WORK = 8
"""Cycles of an element besides its loop and accesses: the index of its entry."""


class PairLookUp(CheckedKernel):
    """Elements ``a`` and ``b`` become entry (128 + a, 128 + b) of the third input, int8 of shape (256, 256)."""

    op = "PairLookUp"
    limits = "two int8 tensors of the same shape, and a table of 256 by 256 int8"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 3)
        a, b, table = (required(call, position, ("int8",)) for position in range(3))
        if a.dims != b.dims:
            raise Refused(f"{self.op} must have two tensors of the same shape, not {a.dims!r} and {b.dims!r}")
        if table.dims != (_VALUES, _VALUES):
            raise Refused(f"{self.op} must have a table of {_VALUES} by {_VALUES}, not {table.dims!r}")
        return "int8", a.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        del call
        a, b, table = arrays
        assert a is not None
        assert b is not None
        assert table is not None
        return np.asarray(table[a.astype(np.int16) + 128, b.astype(np.int16) + 128])

    def c_body(self, call: Call, function: str) -> list[str]:
        del function
        a, b = call.inputs[:2]

        def one(places: list[str]) -> list[str]:
            own, other = (f"in{number}[{offset_text(0, each.strides, places)}]" for number, each in enumerate((a, b)))
            target = f"out[{offset_text(0, call.output.strides, places)}]"
            return [f"{target} = in2[({own} + 128) * {_VALUES} + {other} + 128];"]

        return loops(call.output.dims, one)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        # The entry's load waits for those of the operands.
        element = LOOP + _WORK + access_cycles(memory, 2) + access_cycles(memory, 1, 1)
        return START + call.output.elements * element


PAIR_LOOK_UP = PairLookUp()
