"""Predicted area against committed results of synthesis."""

import json
import random
from dataclasses import replace

import pytest

from tilewright.hardware.area_model.area_fit import COEFFICIENTS, FITTED, fit, load_measured
from tilewright.hardware.area_model.predicted_area import TARGETS_PREDICTED, predict_area
from tilewright.isa.machine import LIMITS, PRESETS, Machine

MEASURED = [each for family in FITTED for each in load_measured(family)]


def name_of(each):
    return f"{each.machine.name}@{each.target}"


@pytest.mark.parametrize("each", load_measured("ecp5"), ids=name_of)
@pytest.mark.parametrize("resource", ["DSP", "BRAM"])
def test_multipliers_and_block_rams_are_exact_in_every_block(each, resource):
    predicted = predict_area(each.machine, each.target).blocks
    assert {name: block.get(resource, 0) for name, block in predicted.items()} == {
        name: block.get(resource, 0) for name, block in each.blocks.items()}


@pytest.mark.parametrize("each", MEASURED, ids=name_of)
def test_fitted_resources_are_near_what_was_synthesised(each):
    predicted = predict_area(each.machine, each.target)
    for resource in FITTED[each.target]:
        assert predicted.total(resource) == pytest.approx(each.total(resource), rel=0.06), resource


def test_static_ram_is_near_what_was_synthesised():
    for each in load_measured("sky130"):
        assert predict_area(each.machine, "sky130").total("memory") == pytest.approx(each.total("memory"), rel=0.01)


def test_coefficients_are_those_of_the_committed_results():
    committed = json.loads(COEFFICIENTS.read_text(encoding="utf-8"))
    for family, resources in FITTED.items():
        fitted = fit(load_measured(family), resources)
        for resource in resources:
            for block, coefficients in fitted[resource].items():
                assert committed[family][resource][block] == pytest.approx(coefficients, rel=1e-3, abs=1e-3)


def test_every_machine_has_an_area_and_the_presets_are_not_extrapolated():
    source = random.Random(1)
    drawn = 0
    while drawn < 60:
        values = {name: 1 << source.randint(low.bit_length() - 1, high.bit_length() - 1)
                  for name, (low, high) in LIMITS.items()}
        try:
            machine = Machine(**values)
        except ValueError:
            continue
        drawn += 1
        for target in TARGETS_PREDICTED:
            totals = predict_area(machine, target).totals()
            assert len(totals) >= 3
            assert min(totals.values()) >= 0
    assert not any(predict_area(machine, "sky130").beyond for machine in PRESETS.values())
    assert predict_area(replace(PRESETS["base"], tiles=2, lanes=2, post_lanes=2), "sky130").beyond == ("tiles",)


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="xc7"):
        predict_area(PRESETS["base"], "xc7")
