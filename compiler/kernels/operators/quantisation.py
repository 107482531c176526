"""From float32 to integers and back: QuantizeLinear and DequantizeLinear, per tensor or per axis.

    quantise      clamp(rne(x / scale) + zero_point)        a true division, halves to even
    dequantise    (q - zero_point) * scale

as ONNX Runtime's MLAS does it: it bounds the quotient before it rounds it, which gives the same.
"""

import numpy as np

from tilewright.compiler.kernels.language.checked import Refused, attribute, axis_of
from tilewright.compiler.kernels.language.expression import Expression, constant, where
from tilewright.compiler.kernels.operators.elementwise import ElementwisePerChannel
from tilewright.isa.program import Call

__all__ = ["KERNELS", "QUANTISED", "PerAxis", "round_to_integer", "saturate"]

QUANTISED = ("int8", "uint8", "int16", "uint16")
_ONNX_QUANTISED = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16"}

_ROUNDING = 12582912.0
"""1.5 * 2**23: adding it to a float32 of up to 2**22 rounds that to an integer, which the lower bits then hold."""

_ROUNDING_BITS = 0x4B400000


def round_to_integer(x: Expression) -> Expression:
    """Return the nearest int32 of a float32 of at most 2**22 in size, halves to even."""
    return (x + _ROUNDING).view("int32") - _ROUNDING_BITS


def saturate(x: Expression, zero_point: Expression, dtype: str) -> Expression:
    """Return clamp(rne(x) + zero_point) as ``dtype`` of float32 ``x`` and int32 ``zero_point``; of NaN the lowest."""
    bounds = np.iinfo(dtype)
    low, high = ((constant(bound, "int32") - zero_point).cast("float32") for bound in (bounds.min, bounds.max))
    bounded = where(x > low, where(x < high, x, high), low)
    return (round_to_integer(bounded) + zero_point).cast(dtype)


def _zero(zero_point: Expression | None) -> Expression:
    return constant(0, "int32") if zero_point is None else zero_point.cast("int32")


def _quantise(call: Call, x: Expression, scale: Expression, zero_point: Expression | None = None) -> Expression:
    _no_blocks(call)
    code = attribute(call, "output_dtype", 0)
    dtype = zero_point.dtype if zero_point is not None else _ONNX_QUANTISED.get(code, "uint8" if code == 0 else "")
    if dtype not in QUANTISED:
        raise Refused(f"QuantizeLinear goes to {' '.join(QUANTISED)}, not to ONNX's type {code!r}")
    return saturate((x / scale).named("quotient"), _zero(zero_point), dtype)


def _dequantise(call: Call, x: Expression, scale: Expression, zero_point: Expression | None = None) -> Expression:
    _no_blocks(call)
    return (x.cast("int32") - _zero(zero_point)).cast("float32") * scale


def _no_blocks(call: Call) -> None:
    if attribute(call, "block_size", 0):
        raise Refused(f"{call.kernel} takes a scale per tensor or per axis, not one per block_size "
                      f"{call.attrs['block_size']!r}")


class PerAxis(ElementwisePerChannel):
    """Quantisation with a scale per tensor, or one for each index along an axis."""

    def axis(self, call: Call, position: int) -> int | None:
        if position == 0 or call.inputs[position].dims in ((), (1,)):
            return None
        return axis_of(attribute(call, "axis", 1), len(call.inputs[0].dims))


KERNELS = (
    PerAxis("QuantizeLinear", _quantise, [("float32",), ("float32",), QUANTISED], inputs=(2, 3), same=False,
            limits="float32 to int8 uint8 int16 uint16, per tensor or per axis"),
    PerAxis("DequantizeLinear", _dequantise, [(*QUANTISED, "int32"), ("float32",), (*QUANTISED, "int32")],
            inputs=(2, 3), same=False, limits="int8 uint8 int16 uint16 int32 to float32, per tensor or per axis"),
)
