"""Predicted toggles: of every run that was counted they come near, of those whose network was left out too."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.execution.test_report import record
from tilewright.energy import activity
from tilewright.energy.activity import events, of_kind, predict_toggles, typical_operands
from tilewright.hardware.calibration.activity_fit import CASES, CountedLayer, CountedRun, count_run, fit
from tilewright.isa.machine import ARRAYS, PRESETS, preset
from tilewright.sim.values.operand_samples import OperandToggles
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS
from tilewright.tools.progress import Silence

BASE = preset("base")
OPERANDS = OperandToggles(patch=30.0, data=50.0, array=1200.0, weights=40.0)


@pytest.mark.slow
def test_lenet5_is_predicted_as_the_rtl_counts():
    """A layer's toggles of all blocks within 15 %, those of the whole network and of its array within 5 %."""
    counted = count_run("lenet5@base", Silence())
    wanted, found = [], []
    for layer in counted.layers:
        predicted = predict_toggles(layer.counts, layer.algorithm, layer.operands, BASE)
        wanted.append([layer.toggles[block] for block in ENERGY_BLOCKS])
        found.append([predicted[block] for block in ENERGY_BLOCKS])
    wanted, found = np.array(wanted, float), np.array(found, float)
    large = wanted.sum(axis=1) > wanted.sum() / 100
    np.testing.assert_allclose(found.sum(axis=1)[large], wanted.sum(axis=1)[large], rtol=0.15)
    assert found.sum() == pytest.approx(wanted.sum(), rel=0.05)
    assert found[:, 0].sum() == pytest.approx(wanted[:, 0].sum(), rel=0.05)


def counted_run(network, machine, rng, coefficients, layers=12):
    """Return a run whose toggles are exactly ``coefficients`` times its events."""
    found = []
    for _ in range(layers):
        slots = int(rng.integers(1, 90))
        counts = record(int(rng.integers(100, 10_000)), tile_slots=slots)
        counts |= {name: int(rng.integers(1, 5000)) for name in (
            "requantized", "residual_added", "activation_read", "activation_written", "weight_read", "weight_written",
            "result_read", "result_written", "memory_read", "memory_written", "commands", "table_read", "load_busy",
            "store_busy")}
        algorithm = str(rng.choice(["conv", "conv23"]))
        operands = OperandToggles(*rng.uniform(1, 100, 6).tolist())
        toggles = {block: sum(coefficients[block][name] * value for name, value in each.items())
                   for block, each in events(counts, algorithm, operands, preset(machine)).items()}
        found.append(CountedLayer(algorithm, counts, toggles, operands))
    return CountedRun(network, machine, tuple(found))


def test_a_fit_finds_what_the_toggles_are_made_of():
    rng = np.random.default_rng(0)
    names = events(record(100), "conv", OperandToggles(), BASE)
    wanted = {block: {name: float(rng.uniform(1, 9)) for name in names[block]} for block in ENERGY_BLOCKS}
    wanted["array"]["operand_bits"] = 0.0
    found = fit([counted_run(network, machine, rng, wanted) for network in ("a", "b", "c") for machine in PRESETS])
    for block in ("post_processing", "load", "store"):
        assert found.coefficients[block] == pytest.approx(wanted[block], rel=0.02, abs=0.02)
    for array in ("winograd", "winograd_inner"):    # those of nano, of base and large
        weights = found.coefficients[f"weight_buffer@{array}"]
        assert weights == pytest.approx(wanted["weight_buffer"], rel=0.02, abs=0.02)
        assert found.coefficients[f"array@{array}"]["operand_bits"] == pytest.approx(0.0, abs=0.02)
    assert set(found.errors) == {*found.coefficients, "all"}
    assert set(found.coefficients) == {of_kind(block, array) for block in ENERGY_BLOCKS
                                       for array in ("winograd", "winograd_inner")}
    assert all(abs(error) < 1e-3 for errors in found.errors.values() for error in errors.values())


def test_the_committed_table_names_the_events_there_are():
    names = events(record(100), "conv", OperandToggles(), BASE)
    table = activity._table()
    fitted = {of_kind(block, array): block for block in ENERGY_BLOCKS for array in ARRAYS}
    assert set(table) == {*fitted, activity.ERROR, *(of_kind(activity.TYPICAL, array) for array in ARRAYS)}
    assert set(table[activity.ERROR]) == set(fitted)
    assert all(set(table[name]) == set(names[block]) for name, block in fitted.items())
    assert all(value >= 0 for section in table.values() for value in section.values())


def test_the_committed_table_states_an_error_that_can_be_lived_with():
    head = activity.TABLE.read_text().split("\n\n")[0]
    rms, worst = next((float(words[2]), float(words[4])) for line in head.splitlines()
                      if (words := line.split())[1:2] == ["all"])
    assert rms <= 5
    assert abs(worst) <= 10
    assert all(case in head for case in CASES)


def test_more_work_on_busier_data_toggles_more():
    counts = record(1000, mac_setup=100, tile_slots=900, activation_read=9000, weight_read=9000, requantized=500)
    before = predict_toggles(counts, "conv", OPERANDS, BASE)
    busier = predict_toggles(counts, "conv", replace(OPERANDS, array=2400.0), BASE)
    assert busier["array"] > before["array"]
    assert {block: busier[block] for block in ENERGY_BLOCKS if block != "array"} == {
        block: before[block] for block in ENERGY_BLOCKS if block != "array"}
    assert predict_toggles(counts | {"requantized": 600}, "conv", OPERANDS, BASE)["post_processing"] \
        > before["post_processing"]


@pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
def test_operands_that_nobody_saw_are_typical(machine):
    counts = record(1000, mac_setup=100, tile_slots=900)
    assert predict_toggles(counts, "conv23", None, machine) \
        == predict_toggles(counts, "conv23", typical_operands("conv23", machine), machine)
    assert typical_operands("core", machine) == OperandToggles()


def test_typical_operands_grow_with_the_lanes():
    large = preset("large")
    assert large.array == BASE.array
    assert typical_operands("conv23", large).array / large.lanes == pytest.approx(
        typical_operands("conv23", BASE).array / BASE.lanes)


def test_what_was_counted_is_kept_as_json(tmp_path):
    from dataclasses import asdict

    from tilewright.hardware.calibration.activity_fit import load_run

    rng = np.random.default_rng(1)
    run = counted_run("a", "base", rng, {block: dict.fromkeys(names, 1.0) for block, names in
                                 events(record(100), "conv", OperandToggles(), BASE).items()})
    (tmp_path / "a@base.json").write_text(json.dumps(asdict(run)))
    assert load_run(tmp_path / "a@base.json") == run
