"""Count the multiply-accumulates of an operator on the host core: only convolutions and matrix products have any."""

import math
from collections.abc import Sequence

__all__ = ["macs_of"]

_Dims = tuple[int, ...]

_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "QLinearConv": 3}
"""Position of the weights among a convolution's inputs; (O, C / groups, ..), transposed (C, O / groups, ..)."""

_PRODUCTS = ("MatMul", "MatMulInteger", "QLinearMatMul")


def macs_of(op: str, inputs: Sequence[_Dims | None], output: _Dims) -> int:
    """Return the multiply-accumulates of the ONNX operator, zeros of the padding included; 0 for most.

    Parameters
    ----------
    inputs : sequence of tuple of int or None
        Dims of its inputs, as far as they are known.
    output : tuple of int
    """
    first = inputs[0] if inputs else None
    if first is None or not output:
        return 0
    if op in _WEIGHTS:
        weights = inputs[_WEIGHTS[op]]
        return math.prod(first if op == "ConvTranspose" else output) * math.prod((weights or (0, 0))[1:])
    if op in _PRODUCTS:
        return math.prod(output) * first[-1]
    # Gemm's first factor may be transposed: it has K columns or rows, and the result's rows in the other direction.
    return output[-1] * math.prod(first) if op == "Gemm" else 0
