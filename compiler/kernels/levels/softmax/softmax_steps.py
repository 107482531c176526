"""A softmax in whole numbers, as ONNX's operators of int64 write it.

It is that of TensorFlow Lite's kernels. Terms of 31 bits, by how many levels an element is below its row's largest, are
summed with 12 bits before the point; the reciprocal of the sum, brought to 1 .. 2, comes from three steps of Newton's.
Source: ``Softmax`` in TensorFlow Lite's ``kernels/internal/reference/softmax.h``, ``GetReciprocal`` in
``kernels/internal/common.h``, and gemmlowp's ``one_over_one_plus_x_for_x_in_0_1`` in ``fixedpoint/fixedpoint.h``.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["NEWTON_SLOPE", "NEWTON_START", "integer_softmax"]

Put = Callable[..., Any]
"""A function that adds a node: it takes an ONNX operator and its inputs, which are results of it or whole numbers."""

_ONE, _NUDGE = 1 << 31, 1 << 30
_BITS = (16, 8, 4, 2, 1)
_SHIFT, _SMALLER = 35, 12
"""Shift of a quotient, from which the zeros above the sum are taken; and bits that a term has less in the sum."""

NEWTON_START, NEWTON_SLOPE = 1515870810, 1010580540
"""48 / 17 and 32 / 17 with two bits before the point: where Newton's steps begin."""


def integer_softmax(put: Put, x: Any, terms: Any) -> Any:
    """Add the softmax of levels ``x`` along an axis, which ``put`` knows; return its levels above the least, 0 .. 256.

    Parameters
    ----------
    put : function
        Adds a node; it knows the axis of ReduceMax and ReduceSum and the types of Cast, which are int64.
    x, terms : results of ``put``, or what stands for them
        Levels of 8 bits, and int64 of 256: exponentials of 31 bits by how many levels below the largest.
    """
    wide = put("Cast", x)
    term = put("Gather", terms, put("Sub", put("ReduceMax", wide), wide))
    total = put("ReduceSum", put("Div", put("Add", term, 1 << _SMALLER - 1), 1 << _SMALLER))
    divisor: Any = 1 << _SHIFT
    for bits in _BITS:
        factor = put("Where", put("Less", total, 1 << 32 - bits), 1 << bits, 1)
        total, divisor = put("Mul", total, factor), put("Div", divisor, factor)
    half = put("Div", total, 2)
    near = put("Sub", NEWTON_START, _high(put, put("Mul", half, NEWTON_SLOPE), _NUDGE - 1))
    for _ in range(3):
        wrong = put("Mul", near, put("Sub", 1 << 29, _high(put, put("Mul", half, near), _NUDGE)))
        nudge = put("Where", put("Less", wrong, 0), 1 - _NUDGE, _NUDGE)
        near = put("Add", near, put("Mul", _high(put, wrong, nudge), 4))
    scale = put("Min", put("Mul", near, 2), _ONE - 1)
    product = _high(put, put("Mul", term, scale), _NUDGE)
    return put("Div", put("Add", product, put("Div", divisor, 2)), divisor)


def _high(put: Put, product: Any, nudge: Any) -> Any:
    """Return a product's upper bits: quotients are cut toward zero."""
    return put("Div", put("Add", product, nudge), _ONE)
