"""Multiply-accumulates of the host core's operators, against those counted one by one."""

import pytest

from tilewright.compiler.kernels.mac_counts import macs_of


@pytest.mark.parametrize(("op", "inputs", "output", "macs"), [
    ("Conv", [(1, 4, 8, 8), (6, 2, 3, 3)], (1, 6, 8, 8), 6 * 64 * 18),
    ("QLinearConv", [(1, 4, 8, 8), (), (), (6, 4, 3, 3), (), (), (), ()], (1, 6, 6, 6), 6 * 36 * 36),
    ("ConvTranspose", [(1, 4, 8, 8), (4, 5, 2, 2), (5,)], (1, 5, 16, 16), 4 * 64 * 20),
    ("MatMul", [(2, 3, 7), (7, 5)], (2, 3, 5), 2 * 3 * 5 * 7),
    ("Gemm", [(3, 7), (2, 7)], (3, 2), 3 * 2 * 7), ("Gemm", [(7, 3), (7, 2)], (3, 2), 3 * 2 * 7),
    ("Add", [(3, 7), (3, 7)], (3, 7), 0), ("Conv", [None, (6, 2, 3, 3)], (1, 6, 8, 8), 0)])
def test_macs_are_those_of_the_operator(op, inputs, output, macs):
    assert macs_of(op, inputs, output) == macs
