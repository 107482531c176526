"""Every operator that the host core computes has a way out of its own, or is a function of one value."""

from tilewright.compiler.graph.onnx_names import UNARY
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.kernels.ways_out import way_out


def test_only_functions_of_one_value_are_told_to_become_tables():
    table = way_out("Sigmoid")
    assert {op for op in KERNELS if way_out(op) == table} <= UNARY | {"Dropout"}


def test_operators_of_one_kind_share_a_way_out_and_others_do_not():
    assert way_out("Conv") == way_out("Gemm")
    assert len({way_out(op) for op in ("Conv", "Resize", "Softmax", "Transpose", "Sigmoid")}) == 5
