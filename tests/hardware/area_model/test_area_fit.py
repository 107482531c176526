"""Fit to synthesised machines, and the errors that go with every prediction: both follow from committed data."""

import json
from pathlib import Path

import pytest

from tilewright.hardware.area_model.area_fit import COEFFICIENTS, FITTED, errors_of, fit, held_out, load_measured
from tilewright.hardware.area_model.make_area_model import fit_all, page

PAGE = Path(__file__).parents[3] / "docs" / "area-model.md"
GOALS = {"ecp5-85k": "LUT", "sky130": "area"}


@pytest.fixture(scope="module")
def committed():
    return json.loads(COEFFICIENTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("target", FITTED)
def test_coefficients_are_those_of_the_committed_results(target, committed):
    fitted = fit(load_measured(target), FITTED[target])
    for resource, blocks in fitted.items():
        for block, coefficients in blocks.items():
            assert committed[target]["coefficients"][resource][block] == pytest.approx(
                coefficients, rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("target", FITTED)
def test_errors_of_machines_held_out_are_no_more_than_stated(target, committed):
    errors = errors_of(held_out(load_measured(target), FITTED[target]))
    for resource, stated in committed[target]["errors"].items():
        assert errors[resource].rms <= 1.01 * stated["rms"] + 1e-4
        assert errors[resource].worst <= 1.01 * stated["worst"] + 1e-4


@pytest.mark.parametrize("target", GOALS)
def test_logic_is_predicted_within_the_goal(target, committed):
    stated = committed[target]["errors"][GOALS[target]]
    assert stated["rms"] <= 0.05
    assert stated["worst"] <= 0.12


def test_a_machine_held_out_has_no_part_in_its_prediction():
    measured = load_measured("ecp5-85k")
    alone = held_out(measured[:4], ["LUT"])[0]["LUT"]
    known = held_out([measured[0], *measured[:4]], ["LUT"])[0]["LUT"]
    assert abs(alone) > abs(known)


def test_page_is_that_of_the_committed_results():
    assert PAGE.read_text(encoding="utf-8") == page(fit_all())
