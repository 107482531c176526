"""A gate of rows, columns or pixels multiplies an image as a vector of channels does, with ONNX Runtime's integers."""

import numpy as np
import pytest

from tests.compiler.passes.recognise.qdq.test_repeated import done, model_of

GATES = {
    "columns": ((1, 12, 1, 10), 5),
    "rows": ((1, 12, 8, 1), 6),
    "pixels": ((1, 1, 8, 10), 8),
    "columns of all channels": ((1, 1, 1, 10), 8),
    "rows of all channels": ((1, 1, 8, 1), 7),
}
"""The shape of a gate of (1, 12, 8, 10), and the cycles that each element may take."""


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", GATES)
def test_a_weight_counts_for_all_that_the_gate_repeats_itself_for(tmp_path, name, dtype):
    gate, most = GATES[name]
    shapes = (gate, (1, 12, 8, 10))[::-1 if dtype is np.int8 else 1]
    run = done(tmp_path, model_of("Mul", shapes, dtype, "qdq"))
    assert run.report.core_cycles == 0
    assert run.comparison.matches is True
    assert run.report.cycles < most * 12 * 8 * 10


def test_a_gate_that_repeats_itself_rarely_is_multiplied_element_by_element(tmp_path):
    run = done(tmp_path, model_of("Mul", ((1, 1, 8, 10), (1, 3, 8, 10)), np.uint8, "qoperator"))
    assert run.comparison.matches is True
    assert not any("turned" in layer.name for layer in run.report.layers)


def test_two_rows_share_a_gate_of_columns_where_they_lie(tmp_path):
    run = done(tmp_path, model_of("Mul", ((1, 6, 1, 10), (1, 6, 2, 10)), np.int8, "qdq"))
    assert run.comparison.matches is True
    assert not any("elements" in layer.name or "copy" in layer.name for layer in run.report.layers)


@pytest.mark.parametrize("machine", ["nano", "large"])
def test_a_map_of_more_pixels_than_a_block_has_channels(tmp_path, machine):
    run = done(tmp_path, model_of("Mul", ((1, 1, 40, 40), (1, 4, 40, 40)), np.uint8, "qdq"), machine)
    assert run.report.core_cycles == 0
    assert run.comparison.matches is True
