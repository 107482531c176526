"""The committed calibration: page and technology file follow from its JSON, and its errors from what was measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.calibrate_files import technology_text
from tilewright.runtime.calibrate_page import page
from tilewright.sim.blocks import BLOCKS
from tilewright.sim.energy import FOLDER, Technology
from tilewright.sim.gates.fit import FitError, fit, non_negative
from tilewright.sim.gates.measure import Measurement

DOCS = Path(__file__).parents[2] / "docs"
FOUND = json.loads((DOCS / "calibration.json").read_text(encoding="utf-8"))


def measurements(block):
    """Return what the JSON has measured of a block, as over one cycle."""
    return {name: Measurement(
        cycles=1, registers=block["registers"], register_cycles=each["clocked_registers"],
        register_toggles=each["register_toggles_per_cycle"],
        switching=each["pJ_per_cycle"] - each["clock_pJ_per_cycle"],
        internal=0.0, clock=each["clock_pJ_per_cycle"], leakage=block["leakage_nW"], area=block["area_um2"],
        cells=block["cells"]) for name, each in block["measured"].items()}


def test_the_page_is_that_of_the_figures():
    assert (DOCS / "calibration.md").read_text(encoding="utf-8") == page(FOUND)


def test_the_technology_file_is_that_of_the_figures():
    assert (FOLDER / "osu018.toml").read_text(encoding="utf-8") == technology_text(FOUND)


@pytest.mark.parametrize("name", FOUND["blocks"])
def test_prices_and_errors_follow_from_what_was_measured(name):
    block = FOUND["blocks"][name]
    fitted = fit(measurements(block))
    assert fitted.prices == pytest.approx(block["prices_pJ"], rel=1e-6)
    assert fitted.held_out == pytest.approx(block["held_out"], abs=1e-6)


def test_errors_with_each_window_left_out_are_within_10_percent_rms_and_20_at_most():
    errors = np.array(list(FOUND["sum_of_blocks"]["held_out"].values()))
    assert len(errors) >= 10
    assert np.sqrt(np.mean(errors**2)) <= 0.10
    assert np.abs(errors).max() <= 0.20


def test_the_sum_of_blocks_is_that_of_their_errors():
    for name, error in FOUND["sum_of_blocks"]["held_out"].items():
        blocks = [block for block in FOUND["blocks"].values() if len(block["measured"]) == len(FOUND["workloads"])]
        assert len(blocks) >= 6
        measured = sum(block["measured"][name]["pJ_per_cycle"] for block in blocks)
        modelled = sum(block["measured"][name]["pJ_per_cycle"] * (1 + block["held_out"][name]) for block in blocks)
        assert error == pytest.approx(modelled / measured - 1, abs=1e-9)


def test_every_block_has_prices_in_the_technology():
    technology = Technology.load("osu018")
    assert technology.calibrated
    for block in BLOCKS:
        assert technology.price(f"{block}.register_cycle").picojoules > 0.1
        assert technology.price(f"{block}.register_toggle").picojoules > 0.1


def test_least_squares_are_not_negative_and_least():
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows, wanted = rng.normal(size=(12, 3)), rng.normal(size=12)
        found = non_negative(rows, wanted)
        gradient = rows.T @ (rows @ found - wanted)
        # Karush, Kuhn, Tucker: zero where a price is positive, not negative where it is zero.
        assert (found >= 0).all()
        assert np.allclose(gradient[found > 0], 0, atol=1e-9)
        assert (gradient[found == 0] >= -1e-9).all()


def test_too_few_windows_are_refused():
    block = next(iter(FOUND["blocks"].values()))
    few = dict(list(measurements(block).items())[:3])
    with pytest.raises(FitError, match="at least 4 workloads, not 3"):
        fit(few)
