"""Whole arrays against isa.numerics element by element."""

import numpy as np
import pytest

from tilewright.isa import numerics
from tilewright.isa.semantics.array_arithmetic import EXACT_TERMS, add_residual, correlate, dot, requantise

INT32 = 2**31


def scale(mantissa: int, shift: int) -> np.float32:
    return np.float32(np.ldexp(float(mantissa), -shift))


@pytest.mark.parametrize("terms", [1, EXACT_TERMS, EXACT_TERMS + 1, 5000])
def test_dot_is_exact_for_the_largest_values(terms):
    x = np.full((2, terms), -128, np.int8)
    x[1, ::2] = 127
    weights = np.full((terms, 3), -128, np.int8)
    weights[:, 1] = 127
    expected = x.astype(np.int64) @ weights.astype(np.int64)
    np.testing.assert_array_equal(dot(x, weights.astype(np.float32)), expected)


def test_correlate_is_the_sum_of_nine_products():
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (7, 6, 5)).astype(np.int8)
    weights = rng.integers(-128, 128, (3, 3, 5, 4)).astype(np.int8)
    expected = sum(x[ky:ky + 5, kx:kx + 4].astype(np.int64) @ weights[ky, kx].astype(np.int64)
                   for ky in range(3) for kx in range(3))
    np.testing.assert_array_equal(correlate(x, weights.astype(np.float32)), expected)


@pytest.mark.parametrize(("zero_point", "low", "high"),
                         [(0, -128, 127), (-128, -128, 127), (5, 5, 100), (127, -3, 127)])
def test_requantise_equals_numerics(zero_point, low, high):
    rng = np.random.default_rng(zero_point & 0xFF)
    count = 4000
    # Sums of every magnitude, and sums that wrap with their bias.
    sums = (rng.integers(-INT32, INT32, count) >> rng.integers(0, 32, count)).astype(np.int32)
    sums[:4] = [INT32 - 1, -INT32, 0, -1]
    bias = (rng.integers(-INT32, INT32, count) >> rng.integers(0, 32, count)).astype(np.int32)
    mantissas = rng.integers(1 << 23, 1 << 24, count)
    shifts = rng.integers(0, 60, count)
    # Halves: a power of two as scale, so that ties are common.
    mantissas[:500], shifts[:500], bias[:500] = 1 << 23, rng.integers(24, 30, 500), 0
    scales = np.array([scale(m, s) for m, s in zip(mantissas.tolist(), shifts.tolist(), strict=True)], np.float32)
    found = requantise(sums[None], bias, scales, zero_point, low, high)[0]
    expected = [numerics.requantise(a, bias=b, mantissa=m, shift=s, zero_point=zero_point, low=low, high=high)
                for a, b, m, s in zip(sums.tolist(), bias.tolist(), mantissas.tolist(), shifts.tolist(), strict=True)]
    np.testing.assert_array_equal(found, expected)


def residual_settings(rng: np.random.Generator) -> dict[str, int]:
    """Return settings as a model has them: scales of similar size, any zero points."""
    unsigned = int(rng.integers(2))
    zeros = rng.integers(0, 256, 3) if unsigned else rng.integers(-128, 128, 3)
    fields = {"unsigned": unsigned, "own_second": int(rng.integers(2))}
    for name in "ab":
        ratio = np.float32(2.0 ** rng.uniform(-6, 5))
        fields[f"mantissa_{name}"], fields[f"shift_{name}"] = numerics.pack_scale(float(ratio))
    negative, mantissa, shift = numerics.residual_offset(
        mantissa_a=fields["mantissa_a"], shift_a=fields["shift_a"], mantissa_b=fields["mantissa_b"],
        shift_b=fields["shift_b"], zero_a=int(zeros[0]), zero_b=int(zeros[1]), zero_out=int(zeros[2]))
    low, high = sorted(rng.integers(-128, 128, 2).tolist()) if rng.random() < 0.3 else (-128, 127)
    return fields | {"offset_negative": int(negative), "offset_mantissa": mantissa, "offset_shift": shift,
                     "residual_low": low, "residual_high": high}


@pytest.mark.parametrize("seed", range(40))
def test_add_residual_equals_numerics(seed):
    rng = np.random.default_rng(seed)
    fields = residual_settings(rng)
    own, residual = (rng.integers(-128, 128, 600).astype(np.int8) for _ in range(2))
    own[:4], residual[:4] = [-128, -128, 127, 127], [-128, 127, -128, 127]
    found = add_residual(own, residual, fields)
    names = ("mantissa_a", "shift_a", "mantissa_b", "shift_b", "offset_mantissa", "offset_shift")
    first, second = (residual, own) if fields["own_second"] else (own, residual)
    settings = numerics.ResidualSettings(**{name: fields[name] for name in names},
                                         offset_negative=bool(fields["offset_negative"]),
                                         unsigned=bool(fields["unsigned"]),
                                         low=fields["residual_low"], high=fields["residual_high"])
    expected = [numerics.add_residual(a, b, settings)
                for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    np.testing.assert_array_equal(found, expected)
