"""Whatever a call holds, a kernel refuses it in a sentence or runs it, in NumPy and in C, with the result it names."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.core_kernels import ABSENT, row_major, run_c, same_bits
from tilewright.compiler.kernels.language.c_helpers import helper_text
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

DTYPES = ("float32", "int8", "uint8", "int32", "int64", "bool")
NAMES = ("axis", "axes", "perm", "pads", "strides", "kernel_shape", "dilations", "group", "auto_pad", "ceil_mode",
         "mode", "shape", "starts", "ends", "steps", "scales", "sizes", "roi", "repeats", "indices", "blocksize", "to",
         "alpha", "beta", "p", "size", "epsilon", "keepdims", "opset", "num_groups", "transA", "output_shape",
         "output_padding", "count_include_pad", "value", "min", "max", "approximate", "nearest_mode",
         "coordinate_transformation_mode")
INTEGERS = st.integers(-3, 4)
JUNK = st.one_of(INTEGERS, st.lists(INTEGERS, max_size=8), st.floats(), st.text(max_size=3), st.none(), st.booleans(),
                 st.just(10**30), st.lists(st.lists(INTEGERS, max_size=2), max_size=2),
                 st.sampled_from(["SAME_UPPER", "linear", "cubic", "reflect", "wrap", "tanh", "CRD", "asymmetric"]))
SIZES = st.sampled_from((1, 2, 3, 4, 5, 0))
DIMS = st.one_of(st.tuples(SIZES, SIZES, SIZES, SIZES), st.lists(SIZES, max_size=5).map(tuple))


@st.composite
def calls(draw, op):
    first = draw(DIMS)
    dtype = draw(st.sampled_from(("float32", *DTYPES)))
    operands = []
    for _ in range(draw(st.sampled_from((1, 2, 1, 3, 2, 5, 9, 0)))):
        dims = draw(st.one_of(st.just(first), st.just(first), DIMS, st.just(())))
        kind = draw(st.one_of(st.just(dtype), st.just(dtype), st.sampled_from(DTYPES)))
        operands.append(ABSENT if draw(st.integers(0, 9)) == 0 else Operand(0, kind, dims, row_major(dims)))
    attrs = draw(st.dictionaries(st.sampled_from(NAMES), JUNK, max_size=3))
    return Call(op, tuple(operands), Operand(0, dtype, first, row_major(first)), attrs)


def runnable(call):
    """Return ``call`` with the output that its kernel expects, if there is one."""
    kernel = KERNELS[call.kernel]
    try:
        dtype, dims = kernel.result(call)
    except Exception:  # noqa: BLE001 - what may be raised is the subject of the test below
        return call
    return Call(call.kernel, call.inputs, Operand(0, dtype, dims, row_major(dims)), call.attrs)


@pytest.mark.parametrize("op", sorted(KERNELS))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_a_call_is_refused_in_a_sentence_or_runs(op, data):
    call = runnable(data.draw(calls(op)))
    kernel = KERNELS[op]
    reason = kernel.refusal(call)
    if reason is not None:
        assert isinstance(reason, str)
        assert len(reason) < 2000
        return
    assert math.prod(call.output.dims) < 10**7
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.integers(0, 2, operand.dims)).astype(operand.dtype) if operand.dtype else None
              for operand in call.inputs]
    result = kernel.compute(call, arrays)
    assert (str(result.dtype), result.shape) == (call.output.dtype, call.output.dims)
    assert kernel.cycles(call, MemoryTiming()) > 0
    helper_text(kernel.helpers(call))
    assert kernel.c_body(call, "f")


def likely_call(op, rng):
    """Return a call that is more likely to run than those above: few dtypes, equal dims, attributes with sense."""
    dims = tuple(int(size) for size in rng.choice((1, 2, 3, 4, 5), rng.choice((4, 4, 3, 2, 1, 0))))
    dtype = str(rng.choice(("float32", "float32", "int8", "int32", "bool")))
    operands = []
    for _ in range(rng.choice((1, 2, 3, 1, 2, 5))):
        own = dims if rng.random() < 0.6 else dims[1:2] if rng.random() < 0.7 else dims[rng.integers(0, 4):]
        operands.append(Operand(0, dtype, own, row_major(own)))
    numbers = [int(each) for each in rng.integers(0, 3, rng.choice((1, 2, 4, 8)))]
    attrs = {str(name): rng.choice((1, 2, -1)).item() if rng.random() < 0.5 else numbers
             for name in rng.choice(NAMES, rng.integers(0, 4))} | {"blocksize": 1, "size": 3, "to": 1, "num_groups": 1}
    attrs.setdefault("kernel_shape", [int(each) for each in rng.integers(1, 3, 2)])
    return runnable(Call(op, tuple(operands), Operand(0, dtype, dims, row_major(dims)), attrs))


def test_c_of_calls_that_run_is_numpy():
    """Random calls of all kernels, those that run, in one library."""
    rng = np.random.default_rng(1)
    found = []
    for op in sorted(KERNELS):
        tried = (likely_call(op, rng) for _ in range(150))
        found += [call for call in tried if KERNELS[op].refusal(call) is None][:4]
    assert len({call.kernel for call in found}) > 70
    inputs = [[np.asarray(rng.integers(0, 2 if operand.dtype == "bool" else 4, operand.dims)).astype(operand.dtype)
               for operand in call.inputs] for call in found]
    for call, arrays, result in zip(found, inputs, run_c(found, inputs), strict=True):
        assert same_bits(result, KERNELS[call.kernel].compute(call, arrays)), call
