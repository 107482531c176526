"""Sums of products in three arithmetics: float32, integers minus their zero points, and these requantised to 8 bits.

float         total = start + Σ x * w                                    float32, in order
integer       total = start + Σ (x - x_zero) * (w - w_zero)              int32, wraps around
quantised     clamp(rne(total * (x_scale * w_scale / y_scale)) + y_zero) float32, as ONNX Runtime's MLAS does it

QLinearMul, the product of two quantised tensors element by element, is rounded once, as MLAS does it on x86:

    y = clamp(rne(fl32(fl32((a - a_zero) (b - b_zero)) · fl32(fl32(a_scale · b_scale) / y_scale) + y_zero)))

The product of the integers is exact. Found by comparison: it gives all of 32.8 million results of random scales and
zero points; rounding before the zero point is added differs in 145 of them, one fused multiply-add in 31.
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_lines, ctype
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import offset_text
from tilewright.compiler.kernels.language.checked import Refused, optional, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, ROW, SINGLE, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, constant, evaluate, variable, where
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.compiler.kernels.operators.quantisation import round_to_integer, saturate
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["FLOAT", "INTEGER", "QLINEAR_MUL", "QUANTISED", "SCALES_AND_ZEROS", "Products"]

_QUICKER = 7
"""Cycles that a product and its addition to a sum take less than those of any numbers."""

_BYTES = ("int8", "uint8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """Positions of an operator's operands among its inputs; None for those that its arithmetic lacks."""

    x: int
    w: int
    x_zero: int | None = None
    w_zero: int | None = None
    x_scale: int | None = None
    w_scale: int | None = None
    y_scale: int | None = None
    y_zero: int | None = None

    @property
    def floats(self) -> bool:
        """Whether the operands are float32."""
        return self.x_zero is None

    @property
    def total(self) -> str:
        """The dtype of the sums."""
        return "float32" if self.floats else "int32"

    def output(self, call: Call) -> str:
        """Return the dtype of the result.

        Raises
        ------
        Refused
            If an operand has the wrong dtype, or is no scalar where it must be one.
        """
        for position in (self.x, self.w):
            required(call, position, ("float32",) if self.floats else _BYTES)
        for zero, twin in ((self.x_zero, self.x), (self.w_zero, self.w)):
            if zero is not None:
                optional(call, zero, (call.inputs[twin].dtype,))
        for scale in (self.x_scale, self.w_scale, self.y_scale):
            if scale is not None:
                required(call, scale, ("float32",))
        for single in (self.x_zero, self.x_scale, self.y_scale, self.y_zero):
            if single is not None and single < len(call.inputs) and math.prod(call.inputs[single].dims) != 1:
                raise Refused(f"{call.kernel} must have one number as input {single}, not {call.inputs[single].dims!r}")
        return self.total if self.y_zero is None else required(call, self.y_zero, _BYTES).dtype

    def per_channel(self, call: Call, channels: int) -> None:
        """Refuse scales and zero points of the weights that are neither one nor one per channel."""
        for position in (self.w_zero, self.w_scale):
            if position is not None and position < len(call.inputs) and call.inputs[position].dtype:
                dims = call.inputs[position].dims
                if math.prod(dims) != 1 and dims != (channels,):
                    raise Refused(f"{call.kernel} must have one or {channels} numbers as input {position}, "
                                  f"not {dims!r}")

    # NumPy -------------------------------------------------------------------------------------------------------

    def operand(self, arrays: "list[np.ndarray | None]", position: int, zero: int | None,
                shape: tuple[int, ...] = ()) -> np.ndarray:
        """Return an operand of the products: less its zero point, which is reshaped to ``shape`` if it is a vector."""
        array = arrays[position]
        assert array is not None
        if self.floats:
            return array
        zeros = arrays[zero] if zero is not None and zero < len(arrays) else None
        if zeros is None:
            return array.astype(np.int32)
        return array.astype(np.int32) - zeros.astype(np.int32).reshape(shape if zeros.size > 1 else ())

    def finished(self, call: Call, total: np.ndarray, arrays: "list[np.ndarray | None]",
                 shape: tuple[int, ...]) -> np.ndarray:
        """Return the result from the sums; scales per channel are reshaped to ``shape``."""
        if self.y_zero is None:
            return total
        x_scale, w_scale, y_scale, y_zero = (np.asarray(arrays[position or 0]) for position in
                                             (self.x_scale, self.w_scale, self.y_scale, self.y_zero))
        scale = x_scale.reshape(()) * w_scale.reshape(shape if w_scale.size > 1 else ()) / y_scale.reshape(())
        values = {"total": total, "scale": scale, "y_zero": y_zero.astype(np.int32).reshape(())}
        return np.asarray(evaluate(self._finish(call), values))

    # C -----------------------------------------------------------------------------------------------------------

    def before(self, call: Call, channel: str) -> list[str]:
        """Return declarations for the channel with index ``channel``: zero points and the scale."""
        lines = []
        for name, position in (("x_zero", self.x_zero), ("w_zero", self.w_zero), ("y_zero", self.y_zero)):
            if position is not None and self._present(call, position):
                lines.append(f"const int32_t {name} = {self._number(call, position, channel)};")
        if self.y_zero is not None:
            x, w, y = (self._number(call, position or 0, channel) for position in
                       (self.x_scale, self.w_scale, self.y_scale))
            lines.append(f"const float scale = {x} * {w} / {y};")
        return lines

    def step(self, call: Call, x: str, w: str) -> str:
        """Return the statement that adds a product to ``total``."""
        if self.floats:
            return f"total = total + {x} * {w};"
        left = f"({x} - x_zero)" if self.x_zero is not None and self._present(call, self.x_zero) else x
        right = f"({w} - w_zero)" if self.w_zero is not None and self._present(call, self.w_zero) else w
        return f"total = total + {left} * {right};"

    def after(self, call: Call) -> tuple[list[str], str]:
        """Return declarations, and the C text of the result."""
        return ([], "total") if self.y_zero is None else c_lines(self._finish(call))

    def helpers(self, call: Call) -> tuple[str, ...]:
        """Return the C functions that :meth:`after` needs."""
        return () if self.y_zero is None else helper_names(self._finish(call))

    def start(self, bias: str | None) -> str:
        """Return the declaration of ``total``."""
        return f"{ctype(self.total)} total = {bias or ('0.0f' if self.floats else '0')};"

    def step_cycles(self, memory: MemoryTiming) -> int:
        """Return the cycles of a product and its addition."""
        arithmetic = SINGLE["multiply"] + SINGLE["add"] - _QUICKER if self.floats else 2
        return LOOP + access_cycles(memory, 2) + arithmetic

    def after_cycles(self, call: Call, memory: MemoryTiming) -> int:
        """Return the cycles of an output apart from its products."""
        finish = 0 if self.y_zero is None else expression_cycles(self._finish(call))
        return int(ROW + access_cycles(memory, 1, 1) + finish)

    def _finish(self, call: Call) -> Expression:
        total, scale, zero = variable("total", "int32"), variable("scale", "float32"), variable("y_zero", "int32")
        return saturate((total.cast("float32") * scale).named("scaled"), zero, call.output.dtype)

    @staticmethod
    def _present(call: Call, position: int) -> bool:
        return position < len(call.inputs) and bool(call.inputs[position].dtype)

    @staticmethod
    def _number(call: Call, position: int, channel: str) -> str:
        operand = call.inputs[position]
        if math.prod(operand.dims) == 1 or channel == "0":
            return f"in{position}[0]"
        return f"in{position}[{offset_text(0, operand.strides, (channel,))}]"


FLOAT = Products(x=0, w=1)
INTEGER = Products(x=0, w=1, x_zero=2, w_zero=3)
QUANTISED = Products(x=0, w=3, x_zero=2, w_zero=5, x_scale=1, w_scale=4, y_scale=6, y_zero=7)

SCALES_AND_ZEROS = {1: "a_scale", 2: "a_zero_point", 4: "b_scale", 5: "b_zero_point", 6: "y_scale", 7: "y_zero_point"}
"""Inputs of QLinearMul that must be constants. Attribute ``unsigned``: tensors and zero points are the model's less
128."""


def _constant_number(call: Call, name: str) -> float:
    value = call.attrs.get(name)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, (int, float)):
        raise Refused(f"QLinearMul must have one constant number as {name}, not {value!r}")
    return value


def _product(call: Call, a: Expression, _a: None, _z: None, b: Expression | None = None, *_: object) -> Expression:
    if b is None or a.dtype != b.dtype:
        raise Refused("QLinearMul must have two tensors of the same type")
    shift = 128 if call.attrs.get("unsigned", 0) else 0
    a_scale, b_scale, y_scale = (np.float32(_constant_number(call, f"{name}_scale")) for name in "aby")
    a_zero, b_zero, y_zero = (int(_constant_number(call, f"{name}_zero_point")) for name in "aby")
    ratio = float(np.float32(np.float32(a_scale * b_scale) / y_scale))
    product = (a.cast("int32") - a_zero) * (b.cast("int32") - b_zero)
    level = product.cast("float32") * ratio + float(y_zero + shift)
    bounds = np.iinfo(a.dtype)
    low, high = (constant(float(bound + shift), "float32") for bound in (bounds.min, bounds.max))
    bounded = where(level > low, where(level < high, level, high), low)
    return (round_to_integer(bounded) - shift).cast(a.dtype)


QLINEAR_MUL = Elementwise(
    "QLinearMul", _product, [("int8", "uint8")], inputs=(1, 8),
    limits="int8 uint8, both operands and the result of the same type; constant scales and zero points")
QLINEAR_MUL.parameters = SCALES_AND_ZEROS
