"""Shares of zero and saturated values, counted by hand."""

import numpy as np
import pytest

from tilewright.cli.tables.report_tables import statistics_table
from tilewright.runtime.oracle.value_ranges import TensorStatistics, tensor_statistics

VALUES = np.array([-128, -128, 0, 0, 0, 5, 127, 3], np.int8).reshape(2, 2, 2)


@pytest.mark.parametrize(("zero_point", "zeros", "saturated"), [(0, 3 / 8, 3 / 8), (-128, 2 / 8, 1 / 8), (4, 0, 3 / 8)])
def test_values_are_counted(zero_point, zeros, saturated):
    assert tensor_statistics([("conv", "y")], {"y": VALUES}, {"y": zero_point}) == (
        TensorStatistics("conv", 8, zeros, saturated, 5),)


def test_a_layer_whose_tensor_was_not_kept_is_left_out():
    assert tensor_statistics([("a", "x"), ("b", "y")], {"y": VALUES}, {"x": 0, "y": 0})[0].layer == "b"


def test_the_table_has_a_row_for_each_layer():
    statistics = tensor_statistics([("a", "y"), ("b", "y")], {"y": VALUES}, {"y": 0})
    assert statistics_table(statistics).row_count == 2
