"""Limits as texts, and how far a design is beyond one."""

import pytest

from tilewright.bench.exploration.design_limits import LimitError, limit_of

MEASURES = ("cycles", "mult18", "energy-delay", "lenet5.cycles")


@pytest.mark.parametrize(("text", "stated"), [
    ("mult18<=156", "mult18<=156"), (" mult18 ≤ 156 ", "mult18<=156"), ("MULT18<156", "mult18<=156"),
    ("cycles>=1e3", "cycles>=1000"), ("cycles<=80k", "cycles<=80000"), ("energy-delay<=1.5", "energy-delay<=1.5"),
    ("lenet5.cycles<=2M", "lenet5.cycles<=2000000"), ("cycles<=80_000", "cycles<=80000"),
])
def test_a_limit_is_read(text, stated):
    assert str(limit_of(text, MEASURES)) == stated


@pytest.mark.parametrize("text", ["", "mult18", "mult18=156", "mult18==156", "mult18<=", "<=156", "mult18<=abc",
                                  "area<=1", "mult18<=1;import os", "__import__('os')<=1", "mult18<=1e999",
                                  "x" * 1000, "mult18<=-1"])
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(LimitError):
        limit_of(text, MEASURES)


def test_a_violation_is_a_part_of_the_bound():
    assert limit_of("mult18<=100", MEASURES).violation({"mult18": 150}) == pytest.approx(0.5)
    assert limit_of("mult18<=100", MEASURES).violation({"mult18": 100}) == 0
    assert limit_of("cycles>=100", MEASURES).violation({"cycles": 80}) == pytest.approx(0.2)
    assert "150" in limit_of("mult18<=100", MEASURES).reason({"mult18": 150})
