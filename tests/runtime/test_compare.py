"""The first layer that differs from the reference is found, with its place and both values."""

import numpy as np

from tilewright.runtime.compare import compare

LAYERS = [("conv1", "a"), ("conv2", "b"), ("fc", "c")]
REFERENCE = {"a": np.arange(24, dtype=np.int8).reshape(1, 2, 3, 4), "b": np.full((1, 4), 130, np.uint8),
             "c": np.zeros((1, 2), np.int8)}
OURS = {"a": REFERENCE["a"].reshape(2, 3, 4), "b": np.full((4, 1, 1), 2, np.int8), "c": np.zeros((2, 1, 1), np.int8)}


def test_equal_tensors_match_whatever_their_type_in_the_model():
    comparison = compare(LAYERS, OURS, REFERENCE)
    assert comparison.matches is True
    assert str(comparison) == "3 of 3 layers compared with ONNX Runtime: every element is equal"


def test_the_first_difference_is_told_with_index_and_values():
    wrong = {name: tensor.copy() for name, tensor in OURS.items()}
    wrong["b"][2:] = -7
    wrong["c"][0] = 1
    comparison = compare(LAYERS, wrong, REFERENCE)
    assert comparison.matches is False
    assert str(comparison) == ("Layer 1 (conv2) is the first to differ from ONNX Runtime: b at (2, 0, 0) (channel, "
                               "row, column) is -7, not 2; 2 of its elements differ")


def test_only_what_both_have_is_compared():
    assert compare(LAYERS, {"c": OURS["c"]}, REFERENCE).compared == 1
    nothing = compare(LAYERS, {}, REFERENCE)
    assert nothing.matches is None
    assert str(nothing) == "No tensor was compared with ONNX Runtime"
