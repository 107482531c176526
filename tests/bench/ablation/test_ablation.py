"""Worth of each unit: every unit once, costs that are those of runs, and no machine that grows by losing a unit."""

from dataclasses import replace

import pytest

from tilewright.bench.ablation.ablation import Ablation, ablate, instructions_lost, removals
from tilewright.bench.ablation.ablation_page import page
from tilewright.bench.ablation.ablation_picture import picture
from tilewright.energy.registers import count_fresh, registers_of
from tilewright.isa.machine import PRESETS, UNITS
from tilewright.runtime.design.design import Design
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Silence

NANO = PRESETS["nano"]


def fake_area(machine):
    """Return an area that grows with the number of units."""
    units = sum(getattr(machine, unit) for unit in UNITS) + machine.winograd
    return {"ecp5-25k": {"LUT": 1000.0 + 100 * units, "DSP": 8.0}}


FEW = replace(NANO, array="plain", column_reuse=False, value_tables=False, residual_adder=False, whole_sums=False,
              chaining=False)
"""A machine that lacks most units already."""


@pytest.fixture(autouse=True)
def registers(monkeypatch):
    """Take the flip-flops of nano for those of machines that would have to be elaborated."""
    monkeypatch.setattr("tilewright.energy.actions.registers_of", lambda _: registers_of(NANO))


@pytest.fixture
def found(registers) -> Ablation:
    return ablate([PredictedNetwork.named("lenet5")], [Design(machine=FEW)], Silence(), fake_area)


def test_each_unit_that_a_machine_has_is_left_out_once():
    assert list(removals(NANO)) == ["conv23", *(unit.replace("_", " ") for unit in UNITS if getattr(NANO, unit))]
    plain = removals(NANO)["conv23"]
    assert (plain.winograd, "conv23" in removals(plain), "column reuse" in removals(plain)) == (False, False, False)
    assert "conv23.run_without_reuse" in instructions_lost(NANO, plain)
    assert instructions_lost(NANO, NANO) == ()


@pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
def test_no_preset_has_more_multipliers_in_its_lanes_without_a_unit(machine):
    def of_lanes(each):
        return 16 * each.lanes // each.lanes_per_fetch
    assert all(of_lanes(less) == of_lanes(machine) for less in removals(machine).values())


def test_the_transforms_and_the_inner_product_are_left_out_apart():
    base = PRESETS["base"]
    assert list(removals(base))[:2] == ["conv23", "inner product"]
    assert [removals(base)[unit].array for unit in ("conv23", "inner product")] == ["inner", "winograd"]
    assert "conv23.run" in instructions_lost(base, removals(base)["conv23"])
    assert instructions_lost(base, removals(base)["inner product"]) == ()


def test_costs_are_those_of_the_machines(found):
    assert [row.unit for row in found.rows] == ["paired rows", "max pooling"]
    network = PredictedNetwork.named("lenet5")
    for row in found.rows:
        less = removals(FEW)[row.unit]
        assert row.without.cycles == network.predict(Design(machine=less)).cycles
        assert row.speedup == row.without.cycles / row.having.cycles > 1


def test_gain_per_area_is_speed_over_growth(found):
    row = found.rows[0]
    assert row.added("ecp5-25k", "LUT") == pytest.approx(100 / 1100)
    assert row.gain_per_area("ecp5-25k", "LUT") == pytest.approx((row.speedup - 1) * 11)
    assert row.gain_per_area("ecp5-25k", "DSP") is None


def test_page_and_picture_have_every_row(found):
    text = page(found, "tilewright ablate lenet5", "ablation.svg")
    drawn = picture(found)
    for row in found.rows:
        assert f"| {row.unit} |" in text
        assert f">{row.unit}</text>" in drawn
    assert f"{found.rows[1].without.cycles:,}" in text


@pytest.mark.slow
def test_no_machine_has_more_flip_flops_without_a_unit():
    whole = sum(count_fresh(NANO).values())
    for unit, less in removals(NANO).items():
        assert sum(count_fresh(less).values()) <= whole, unit
