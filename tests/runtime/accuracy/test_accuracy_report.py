"""Figures of an accuracy report, counted by hand."""

import numpy as np
import pytest

from tests.support.accuracy import report


def test_the_right_class_may_be_the_first_or_among_the_first_five():
    found = report()
    assert [found.right("float", 1), found.right("quantised", 1), found.right("hardware", 1)] == [3, 2, 2]
    assert [found.right("float", 5), found.right("hardware", 5)] == [4, 3]


def test_images_on_which_two_part_are_those_of_another_first_class():
    assert [(each.first, each.second, each.images) for each in report().partings] == [
        ("float", "quantised", (1,)), ("float", "hardware", (1,)), ("quantised", "hardware", ())]


def test_scores_that_differ_are_a_failure_unless_they_are_declared():
    assert report().matches
    off = report(equal=np.array([True, True, False, True]))
    assert (off.matches, off.unequal) == (False, (2,))
    assert report(equal=np.array([True, True, False, True]), declared=True).matches


def test_without_the_quantised_model_in_onnx_runtime_nothing_is_said_of_equality():
    found = report(leave_out=("float", "quantised"))
    assert found.matches is None
    assert found.to_json()["scores"] is None
    assert found.partings == ()


def test_without_labels_there_is_no_accuracy():
    found = report(labels=None)
    assert found.to_json()["accuracy"] is None
    with pytest.raises(ValueError, match="labels"):
        found.right("float", 1)


def test_json_has_shares_counts_and_cycles():
    content = report(cycles=np.array([10, 20, 30, 40])).to_json()
    assert content["accuracy"]["float"] == {"top1": 0.75, "top5": 1.0}
    assert content["same_class"] == {"float and quantised": 3, "float and hardware": 3, "quantised and hardware": 4}
    assert content["differing_images"]["float and quantised"] == [1]
    assert content["cycles"] == {"mean": 25.0, "milliseconds": 25 / 200_000, "least": 10, "most": 40}
    assert report(classes=4).to_json()["accuracy"]["float"] == {"top1": 0.75}
