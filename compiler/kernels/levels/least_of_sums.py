"""The least HardSwish of scaled sums: floats of those next to where the function is least, -1.5, and of no others.

HardSwish(x) is ((x + 1.5)² - 2.25) / 6 from -3 to 3 and nowhere else below 0. So the least is that of the x next to
-1.5, but for what floats round: that is below 3e-7, and two x whose distances from there differ by `_SLACK` are further
apart. In a channel x grows with its sum; so distances are told in sums, a whole number each.
"""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_lines
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import INDENT, Dims, broadcast_strides, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Refused, at_most, operand, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, evaluate, variable
from tilewright.compiler.kernels.language.float_functions import hard_swish
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = ["LEAST_OF_SUMS", "LeastOfSums"]

_SLACK = 0.004
_MOST_BIAS = 512
"""Of a channel whose sums are told apart so: x is then right to 2^-14, which moves HardSwish by less than the slack."""

_WORK, _CHANNEL, _EVALUATED = 8, 420, 10
"""Cycles of an element that is no candidate, and of a channel; candidates besides one in 500."""


class LeastOfSums(CheckedKernel):
    """Inputs: int32 sums, their float32 factor, perhaps a float32 bias. The result is 0 if nothing is below that.

    Channels are axis 1 of images, and else the last; factor and bias are one number, or one per channel.
    """

    op = "LeastOfSums"
    limits = "int32 sums, a factor and a bias of one number or one per channel"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 3)
        dims = required(call, 0, ("int32",)).dims
        for position in range(1, 3):
            if position == 1 or operand(call, position) is not None:
                found = required(call, position, ("float32",))
                axis = _axis(dims)
                wanted = dims[axis] if dims else 1
                if math.prod(found.dims) not in (1, wanted) or len(found.dims) > len(dims) or (
                        math.prod(found.dims) > 1 and found.dims[axis - len(dims)] != wanted):
                    raise Refused(f"{self.op} must have one number or one per channel, not {found.dims!r}")
        if not dims or math.prod(call.output.dims) != 1:
            raise Refused(f"{self.op} must have one result, not {call.output.dims!r}")
        return "float32", call.output.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        sums, factor, bias = (*arrays, None)[:3]
        values = {"x": sums, "s": factor} if bias is None else {"x": sums, "s": factor, "b": bias}
        real = np.asarray(evaluate(_formula(bias is not None), values))
        return np.where(real < 0, real, np.float32(0)).min(initial=0).astype(np.float32).reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        rows, biased = self._rows(call), operand(call, 2) is not None
        lines, text = c_lines(_formula(biased))

        def channel(indices: list[str]) -> list[str]:
            again = ["nearest = 0x3fffffff;"] if math.prod(call.inputs[1].dims) > 1 else []
            return [*again, f"const float s = in1[{self._place(call, 1, indices[-1])}];",
                    f"const float b = {f'in2[{self._place(call, 2, indices[-1])}]' if biased else '0.0f'};",
                    f"const float middle = (-1.5f - b) / s, slack = {_SLACK}f / s;",
                    "int32_t centre = 0, margin = 0x3fffffff, reach = 0x3fffffff;",
                    f"if (b > -{_MOST_BIAS}.0f && b < {_MOST_BIAS}.0f && slack > 0.0f && slack < 65536.0f &&",
                    "        middle > -268435456.0f && middle < 268435456.0f) {",
                    f"{INDENT}centre = (int32_t)middle;",
                    f"{INDENT}margin = (int32_t)slack + 4 + ((centre < 0 ? -centre : centre) >> 20);",
                    f"{INDENT}reach = (int32_t)(slack * 400.0f) + margin;",
                    f"{INDENT}reach = nearest + margin < reach ? nearest + margin : reach;", "}",
                    *rows.each_element(lambda inner: element(indices, inner))]

        def element(indices: list[str], inner: list[str]) -> list[str]:
            return [f"const int32_t x = {rows.element('in0', call.inputs[0], indices, inner)};",
                    "const int32_t away = x < centre ? centre - x : x - centre;", "if (away <= reach) {",
                    *(INDENT + line for line in lines), f"{INDENT}const float real = {text};",
                    f"{INDENT}best = real < best ? real : best;",
                    f"{INDENT}nearest = away < nearest ? away : nearest;",
                    f"{INDENT}reach = nearest + margin < reach ? nearest + margin : reach;", "}"]

        return ["float best = 0.0f;", "int32_t nearest = 0x3fffffff;", *rows.each_row(channel), "out[0] = best;"]

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(_formula(operand(call, 2) is not None))

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows, one = self._rows(call), expression_cycles(_formula(operand(call, 2) is not None))
        elements = rows.count * rows.length
        scales = rows.count if math.prod(call.inputs[1].dims) > 1 else 1
        return START + int(elements * (LOOP + access_cycles(memory) + _WORK + one / 500) + rows.count * _CHANNEL
                           + scales * _EVALUATED * one)

    @staticmethod
    def _rows(call: Call) -> Rows:
        dims = call.inputs[0].dims
        return Rows(dims, tuple(axis for axis in range(len(dims)) if axis != _axis(dims)))

    @staticmethod
    def _place(call: Call, position: int, channel: str) -> str:
        found: Operand = call.inputs[position]
        steps = broadcast_strides(found.dims, found.strides, call.inputs[0].dims)
        return offset_text(0, (steps[_axis(call.inputs[0].dims)],), (channel,))


def _axis(dims: Dims) -> int:
    return 1 if len(dims) == 4 else len(dims) - 1


def _formula(biased: bool) -> Expression:
    scaled = variable("x", "int32").cast("float32") * variable("s", "float32")
    return hard_swish(scaled + variable("b", "float32") if biased else scaled)


LEAST_OF_SUMS = LeastOfSums()
