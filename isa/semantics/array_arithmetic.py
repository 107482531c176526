"""The arithmetic of isa/numerics.py and isa/integers on whole arrays; tests compare the two element by element."""

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tilewright.isa.integers import long_requantise as long
from tilewright.isa.integers.shift_requantise import parameters_of_words

__all__ = ["EXACT_TERMS", "add_residual", "correlate", "dot", "long_requantise", "requantise", "shift_requantise"]

EXACT_TERMS = 1023
"""Terms of |int8 * int8| whose float32 sum is exact: 1023 * 2**14 < 2**24."""


def dot(x: NDArray[np.int8], weights: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the exact product (n, m) of int8 values (n, k) and (k, m), the latter given as float32."""
    total = np.zeros((x.shape[0], weights.shape[1]), np.int32)
    for first in range(0, x.shape[1], EXACT_TERMS):
        part = slice(first, first + EXACT_TERMS)
        total += (x[:, part].astype(np.float32) @ weights[part]).astype(np.int32)
    return total


def correlate(x: NDArray[np.int8], weights: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the exact 3x3 stride-1 correlation (h - 2, w - 2, m) of int8 (h, w, c) and (3, 3, c, m) as float32."""
    h, w, c = x.shape
    patches = sliding_window_view(x, (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2)      # (h - 2, w - 2, 3, 3, c)
    return dot(patches.reshape(-1, 9 * c), weights.reshape(9 * c, -1)).reshape(h - 2, w - 2, -1)


def requantise(sums: NDArray[np.int32], bias: NDArray[np.int32], scale: NDArray[np.float32] | np.float32,
               zero_point: int, low: int, high: int) -> NDArray[np.int8]:
    """Return ``isa.numerics.requantise`` of (..., channels) sums with (channels,) bias and scale, or one scale."""
    with np.errstate(over="ignore"):
        acc = sums + bias
    scaled = np.rint(acc.astype(np.float32) * scale)
    # Clamped before the zero point is added, so that huge values stay exact integers.
    return np.clip(np.clip(scaled, -1024, 1024) + zero_point, low, high).astype(np.int8)


def shift_requantise(sums: NDArray[np.int32], words: NDArray[np.uint64], shift: int, zero_point: int, low: int,
                     high: int) -> NDArray[np.int8]:
    """Return ``isa.integers.shift_requantise`` of (..., channels) sums with (channels,) words of parameters."""
    bias, multiplier, addend = parameters_of_words(words)
    with np.errstate(over="ignore"):
        acc = sums + bias
    scaled = acc.astype(np.int64) * multiplier + addend >> shift
    return np.clip(scaled + zero_point, low, high).astype(np.int8)


def long_requantise(sums: NDArray[np.int32], words: NDArray[np.uint64], zero_point: int, low: int, high: int, *,
                    twice: bool) -> NDArray[np.int8]:
    """Return ``isa.integers.long_requantise`` of (..., channels) sums with (channels,) words of parameters."""
    bias, multiplier, shift = long.parameters_of_words(words)
    with np.errstate(over="ignore"):
        acc = sums + bias
    # Clamped before the zero point is added: a quotient may have any of 63 bits.
    scaled = np.clip(long.long_levels(acc, multiplier, shift, twice=twice), -1024, 1024)
    return np.clip(scaled + zero_point, low, high).astype(np.int8)


def add_residual(own: NDArray[np.int8], residual: NDArray[np.int8], config: Mapping[str, int]) -> NDArray[np.int8]:
    """Return ``isa.numerics.add_residual`` with the operand fields of act.set_residual_* as ``config``.

    A fused multiply-add rounds once: a product of 8 by 24 bits and a sum with a float32 within 2**20 of it are exact
    in float64, whose rounding to float32 is then the only one; what is further apart does not matter after rounding
    to an integer below 2**10 (held by a test).
    """
    first, second = (residual, own) if config["own_second"] else (own, residual)
    ratio_a, ratio_b = (float(np.ldexp(float(config[f"mantissa_{x}"]), -config[f"shift_{x}"])) for x in "ab")
    offset = float(np.ldexp(float(config["offset_mantissa"]), -config["offset_shift"]))
    offset = -offset if config["offset_negative"] else offset
    bias = 128 if config["unsigned"] else 0
    partial = ((second.astype(np.float64) + bias) * ratio_b + offset).astype(np.float32)
    total = ((first.astype(np.float64) + bias) * ratio_a + partial).astype(np.float32)
    return np.clip(np.clip(np.rint(total), -1024, 1024) - bias,
                   config["residual_low"], config["residual_high"]).astype(np.int8)
