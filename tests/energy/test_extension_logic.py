"""Logic of an extension: its multipliers and flip-flops are counted, and its products are priced by their size."""

from pathlib import Path

import pytest

from tests.runtime.execution.test_report import record
from tilewright.energy import activity
from tilewright.energy.actions import Clock, actions_of
from tilewright.energy.activity import predict_toggles
from tilewright.energy.extension_logic import extension_logic, product_toggles
from tilewright.isa.extension import extended, load_extension
from tilewright.isa.machine import PRESETS

EXAMPLES = Path(__file__).parents[2] / "examples/extensions"
SLOPE_PRODUCT = 9 * 26  # of the example of a stage, for each value


def machine(name, preset):
    return extended(PRESETS[preset], load_extension(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_stage_has_a_multiplier_for_each_value_of_a_vector(preset):
    found = extension_logic(machine("prelu", preset))
    assert found.partial_products == PRESETS[preset].post_lanes * SLOPE_PRODUCT
    assert found.registers > PRESETS[preset].post_lanes * 35  # the register of each product


def test_a_unit_without_multipliers_makes_no_products():
    unit = machine("argmax", "nano")
    assert extension_logic(unit).partial_products == 0
    assert product_toggles(record(1000, table_read=640), unit) == 0


def test_a_machine_without_an_extension_makes_no_products():
    assert product_toggles(record(1000, table_read=640), PRESETS["base"]) == 0


@pytest.mark.parametrize("preset", ["nano", "base"])
def test_products_of_a_stage_cost_by_their_size_what_requantising_does(preset):
    counts = record(1000, requantized=6400, table_read=6400)
    stage = machine("prelu", preset)
    toggles = predict_toggles(counts, "conv", None, stage)
    bare, own = (actions_of(counts, each, 10, toggles, Clock(200.0)) for each in (PRESETS[preset], stage))
    more = own["post_processing.register_toggle"] - bare["post_processing.register_toggle"]
    requantised = 6400 * activity._table()["post_processing"]["requantized"]
    assert more == pytest.approx(requantised * SLOPE_PRODUCT / 24**2, rel=0.05)
    assert {action for action in own if own[action] != bare[action]} == {
        f"post_processing.{event}" for event in ("register_toggle", "register_cycle", "leakage_ns")}
