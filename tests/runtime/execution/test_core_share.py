"""The core's share of the cycles: layers of one cause are one, the largest first, and shares add up."""

import pytest

from tilewright.runtime.execution.core_share import CorePart, core_share

PARTS = [CorePart("a", "Resize", "its mode is linear", 300), CorePart("b", "Softmax", "no such operator", 50),
         CorePart("c", "Resize", "its mode is linear", 500), CorePart("d", "Resize", "its mode is cubic", 10)]


def test_layers_of_one_operator_and_reason_are_one_cause():
    found = core_share(PARTS, 1000)
    assert [(cause.operator, cause.layers, cause.cycles) for cause in found.causes] == [
        ("Resize", ("c", "a"), 800), ("Softmax", ("b",), 50), ("Resize", ("d",), 10)]
    assert (found.cycles, found.layers) == (860, 4)
    assert found.share == pytest.approx(sum(cause.share for cause in found.causes)) == pytest.approx(0.86)
    assert all(cause.way_out for cause in found.causes)


@pytest.mark.parametrize(("total", "large"), [(1000, True), (8600, False), (8599, True)])
def test_a_tenth_of_the_cycles_is_not_yet_large(total, large):
    assert core_share(PARTS, total).is_large is large


def test_without_layers_there_is_no_share():
    found = core_share([], 0)
    assert (found.share, found.is_large, found.causes) == (0, False, ())
    assert found.to_json() == {"cycles": 0, "share": 0, "layers": 0, "causes": []}
