"""Predicted area: exact where it is counted, near what was synthesised, and never less with more hardware."""

import json
import random
from dataclasses import replace

import pytest

from tilewright.bench.ablation.ablation import removals
from tilewright.hardware.area_model.area_fit import COEFFICIENTS, FITTED, load_measured
from tilewright.hardware.area_model.predicted_area import TARGETS_PREDICTED, predict_area
from tilewright.isa.machine import LIMITS, NAMED, PRESETS, Machine

MEASURED = [each for target in FITTED for each in load_measured(target)]
ON_ECP5 = [each for each in MEASURED if each.target == "ecp5-85k"]
AT_LEAST = {"ecp5-85k": 24, "sky130": 14}
NEVER_LESS = {"ecp5-85k": ("LUT", "DSP", "BRAM"), "sky130": ("area", "memory")}


def name_of(each):
    return f"{each.machine.name}@{each.target}"


def drawn_machines(count, seed=1):
    """Return machines from the whole space."""
    source, found = random.Random(seed), []
    while len(found) < count:
        values = {name: 1 << source.randint(low.bit_length() - 1, high.bit_length() - 1)
                  for name, (low, high) in LIMITS.items()}
        try:
            found.append(Machine(**values))
        except ValueError:
            continue
    return found


def counted_and_synthesised(each, resource):
    """Return the count of each block, as predicted and as synthesised."""
    predicted = predict_area(each.machine, each.target).blocks
    return ({name: block.get(resource, 0) for name, block in predicted.items()},
            {name: each.blocks.get(name, {}).get(resource, 0) for name in predicted})


@pytest.mark.parametrize("each", ON_ECP5, ids=name_of)
def test_multipliers_are_exact_in_every_block(each):
    predicted, synthesised = counted_and_synthesised(each, "DSP")
    assert predicted == synthesised


@pytest.mark.parametrize("each", ON_ECP5, ids=name_of)
def test_block_rams_are_those_synthesised_but_for_one_of_bits_that_nothing_reads(each):
    predicted, synthesised = counted_and_synthesised(each, "BRAM")
    assert all(0 <= predicted[name] - synthesised[name] <= 1 for name in predicted)


def test_block_rams_are_exact_on_most_machines():
    same = [predicted == synthesised for predicted, synthesised in
            (counted_and_synthesised(each, "BRAM") for each in ON_ECP5)]
    assert sum(same) >= len(same) - 2


@pytest.mark.parametrize("each", [each for each in MEASURED if each.target == "sky130"], ids=name_of)
def test_static_ram_is_exact_in_every_block(each):
    predicted = predict_area(each.machine, each.target).blocks
    for name, block in predicted.items():
        assert block.get("memory", 0) == pytest.approx(each.blocks.get(name, {}).get("memory", 0), abs=1), name


@pytest.mark.parametrize("each", MEASURED, ids=name_of)
def test_fitted_resources_are_within_the_stated_error(each):
    predicted = predict_area(each.machine, each.target)
    for resource in FITTED[each.target]:
        error = predicted.total(resource) / each.total(resource) - 1
        assert abs(error) <= predicted.errors[resource].worst, resource


@pytest.mark.parametrize("target", NEVER_LESS)
def test_no_machine_is_larger_without_a_unit(target):
    for machine in (*PRESETS.values(), *drawn_machines(30)):
        whole = predict_area(machine, target)
        for unit, less in removals(machine).items():
            for resource in NEVER_LESS[target]:
                assert predict_area(less, target).total(resource) <= whole.total(resource), (unit, resource)


@pytest.mark.parametrize("target", NEVER_LESS)
def test_no_machine_is_smaller_with_more_lanes(target):
    for machine in (*PRESETS.values(), *drawn_machines(60)):
        try:
            more = replace(machine, lanes=2 * machine.lanes)
        except ValueError:
            continue
        for resource in NEVER_LESS[target]:
            assert predict_area(more, target).total(resource) >= predict_area(machine, target).total(resource)


def test_every_machine_has_an_area_and_what_was_synthesised_is_not_extrapolated():
    for machine in drawn_machines(60):
        for target in TARGETS_PREDICTED:
            totals = predict_area(machine, target).totals()
            assert len(totals) >= 3
            assert min(totals.values()) >= 0
    for each in MEASURED:
        assert predict_area(each.machine, each.target).beyond == ()
    assert "lanes" in predict_area(replace(PRESETS["large"], lanes=64, clusters=16), "sky130").beyond


def test_every_fit_has_its_ranges_and_errors():
    committed = json.loads(COEFFICIENTS.read_text(encoding="utf-8"))
    for target, resources in FITTED.items():
        assert committed[target]["machines"] == len(load_measured(target)) >= AT_LEAST[target]
        assert set(committed[target]["errors"]) == set(resources)


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="xc7"):
        predict_area(PRESETS["base"], "xc7")


@pytest.mark.parametrize("unit", ["row_unit", "coded_weights", "channel_kernels", "integer_requantise", "wide_words"])
def test_a_unit_that_presets_do_not_have_has_a_price(unit):
    base = PRESETS["base"]
    without, with_it = (predict_area(machine, "ecp5-85k").total("LUT") for machine in (
        replace(base, **{unit: False}), replace(base, **{unit: True})))
    assert 0 < with_it - without < 0.2 * without


def test_integers_alone_take_less_than_a_float32_scale():
    """The synthesised difference of `base`, 2.4 % of its LUT4, within a percent of the whole."""
    base, alone = (predict_area(NAMED[name], "ecp5-85k").total("LUT") for name in ("base", "base_integer"))
    assert 0.014 < 1 - alone / base < 0.034
