"""``float32(x) · s + b`` in one C function, and comparisons of floats in integers: the bits of soft floats."""

import numpy as np

from tests.support.core_kernels import call_of, compute, run_c, same_bits

_RNG = np.random.default_rng(5)
_EDGES = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, 2**-24, -2**24, 1.5, 1e-30],
                  np.float32)
_STEPS = [["Cast", [0], ["to", 1]], ["Mul", [-1, 1], []], ["Add", [-1, 2], []]]


def _numbers():
    """Yield sums, factors and offsets: of all sizes, offsets that cancel, and any bits."""
    for bits in (4, 10, 18, 24, 26, 31):
        x = _RNG.integers(-2**bits, 2**bits, 4000).astype(np.int32)
        s = (_RNG.normal(size=x.size) * 2.0**_RNG.integers(-30, 8, x.size)).astype(np.float32)
        near = -x * s.astype(np.float64) * (1 + _RNG.integers(-4, 5, x.size) * 2.0**-_RNG.integers(1, 25, x.size))
        far = _RNG.normal(size=x.size) * 2.0**_RNG.integers(-30, 20, x.size)
        yield x, s, np.where(_RNG.random(x.size) < .5, near, far).astype(np.float32)
    anything = _RNG.integers(0, 2**32, (2, 8000)).astype(np.uint32).view(np.float32)
    yield _RNG.integers(-2**25, 2**25, 8000).astype(np.int32), *anything
    whole = [0, 1, -1, 2**24 - 1, 2**24, 2**24 + 1, -2**31, 3]
    x, s, b = np.meshgrid(whole, range(len(_EDGES)), range(len(_EDGES)))
    yield x.ravel().astype(np.int32), _EDGES[s.ravel()], _EDGES[b.ravel()]


def test_scaled_sums_are_those_of_three_floats():
    arrays = [np.concatenate(each) for each in zip(*_numbers(), strict=True)]
    call = call_of("Chain", arrays, arrays[0].shape, "float32", {"steps": _STEPS})
    (found,) = run_c([call], [arrays])
    with np.errstate(all="ignore"):
        assert same_bits(found, arrays[0].astype(np.float32) * arrays[1] + arrays[2])
    assert same_bits(found, compute(call, arrays))


def test_comparisons_are_those_of_floats():
    x, y = (each.ravel() for each in np.meshgrid(*[np.concatenate([_EDGES, -_EDGES])] * 2))
    names = {"Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal,
             "Equal": np.equal}
    calls = [call_of(op, [x, y], x.shape, "bool") for op in names]
    for compared, found in zip(names.values(), run_c(calls, [[x, y]] * len(calls)), strict=True):
        np.testing.assert_array_equal(found, compared(x, y))
