"""Integer .tflite networks of packages of others compute what each of the three engines does, tensor by tensor."""

import pytest

from tests.support.tflite_packages import IN_WHEEL, KEPT, content_of, package_results, unlike
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.mark import ENGINES

RESULTS = package_results()


def test_the_results_are_of_these_networks():
    assert set(RESULTS) == {*KEPT, *IN_WHEEL}
    assert len(RESULTS) >= 17


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*KEPT, *(pytest.param(name, marks=pytest.mark.slow) for name in IN_WHEEL)])
def test_a_network_of_a_package_computes_what_the_engine_does(name, engine):
    content = content_of(name)
    wrong, compared = unlike(content, engine, RESULTS[name][engine])
    assert not wrong
    # What ends in an addition, and what only moves, has no tensor of its own.
    assert compared >= len(read_file(content, name).operators) // 2
