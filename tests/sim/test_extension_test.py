"""An extension's component against its NumPy function."""

from pathlib import Path

import pytest

from tilewright.isa.extension import load_extension
from tilewright.sim.extension_test import StageDifference, check_stage

PRELU = Path(__file__).parents[2] / "examples/extensions/prelu.py"


def test_the_example_computes_the_same_in_both():
    assert check_stage(load_extension(PRELU), settings=1, vectors=60).vectors == 180


def test_a_component_that_rounds_otherwise_is_found(tmp_path):
    path = tmp_path / "prelu.py"
    path.write_text(PRELU.read_text().replace("rest > half", "rest >= 0"))
    with pytest.raises(StageDifference):
        check_stage(load_extension(path), settings=1, vectors=60)
