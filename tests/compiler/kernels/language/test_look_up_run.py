"""Bytes that lie one behind the other are looked up eight at a time; others one by one."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of
from tilewright.compiler.kernels.language.look_up_run import is_run
from tilewright.isa.program import Call, Operand


def test_what_lies_with_gaps_is_no_run():
    arrays = [np.zeros((1, 4, 3, 2), np.int8)]
    for last, run in ((False, True), (True, True)):
        assert is_run(call_of("DequantizeLinear", arrays, (1, 4, 3, 2), "float32", channels_last=last)) == run
    gaps = Operand(0, "int8", (3, 4), (8, 1))
    assert not is_run(Call("DequantizeLinear", (gaps,), Operand(0, "float32", (3, 4), (4, 1))))
    assert not is_run(Call("DequantizeLinear", (Operand(0, "int16", (3, 4), (4, 1)),),
                           Operand(0, "float32", (3, 4), (4, 1))))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_runs_of_any_length_are_whole(dtype):
    rng = np.random.default_rng(1)
    cases = []
    for count in (1, 7, 8, 9, 31, 256):
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (count,), dtype, endpoint=True)
        arrays = [x, np.array(0.1, np.float32), np.array(1, dtype)]
        cases.append(("DequantizeLinear", arrays, (count,), "float32", {}))
    check_c(cases)
