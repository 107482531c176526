"""Levels of whole sums by a scale of run time: in integers the floats' own, in NumPy and in C; others are refused."""

import itertools

import numpy as np
import pytest

from tests.support.core_kernels import call_of, run_c, same_bits
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.language.expression import constant, evaluate, variable
from tilewright.compiler.kernels.levels.levels_of_sums import _quick
from tilewright.compiler.kernels.refusal import refusal_of

_SHAPE = (1, 6, 8, 9)


def _drawn(rng, kind, *, biased, bits):
    """Return sums, factor, perhaps bias, scale and zero point of a layer whose levels are mostly within bounds."""
    sums = np.clip(rng.normal(size=_SHAPE) * 2.0**(bits - 3), -2**bits + 1, 2**bits - 1).astype(np.int32)
    factor = np.float32(2.0**rng.uniform(-20, 2))
    scale = np.float32(factor * 2.0**rng.uniform(bits - 14, bits - 6))
    bias = (rng.normal(size=(1, 6, 1, 1)) * scale * 2.0**rng.uniform(0, 12)).astype(np.float32)
    bounds = np.iinfo(kind)
    zero = np.array(rng.integers(bounds.min, bounds.max + 1), kind)
    return [sums, np.array(factor), *([bias] if biased else []), np.array(scale), zero]


def _by_floats(arrays, bends):
    """Return ``quantise(g(sums · factor + bias))`` as ONNX defines its steps, in float32."""
    sums, factor, *bias, scale, zero = arrays
    with np.errstate(all="ignore"):
        real = sums.astype(np.float32) * factor
        for each in bias:
            real = real + each
        if "hard_swish" in bends:
            real = real * np.clip(real * np.float32(1 / 6) + np.float32(.5), np.float32(0), np.float32(1))
        real = np.where(real < 0, real * np.float32(bends.get("alpha", 1)), real)
        real = np.maximum(real, np.float32(bends.get("low", -np.inf)))
        real = np.minimum(real, np.float32(bends.get("high", np.inf)))
        levels = np.rint(real / scale).astype(np.float64) + float(zero)
    bounds = np.iinfo(zero.dtype)
    return np.clip(np.where(np.isnan(levels), bounds.min, levels), bounds.min, bounds.max).astype(zero.dtype)


_BENDS = [{}, {"low": 0.0}, {"low": 0.0, "high": 6.0}, {"low": -0.37, "high": 4.0}, {"alpha": 0.1}, {"hard_swish": 1}]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_levels_are_those_of_the_floats(kind, biased):
    rng = np.random.default_rng(7)
    calls, arrays = [], []
    for place in range(90):
        bits, bends = int(rng.integers(12, 26)), _BENDS[place % len(_BENDS)]
        arrays.append(_drawn(rng, kind, biased=biased, bits=bits))
        calls.append(call_of("LevelsOfSums", arrays[-1], _SHAPE, np.dtype(kind).name, {**bends, "bits": bits}))
        np.testing.assert_array_equal(run_call(calls[-1], arrays[-1]), _by_floats(arrays[-1], bends))
    few = slice(len(_BENDS))
    for call, given, found in zip(calls[few], arrays[few], run_c(calls[few], arrays[few]), strict=True):
        assert same_bits(found, run_call(call, given))


def test_hard_swish_next_to_its_bends():
    """Levels and the least value, of x of channels around any number, as of the floats."""
    rng, calls, arrays, wanted = np.random.default_rng(5), [], [], []
    factor = np.array(0.0013, np.float32)
    for middle, spread in itertools.product((0, -1.5, -2.95, -8, 40), (0.02, 1.5, 8)):
        bias = (rng.normal(size=(1, 6, 1, 1)) * 2).astype(np.float32)
        sums = np.rint((middle + rng.normal(size=(1, 6, 40, 40)) * spread - bias) / factor).astype(np.int32)
        real = sums.astype(np.float32) * factor + bias
        real = real * np.clip(real * np.float32(1 / 6) + np.float32(.5), np.float32(0), np.float32(1))
        least = np.minimum(real, 0).min() + np.float32(0)
        scale = np.array((np.maximum(real, 0).max() - least) / np.float32(255) or 1, np.float32)
        zero = np.array(np.clip(np.rint(-least / scale), 0, 255), np.uint8)
        arrays += [[sums, factor, bias, scale, zero], [sums, factor, bias]]
        calls += [call_of("LevelsOfSums", arrays[-2], sums.shape, "uint8", {"bits": 17, "hard_swish": 1}),
                  call_of("LeastOfSums", arrays[-1], (1, 1, 1, 1), "float32")]
        wanted += [_by_floats(arrays[-2], {"hard_swish": 1}), np.array(least, np.float32).reshape(1, 1, 1, 1)]
    for call, given, found, floats in zip(calls, arrays, run_c(calls, arrays), wanted, strict=True):
        assert same_bits(found, run_call(call, given))
        np.testing.assert_array_equal(found, floats)


@pytest.mark.parametrize("odd", [{"scale": 0}, {"scale": np.inf}, {"factor": -0.01}, {"bias": 1e9}, {"factor": 1e30}])
def test_odd_numbers_are_left_to_the_floats(odd):
    names = ("sums", "factor", "bias", "scale", "zero")
    given = dict(zip(names, _drawn(np.random.default_rng(2), np.uint8, biased=True, bits=18), strict=True))
    for name, value in odd.items():
        given[name] = np.full_like(given[name], value)
    arrays = list(given.values())
    call = call_of("LevelsOfSums", arrays, _SHAPE, "uint8", {"bits": 18})
    (found,) = run_c([call], [arrays])
    assert same_bits(found, run_call(call, arrays))
    np.testing.assert_array_equal(found.reshape(_SHAPE), _by_floats(arrays, {}))


def test_few_levels_need_floats():
    """Those are next to a half; a bias of many levels has all of its channel's."""
    given = _drawn(np.random.default_rng(3), np.uint8, biased=False, bits=18)
    names = [variable(name, str(each.dtype)) for name, each in zip(("s", "f", "y", "z"), given, strict=True)]
    values = dict(zip(("s", "f", "y", "z"), given, strict=True))
    marks = [evaluate(_quick(names[0], (names[1], None, *names[2:]), constant(mark, "uint8"), {}, 18),
                      values) for mark in (0, 255)]
    assert np.mean(marks[0] != marks[1]) < .02


@pytest.mark.parametrize("change", [{0: np.zeros(_SHAPE, np.float32)}, {2: np.ones((1, 6, 1, 1), np.float32)},
                                    {3: np.array(3, np.int32)}])
def test_other_operands_are_refused(change):
    arrays = _drawn(np.random.default_rng(1), np.uint8, biased=False, bits=16)
    for place, array in change.items():
        arrays[place] = array
    assert refusal_of(call_of("LevelsOfSums", arrays, _SHAPE, "uint8", {"bits": 16})) is not None
