"""Sums of products of floats in whole numbers: accurate wherever numbers are large or small, the same in C."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tests.support.core_kernels import call_of, compute, run_c, same_bits

_RNG = np.random.default_rng(23)
_CONVOLUTIONS = [("Conv", (1, 6, 7, 8), (5, 6, 3, 3), (1, 5, 7, 8), {"pads": [1, 1, 1, 1]}),
                 ("ConvTranspose", (1, 6, 7, 8), (6, 5, 2, 2), (1, 5, 14, 16), {"strides": [2, 2]}),
                 ("Conv", (2, 4, 7, 8), (4, 1, 3, 3), (2, 4, 5, 6), {"group": 4})]
_WIDE = {"largest": 3e38, "tiny": 1e-44, "infinite": np.inf, "no number": np.nan, "zero": 0.0}


def _drawn(x, w, spread):
    """Return an image of which half is darker by up to 2^spread, and weights."""
    image, weights = (_RNG.normal(size=dims).astype(np.float32) for dims in (x, w))
    image[..., :4] *= np.exp2(_RNG.uniform(-spread, 0, image[..., :4].shape)).astype(np.float32)
    return image, weights


@pytest.mark.parametrize("spread", [0, 12, 40])
def test_sums_are_accurate_in_dark_areas_too(spread):
    cases = []
    for op, x, w, y, attrs in _CONVOLUTIONS:
        image, weights = _drawn(x, w, spread)
        call = call_of(op, [image, weights], y, "float32", attrs, channels_last=True)
        found = compute(call, [image, weights])
        exact, sizes = (_in_doubles(op, each(image), each(weights), attrs) for each in (np.asarray, np.abs))
        assert np.all(np.abs(found - exact) <= 1e-5 * np.abs(exact) + 2e-6 * sizes)
        cases.append((call, [image, weights], found))
    calls, arrays, results = zip(*cases, strict=True)
    for call, text, found in zip(calls, run_c(calls, arrays), results, strict=True):
        assert same_bits(text, found), call.kernel


def _in_doubles(op, image, weights, attrs):
    feeds = {"x": image.astype(np.float64), "w": weights.astype(np.float64)}
    return ReferenceEvaluator(helper.make_node(op, ["x", "w"], ["y"], **attrs)).run(None, feeds)[0]


@pytest.mark.parametrize("value", _WIDE.values(), ids=_WIDE)
def test_odd_numbers_are_summed_up_in_floats(value):
    op, x, w, y, attrs = _CONVOLUTIONS[0]
    image, weights = _drawn(x, w, 0)
    image[0, 1, 2, 3] = value
    if value < 1:
        image[:] = value
    call = call_of(op, [image, weights], y, "float32", attrs)
    (text,) = run_c([call], [[image, weights]])
    assert same_bits(text, compute(call, [image, weights]))
