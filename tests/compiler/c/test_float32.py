"""The float arithmetic of the host core's programs, compiled for this machine, is IEEE float32 bit for bit."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from tilewright.compiler.emit.elf import FIRMWARE

COUNT = 1 << 18
SPECIAL = [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 0x3F800000, 0x3F7FFFFF, 0x3F800001,
           0x4B800000, 0x4B7FFFFF]

SOURCE = """
#define NAME(name) tw##name
#include "{firmware}/float32.c"
#define PAIRS(name, type) void all##name(const float *a, const float *b, type *out, int count) \\
    {{ for (int i = 0; i < count; i++) out[i] = tw##name(a[i], b[i]); }}
#define ALONE(name, type) void all##name(const type *a, const type *unused, float *out, int count) \\
    {{ (void)unused; for (int i = 0; i < count; i++) out[i] = tw##name(a[i]); }}
PAIRS(__addsf3, float) PAIRS(__subsf3, float) PAIRS(__mulsf3, float) PAIRS(__divsf3, float)
PAIRS(__ltsf2, int32_t) PAIRS(__lesf2, int32_t) PAIRS(__gtsf2, int32_t) PAIRS(__gesf2, int32_t)
PAIRS(__eqsf2, int32_t) PAIRS(__nesf2, int32_t) PAIRS(__unordsf2, int32_t)
ALONE(__floatsisf, int32_t) ALONE(__floatunsisf, uint32_t)
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("float32")
    source, shared = folder / "all.c", folder / "all.so"
    source.write_text(SOURCE.format(firmware=FIRMWARE))
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-O2", "-shared", "-fPIC", "-fno-sanitize=all", "-Wall",
                    "-Wextra", "-Werror", str(source), "-o", str(shared)], check=True)
    library = ctypes.CDLL(str(shared))

    def call(name: str, a: np.ndarray, b: np.ndarray, dtype: type) -> np.ndarray:
        out = np.empty(len(a), dtype)
        function = getattr(library, f"all{name}")
        function(*(ctypes.c_void_p(each.ctypes.data) for each in (a, b, out)), len(a))
        return out

    return call


def numbers(rng: np.random.Generator) -> np.ndarray:
    """Return floats of all kinds: any bits, like exponents, subnormal, short fractions, the ends of the ranges."""
    bits = rng.integers(0, 1 << 32, COUNT, np.uint32)
    kinds = [bits,
             bits & 0x807FFFFF | rng.integers(120, 135, COUNT, np.uint32) << 23,
             bits & 0x80FFFFFF,
             bits & 0xFFF80000,
             bits & 0xFF800000 | rng.integers(0, 8, COUNT, np.uint32),
             np.array(SPECIAL, np.uint32)[rng.integers(0, len(SPECIAL), COUNT)] | bits & 0x80000000]
    return np.choose(rng.integers(0, len(kinds), COUNT), kinds).astype(np.uint32).view(np.float32)


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two operands each; a third of them neighbours, for differences that lose their leading bits."""
    rng = np.random.default_rng(seed)
    a, b = numbers(rng), numbers(rng)
    near = (a.view(np.int32) + rng.integers(-3, 4, COUNT, np.int32)) ^ (rng.integers(0, 2, COUNT, np.int32) << 31)
    return a, np.where(rng.integers(0, 3, COUNT) == 0, near.view(np.float32), b)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "operation"), [("__addsf3", np.add), ("__subsf3", np.subtract),
                                                 ("__mulsf3", np.multiply), ("__divsf3", np.divide)])
def test_arithmetic_is_ieee(functions, name, operation, seed):
    a, b = pairs(seed)
    with np.errstate(all="ignore"):
        expected = operation(a, b)
    found = functions(name, a, b, np.float32)
    same = (found.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(found) & np.isnan(expected))
    wrong = np.flatnonzero(~same)
    assert not len(wrong), (a[wrong[0]], b[wrong[0]], found[wrong[0]], expected[wrong[0]])
    assert np.isnan(expected).any()
    assert (found[np.isnan(found)].view(np.uint32) == 0x7FC00000).all()


@pytest.mark.parametrize(("name", "holds", "operation"), [
    ("__ltsf2", np.less, np.less), ("__lesf2", np.less_equal, np.less_equal), ("__gtsf2", np.greater, np.greater),
    ("__gesf2", np.greater_equal, np.greater_equal), ("__eqsf2", np.equal, np.equal),
    ("__nesf2", np.not_equal, np.not_equal)])
def test_comparisons_are_ieee(functions, name, holds, operation):
    a, b = pairs(5)
    np.testing.assert_array_equal(holds(functions(name, a, b, np.int32), 0), operation(a, b))


def test_a_nan_is_unordered(functions):
    a, b = pairs(6)
    np.testing.assert_array_equal(functions("__unordsf2", a, b, np.int32) != 0, np.isnan(a) | np.isnan(b))


@pytest.mark.parametrize(("name", "dtype"), [("__floatsisf", np.int32), ("__floatunsisf", np.uint32)])
def test_integers_become_the_nearest_float(functions, name, dtype):
    rng = np.random.default_rng(7)
    whole = rng.integers(-(1 << 31), 1 << 31, COUNT).astype(np.int32) >> rng.integers(0, 31, COUNT, np.int32)
    numbers = np.concatenate([whole, [0, 1, -1, -(1 << 31), (1 << 31) - 1]]).astype(np.int32).view(dtype)
    np.testing.assert_array_equal(functions(name, numbers, numbers, np.float32), numbers.astype(np.float32))
