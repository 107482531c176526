"""Calls that no kernel of the host core takes are refused with a reason."""

from dataclasses import replace

import pytest

from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.isa.program import MAX_RANK, Call, Operand

VECTOR = Operand(0, "float32", (4,), (1,))
RELU = Call("Relu", (VECTOR,), VECTOR, {})


def test_a_call_that_a_kernel_takes_is_not_refused():
    assert refusal_of(RELU) is None


@pytest.mark.parametrize(("changes", "reason"), [
    ({"kernel": "Colour"}, "no kernel for this operator"),
    ({"inputs": (replace(VECTOR, dtype="complex64"),)}, "no numbers of type complex64"),
    ({"inputs": (Operand(0, "float32", (1,) * (MAX_RANK + 1), (0,) * (MAX_RANK + 1)),)}, f"up to {MAX_RANK} dim"),
    ({"kernel": "Reshape", "inputs": (VECTOR, Operand(0, "int64", (1,), (1,)))}, "input shape must be a constant"),
])
def test_a_call_that_no_kernel_takes_is_refused(changes, reason):
    assert reason in refusal_of(replace(RELU, **changes))
