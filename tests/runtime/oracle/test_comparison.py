"""The first layer that differs from the reference is found, with its place and both values."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import Place, TensorInfo
from tilewright.runtime.execution.verdict import count_text, counts, headline
from tilewright.runtime.oracle.comparison import Output, compare, compare_outputs
from tilewright.runtime.oracle.expected_tensors import inexact_tensors

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
    assert str(comparison) == ("Layer 1 (conv2) is the first that differs from ONNX Runtime: b at (2, 0, 0) (channel, "
                               "row, column) is -7, not 2; 2 of its elements differ")


def test_only_what_both_have_is_compared():
    assert compare(LAYERS, {"c": OURS["c"]}, REFERENCE).compared == 1
    nothing = compare(LAYERS, {}, REFERENCE)
    assert nothing.matches is None
    assert str(nothing) == "No tensor was compared with ONNX Runtime"


def test_floats_need_only_be_near():
    ours = np.array([1.0, -2.0, np.nan, np.inf], np.float32)
    near, far = ours + np.float32([1e-4, 0, 0, 0]), ours + np.float32([0, 0.1, 0, 0])
    comparison = compare([("tanh", "t")], {"t": ours}, {"t": near})
    assert (comparison.matches, comparison.floats) == (True, 1)
    assert str(comparison).endswith("every element is equal except in 1 float tensors, which differ by at most 5e-05 "
                                    "of their range")
    for wrong in (far, np.float32([1, -2, 0, np.inf]), np.float32([1, -2, np.nan, 3])):
        assert compare([("tanh", "t")], {"t": ours}, {"t": wrong}).matches is False


def test_floats_near_zero_may_be_as_far_off_as_onnx_allows_backends():
    """ONNX Runtime's Sigmoid of -13.699899, and 1 / (1 + exp(13.699899))."""
    theirs, ours = np.float32([1.1026859e-6]), np.float32([1.1225588e-6])
    assert compare([("sigmoid", "s")], {"s": ours}, {"s": theirs}).matches is True
    assert compare([("sigmoid", "s")], {"s": ours}, {"s": np.float32([1.3e-6])}).matches is False


def test_what_onnx_runtime_rounds_in_float_may_be_off():
    wrong = {"a": OURS["a"], "b": OURS["b"] + np.int8(3), "c": OURS["c"]}
    comparison = compare(LAYERS, wrong, REFERENCE, {"b"})
    assert comparison.matches is True
    alone = replace(comparison, of_layers=comparison.of_layers[1:2])
    assert str(alone) == ("1 of 1 layers compared with ONNX Runtime, which computes them in float: up to "
                          f"{comparison.levels} levels off (tilewright compare checks each layer by itself)")
    assert str(comparison).startswith("2 of 3 layers compared with ONNX Runtime: every element is equal; ")
    assert str(comparison).endswith("; ONNX Runtime computes 1 more in float, and they are up to 3 levels off "
                                    "(tilewright compare checks each layer by itself)")
    assert compare(LAYERS, wrong | {"c": OURS["c"] + np.int8(1)}, REFERENCE, {"b"}).matches is False


def test_every_layer_has_a_verdict_and_nothing_is_equal_that_was_not_compared():
    ours = {"a": OURS["a"], "b": OURS["b"] - np.int8(2)}
    found = compare([*LAYERS, ("hidden", "d")], ours | {"d": OURS["a"]}, REFERENCE)
    assert [each.verdict.kind for each in found.of_layers] == ["equal", "differs", "not compared", "not compared"]
    assert (found.of_layers[1].verdict.levels, found.of_layers[1].verdict.off) == (2, 4)
    stored, shown = (found.of_layers[index].verdict.why for index in (2, 3))
    assert "stored" in stored
    assert "ONNX Runtime" in shown
    assert counts(found.verdicts) == {"equal": 1, "declared": 0, "differs": 1, "not compared": 2}
    assert count_text(found.verdicts, "layers") == "4 layers: 1 equal, 1 off where it must not be, 2 not compared"
    assert headline(found.verdicts) == "no"


def test_all_is_equal_only_if_all_was_compared():
    assert headline(compare(LAYERS, OURS, REFERENCE).verdicts) == "yes"
    part = compare(LAYERS, {"a": OURS["a"]}, REFERENCE)
    assert (part.matches, headline(part.verdicts)) == (True, "1 of 3")
    assert headline(compare(LAYERS, {}, REFERENCE).verdicts) == "not compared"
    off = compare(LAYERS, OURS | {"c": OURS["c"] + np.int8(8)}, REFERENCE, {"c"})
    assert (off.matches, headline(off.verdicts)) == (True, "2 of 3")


def test_an_output_stands_for_the_layer_that_makes_it_and_its_floats_are_told_in_levels():
    layers = compare([("first", "a"), ("last", "levels")], {"a": OURS["a"]}, REFERENCE)
    value = np.float32([[1.0, 2.0, 4.0]])
    output = Output("y", "levels", value, scale=0.5)
    equal = compare_outputs([output], {"y": value.copy()}, layers)
    assert [each.verdict.kind for each in (*equal.of_layers, *equal.of_outputs)] == ["equal"] * 3
    off = compare_outputs([output], {"y": value + np.float32([[0, 4, 0]])}, layers)
    assert (off.matches, off.of_outputs[0].verdict.levels, off.of_layers[1].verdict.kind) == (False, 8, "differs")
    assert (off.difference.layer, off.difference.index, off.difference.expected) == (1, (0, 1), 6.0)
    loose = compare_outputs([Output("y", "levels", value, scale=0.5, loose=True)], {"y": value + np.float32(4)}, layers)
    assert (loose.matches, loose.of_outputs[0].verdict.kind) == (True, "declared")
    assert "; output y is off by up to 8 levels in 3 of 3 elements" in str(loose)
    assert compare_outputs([output], {}, layers).of_outputs[0].verdict.kind == "not compared"


def test_what_follows_from_rounding_in_float_is_inexact():
    def info(name: str, dtype: str = "int8", parent: str | None = None) -> TensorInfo:
        place = parent and Place(parent=parent, offset=0, row_step=1, pixel_step=1)
        return TensorInfo(name=name, shape=(1, 1, 1), scale=np.float32(1), zero_point=0, dtype=dtype, place=place)

    infos = {each.name: each for each in (info("in"), info("sum"), info("float", "float32"), info("rounded"),
                                          info("whole"), info("part", parent="whole"), info("behind", "float32"))}
    layers = [(("in",), ("sum",), True), (("sum",), ("float",), False), (("float",), ("rounded",), True),
              (("rounded",), ("part",), True), (("whole",), ("behind",), True)]
    assert inexact_tensors(layers, infos) == {"rounded", "part", "whole", "behind"}
    assert inexact_tensors([(("in",), ("sum",), False)], infos) == {"sum"}
