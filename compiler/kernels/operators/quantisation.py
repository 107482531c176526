"""QuantizeLinear and DequantizeLinear, per tensor or per axis.

    quantise      clamp(rne(x / scale) + zero_point)        a true division, halves to even
    dequantise    (q - zero_point) * scale

as ONNX Runtime's MLAS does it: it bounds the quotient before it rounds it, which gives the same. Where scale and zero
point are constants, integers of 8 bits need no soft float: dequantising is a table of 256, and quantising compares the
float's bits with the smallest that give each level (`levels_by_bits.py`). By one scale that is computed, a quotient in
integers tells the level of all but those next to a half.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.compiler.kernels.language.checked import Refused, attribute, axis_of, operand
from tilewright.compiler.kernels.language.expression import (
    Expression,
    constant,
    evaluate,
    look_up,
    nodes,
    variable,
)
from tilewright.compiler.kernels.language.float_functions import DIVIDED_LEVELS, round_to_integer, saturate
from tilewright.compiler.kernels.language.levels_by_bits import (
    LEVEL_CYCLES,
    RUN_TIME_LEVEL_CYCLES,
    level_at_run_time,
    level_of_bits,
)
from tilewright.compiler.kernels.language.look_up_run import FloatTable, is_run, look_up_run, look_up_run_cycles
from tilewright.compiler.kernels.operators.elementwise import ElementwisePerChannel
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = [
    "KERNELS", "QUANTISED", "Dequantise", "PerAxis", "Quantise", "dequantised_levels", "round_to_integer", "saturate",
]

QUANTISED = ("int8", "uint8", "int16", "uint16")
_BYTES = ("int8", "uint8")
_ONNX_QUANTISED = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16"}

def _zero(zero_point: Expression | None) -> Expression:
    return constant(0, "int32") if zero_point is None else zero_point.cast("int32")


def _quantise(call: Call, x: Expression, scale: Expression, zero_point: Expression | None = None) -> Expression:
    _no_blocks(call)
    code = attribute(call, "output_dtype", 0)
    dtype = zero_point.dtype if zero_point is not None else _ONNX_QUANTISED.get(code, "uint8" if code == 0 else "")
    if dtype not in QUANTISED:
        raise Refused(f"QuantizeLinear goes to {' '.join(QUANTISED)}, not to ONNX's type {code!r}")
    if (known := _constants(call)) is not None and dtype in _BYTES:
        quick = level_of_bits(x, *known, dtype)
        if quick is not None:
            return quick
    if dtype in _BYTES and math.prod(call.inputs[1].dims) == 1:
        zero = _zero(zero_point)
        return level_at_run_time(x, scale, zero, DIVIDED_LEVELS[dtype](x, scale, zero.cast("float32")), dtype)
    return saturate((x / scale).named("quotient"), _zero(zero_point), dtype)


def _dequantise(call: Call, x: Expression, scale: Expression, zero_point: Expression | None = None) -> Expression:
    _no_blocks(call)
    if (known := _constants(call)) is not None and x.dtype in _BYTES:
        return look_up(dequantised_levels(*known, x.dtype), x.cast("int32") - np.iinfo(x.dtype).min)
    return (x.cast("int32") - _zero(zero_point)).cast("float32") * scale


def dequantised_levels(scale: float, zero_point: int, dtype: str) -> np.ndarray:
    """Return the float32 of each value of int8 or uint8 ``dtype``, in ascending order."""
    bounds = np.iinfo(dtype)
    level = variable("level", "int32")
    levels = np.arange(bounds.min, bounds.max + 1, dtype=np.int32)
    return np.asarray(evaluate((level - zero_point).cast("float32") * scale, {"level": levels}))


def _constants(call: Call) -> tuple[float, int] | None:
    """Return scale and zero point of the whole tensor, where both are constants."""
    scale = call.attrs.get("scale_value")
    zero = call.attrs.get("zero_point_value", 0 if operand(call, 2) is None else None)
    scale, zero = (each[0] if isinstance(each, list) and len(each) == 1 else each for each in (scale, zero))
    return (scale, zero) if isinstance(scale, float) and isinstance(zero, int) else None


def _no_blocks(call: Call) -> None:
    if attribute(call, "block_size", 0):
        raise Refused(f"{call.kernel} takes a scale per tensor or per axis, not one per block_size "
                      f"{call.attrs['block_size']!r}")


class PerAxis(ElementwisePerChannel):
    """Quantisation with a scale per tensor, or one for each index along an axis."""

    values: Mapping[int, str] = MappingProxyType({1: "scale_value", 2: "zero_point_value"})

    def axis(self, call: Call, position: int) -> int | None:
        if position == 0 or call.inputs[position].dims in ((), (1,)):
            return None
        return axis_of(attribute(call, "axis", 1), len(call.inputs[0].dims))


class Quantise(PerAxis):
    """float32 to integers."""

    def formula_cycles(self, call: Call, part: Expression) -> float:
        found = {node.op for node in nodes(part)}
        if "look_up" in found:
            return LEVEL_CYCLES
        return RUN_TIME_LEVEL_CYCLES if "call" in found else super().formula_cycles(call, part)


class Dequantise(PerAxis, FloatTable):
    """Integers to float32: of a table, several at a time where they lie one after the other."""

    def c_body(self, call: Call, function: str) -> list[str]:
        table = self.float_table(call)
        return super().c_body(call, function) if table is None else look_up_run(call, table)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        return super().cycles(call, memory) if self.float_table(call) is None else look_up_run_cycles(call, memory)

    def float_table(self, call: Call) -> np.ndarray | None:
        found = self.expression(call)
        return np.array(found.value, np.float32) if found.op == "look_up" and is_run(call) else None


KERNELS = (
    Quantise("QuantizeLinear", _quantise, [("float32",), ("float32",), QUANTISED], inputs=(2, 3), same=False,
             limits="float32 to int8 uint8 int16 uint16, per tensor or per axis"),
    Dequantise("DequantizeLinear", _dequantise, [(*QUANTISED, "int32"), ("float32",), (*QUANTISED, "int32")],
               inputs=(2, 3), same=False, limits="int8 uint8 int16 uint16 int32 to float32, per tensor or per axis"),
)
