"""The page on energy: prices of stored counts in every technology, and savings whose ranges hold the estimate."""

import re

import pytest

from tests.support import markdown_tables
from tilewright.bench.baselines import BaselineFigures
from tilewright.bench.cases import NO_WINOGRAD, BenchCase
from tilewright.bench.counted_work import energy_of
from tilewright.bench.energy_page import energy_page
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.runs import run_case
from tilewright.energy.baseline_energy import energy_of_baseline
from tilewright.energy.pricing import Pricing
from tilewright.energy.technology_text import technologies
from tilewright.isa.machine import preset
from tilewright.tools.markdown import digits
from tilewright.tools.progress import Silence

CASE = BenchCase(network="lenet5_accel", machine=preset("base"), engine="fast")
DIRECT = BenchCase(network="lenet5_accel", machine=preset("base"), engine="fast", options=NO_WINOGRAD)
PLAIN = BaselineFigures(core="cv32e40x", cycles=3_000_000, instructions=2_800_000, macs=953_472, measured_layers=7,
                        layers=8, matches=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    store = FigureStore.open(tmp_path_factory.mktemp("store"))
    return {case: run_case(case, store, Silence()) for case in (CASE, DIRECT)}


@pytest.fixture(scope="module")
def text(results):
    return energy_page(results, {"lenet5_accel": (PLAIN,)})


def rows(text, title):
    return [list(row.values()) for row in markdown_tables.rows(text, title)]


@pytest.mark.parametrize("technology", ["generic45", "sky130"])
def test_a_technology_that_is_not_for_ratios_alone_has_its_networks(text, results, technology):
    total = energy_of(results[CASE].work, CASE.machine, Pricing(technology=technology)).total
    (row,) = rows(text, f"Networks in {technology}")
    assert row[:5] == ["lenet5_accel, 1×32×32", "base", "20 + 8 B", "fast", digits(total.uj)]
    assert row[5] == f"{digits(total.relative_low_uj)} … {digits(total.relative_high_uj)}"
    assert total.absolute_low_uj < total.relative_low_uj < total.uj < total.relative_high_uj < total.absolute_high_uj


def test_components_have_shares_in_the_technology_for_absolute_figures(text):
    assert text.count("## Components in") == 1
    (shares,) = rows(text, "Components in sky130")
    assert sum(float(each) for each in shares[4:]) == pytest.approx(100, abs=1)


def test_savings_are_against_the_same_technology_and_their_ranges_hold_them(text, results):
    (row,) = rows(text, "Savings over the core alone")
    assert row[4] == "74.8 %"
    for technology, cell in zip(technologies(), row[5:5 + len(technologies())], strict=True):
        ours = energy_of(results[CASE].work, CASE.machine, Pricing(technology=technology)).total_uj
        theirs = energy_of_baseline(PLAIN, Pricing(technology=technology)).total_uj
        found = re.fullmatch(r"~(\S+) % \((\S+) … (\S+)\)", cell)
        saving, low, high = map(float, found.groups())
        assert saving == pytest.approx(100 * (1 - ours / theirs), abs=0.06)
        assert low < saving < high
    assert set(row[5 + len(technologies()):]) == {"–"}


def test_clock_gates_are_on_both_sides_of_what_is_saved_with_them(text, results):
    (row,) = rows(text, "Clock gating")
    names = technologies()
    for technology, changed, saved in zip(names, row[4:4 + len(names)], row[4 + len(names):4 + 2 * len(names)],
                                          strict=True):
        plain, gated = (Pricing(technology=technology, gated=each) for each in (False, True))
        before, after = (energy_of(results[CASE].work, CASE.machine, each).total_uj for each in (plain, gated))
        theirs = energy_of_baseline(PLAIN, gated).total_uj
        assert theirs < 0.9 * energy_of_baseline(PLAIN, plain).total_uj
        assert float(changed.split()[0]) == pytest.approx(100 * (after / before - 1), abs=0.06)
        assert float(saved.split()[0].lstrip("~")) == pytest.approx(100 * (1 - after / theirs), abs=0.06)
    assert set(row[4 + 2 * len(names):]) == {"–"}


def test_what_winograd_is_worth_is_the_difference_of_two_runs(text, results):
    (row,) = rows(text, "What each choice is worth")
    assert row[0] == "conv23"
    for technology, cell in zip(technologies(), row[6:], strict=True):
        full, direct = (energy_of(results[case].work, case.machine, Pricing(technology=technology)).total_uj
                        for case in (CASE, DIRECT))
        assert float(cell.split()[0]) == pytest.approx(100 * (full / direct - 1), abs=0.06)
