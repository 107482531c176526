"""Levels of 8 bits less a zero point of run time, nine bits, as two int8 halves of which the second is subtracted.

    q - z = a - b        a = clamp(q - z, -128, 127), b = a - (q - z), both int8 for all q and z

Products of weights w with q - z are those of w with a and of -w with b. Group by group of channels, the halves a of a
group stand before its halves b.
"""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Refused, at_most, attribute, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["HALVES_OF_LEVELS", "HalvesOfLevels"]

_WORK = 10
"""Cycles of a level besides its loop and accesses: two bounds, two differences, two addresses."""


class HalvesOfLevels(CheckedKernel):
    """Channels of uint8 less a number become twice as many of int8; attribute ``group`` counts their groups.

    Channels are axis 1 of images, and else the last.
    """

    op = "HalvesOfLevels"
    limits = "a uint8 tensor and one uint8 number"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 2)
        x, zero = (required(call, position, ("uint8",)) for position in range(2))
        if math.prod(zero.dims) != 1 or not x.dims:
            raise Refused(f"{self.op} must have a tensor and one number, not {x.dims!r} and {zero.dims!r}")
        axis, groups, each = self._groups(call)
        if groups < 1 or groups * each != x.dims[axis]:
            raise Refused(f"{self.op} must have groups of as many channels, not {groups} of {x.dims[axis]} channels")
        return "int8", (*x.dims[:axis], 2 * x.dims[axis], *x.dims[axis + 1:])

    @staticmethod
    def _groups(call: Call) -> tuple[int, int, int]:
        """Return the axis of channels, the groups, and the channels of a group."""
        dims, groups = call.inputs[0].dims, int(attribute(call, "group", 1))
        axis = 1 if len(dims) == 4 else len(dims) - 1
        return axis, groups, dims[axis] // max(1, groups)

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        x, zero = arrays
        assert x is not None
        assert zero is not None
        axis, groups, each = self._groups(call)
        whole = x.astype(np.int16) - zero.astype(np.int16).reshape(())
        first = np.clip(whole, -128, 127)
        split = [each_half.reshape(*x.shape[:axis], groups, 1, each, *x.shape[axis + 1:])
                 for each_half in (first, first - whole)]
        return np.concatenate(split, axis=axis + 1).astype(np.int8).reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        del function
        x, out = call.inputs[0], call.output
        axis, groups, each = self._groups(call)
        dims = (*x.dims[:axis], groups, each, *x.dims[axis + 1:])

        def strides(own: Dims, group: int) -> Dims:
            return (*own[:axis], group * own[axis], own[axis], *own[axis + 1:])

        def one(places: list[str]) -> list[str]:
            source = offset_text(0, strides(x.strides, each), places)
            first, second = (offset_text(half * each * out.strides[axis], strides(out.strides, 2 * each), places)
                             for half in range(2))
            return [f"const int32_t whole = in0[{source}] - zero;",
                    "const int32_t half = whole < -128 ? -128 : whole > 127 ? 127 : whole;",
                    f"out[{first}] = (int8_t)half;", f"out[{second}] = (int8_t)(half - whole);"]

        return ["const int32_t zero = in1[0];", *loops(dims, one)]

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        return START + call.inputs[0].elements * (LOOP + _WORK + access_cycles(memory, 1, 2))


HALVES_OF_LEVELS = HalvesOfLevels()
