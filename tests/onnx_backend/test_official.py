"""ONNX's official tests of our operators, as its own runner for backends runs them; and that exclusions are true."""

import re

import pytest

from tests.onnx_backend.exclusions import EXCLUSIONS
from tests.onnx_backend.official import OPERATORS, cases, classes_of
from tilewright.compiler.errors import CompileError

CASES = cases()

globals().update(classes_of({case.name for case in CASES if case.reason is None}))


UNCOVERED = {
    "QLinearMul": "of com.microsoft, of which ONNX has no tests",
    "QuickGelu": "of com.microsoft, of which ONNX has no tests",
    "ReduceLogSumExp": "its tests are of float64",
}


def test_all_other_operators_of_ours_are_covered():
    covered = set().union(*(case.operators for case in CASES if case.reason is None))
    assert OPERATORS - covered == UNCOVERED.keys()


@pytest.mark.parametrize("reason", EXCLUSIONS)
def test_every_exclusion_is_of_a_test(reason):
    excluded = [case.name for case in CASES if case.excluded and case.reason == reason]
    for pattern in EXCLUSIONS[reason]:
        assert any(re.search(pattern, name) for name in excluded), f"{pattern} excludes nothing"


EXCLUDED = classes_of({case.name for case in CASES if case.excluded})


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, each in EXCLUDED.items() for name in vars(each)
                                            if name.startswith("test_")])
def test_what_is_excluded_does_not_run(kind, name):
    with pytest.raises((CompileError, AssertionError)):
        getattr(EXCLUDED[kind](name), name)()
