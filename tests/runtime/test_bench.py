"""The benchmarks: the matrix of cases, figures that are kept and found again, and the page."""

import dataclasses
import re

import pytest
from typer.testing import CliRunner

from tilewright.compiler.options import BEST
from tilewright.isa.machine import PRESETS, preset
from tilewright.runtime.bench import runs
from tilewright.runtime.bench.baselines import BaselineFigures
from tilewright.runtime.bench.bench import bench
from tilewright.runtime.bench.cases import NO_REUSE, NO_WINOGRAD, UNFUSED, VARIANTS, Case, matrix
from tilewright.runtime.bench.page import page
from tilewright.runtime.bench.runs import Figures, Store, run_case
from tilewright.runtime.cli import app
from tilewright.runtime.errors import InputError
from tilewright.runtime.progress import Silence

CASE = Case(network="lenet5_accel", machine=preset("base"), engine="fast")


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store")


def test_matrix_has_every_machine_and_each_option_once():
    cases = matrix(["lenet5"], ["nano", "base"], "fast")
    assert [(case.machine.name, case.options) for case in cases] == [
        ("nano", BEST), ("base", BEST), *(("base", options) for options in VARIANTS)]


def test_what_runs_in_rtl_is_predicted_too():
    cases = matrix(["lenet5"], ["nano"], "rtl")
    assert [(case.engine, case.options) for case in cases] == [
        ("fast", BEST), ("rtl", BEST), *(("rtl", options) for options in VARIANTS)]


@pytest.mark.parametrize(("arguments", "sentence"), [
    ((["alexnet"], ["base"], "fast"), r"^Networks to bench must be of lenet5, .*, not 'alexnet'$"),
    ((["lenet5"], ["huge"], "fast"), r"^Machines to bench must be of nano, base, large, not 'huge'$"),
    (([], ["base"], "fast"), r"^Networks to bench must be at least one of lenet5, "),
    ((["lenet5"], ["base"], "slow"), r"^Engine must be one of rtl, fast, not 'slow'$")])
def test_unknown_names_are_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        matrix(*arguments)


def test_large_images_run_on_one_machine_unless_more_are_named():
    assert {case.machine.name for case in matrix(["vgg16-224"], None, "fast")} == {"base"}
    assert {case.machine.name for case in matrix(["vgg16-32"], None, "fast")} == set(PRESETS)
    assert {case.machine.name for case in matrix(["vgg16-224"], ["nano", "large"], "fast")} == {"nano", "large"}


def test_an_option_that_changes_nothing_is_not_run(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.runtime.bench.bench.baselines_of", lambda *_: ())
    asked = []
    monkeypatch.setattr("tilewright.runtime.bench.bench.run_case",
                        lambda case, *_: asked.append(case.options) or figures(winograd_layers=0))
    bench(matrix(["lenet5"], ["base"], "fast"), tmp_path / "page.md", Silence(), store=store)
    assert asked == [BEST, UNFUSED]


def test_what_would_simulate_too_long_is_only_predicted(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.runtime.bench.bench.baselines_of", lambda *_: ())
    asked = []
    monkeypatch.setattr("tilewright.runtime.bench.bench.run_case",
                        lambda case, *_: asked.append(case.engine) or figures(cycles=1000))
    cases = matrix(["lenet5"], ["base"], "rtl")
    bench(cases, tmp_path / "page.md", Silence(), store=store, rtl_cycles=999)
    assert asked == ["fast"]
    bench(cases, tmp_path / "page.md", Silence(), store=store, rtl_cycles=1000)
    assert asked[1:] == ["fast", *["rtl"] * 4]


def test_figures_are_of_the_run_and_its_plan(store):
    figures = run_case(CASE, store, Silence())
    assert figures.matches
    assert (figures.macs, figures.multipliers) == (953_472, 64)
    assert figures.macs_per_multiplier_cycle == pytest.approx(953_472 / 64 / figures.cycles)
    assert figures.roofline_share == figures.roofline_cycles / figures.cycles
    assert figures.energy_low_uj < figures.energy_uj < figures.energy_high_uj
    assert 0 < figures.winograd_layers < figures.layers


def test_options_show_in_the_figures(store):
    best, apart, dots, whole = (run_case(dataclasses.replace(CASE, options=options), store, Silence())
                                for options in (BEST, UNFUSED, NO_WINOGRAD, NO_REUSE))
    assert apart.layers > best.layers
    assert apart.bytes_moved > best.bytes_moved
    assert (dots.winograd_layers, dots.tile_cycles) == (0, None)
    assert whole.buffer_bytes_read > best.buffer_bytes_read
    assert whole.cycles == best.cycles


def test_a_run_is_done_once(store, monkeypatch):
    first = run_case(CASE, store, Silence())

    def never(*_, **__):
        raise AssertionError("a stored run must not be done again")

    monkeypatch.setattr(runs, "evaluate_model", never)
    assert run_case(CASE, store, Silence()) == first
    with pytest.raises(AssertionError):
        run_case(CASE, dataclasses.replace(store, fresh=True), Silence())
    with pytest.raises(AssertionError):
        run_case(CASE, dataclasses.replace(store, sources="others"), Silence())


def test_the_page_names_machine_memory_and_engine_in_every_row(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.runtime.bench.bench.baselines_of", lambda *_: ())
    output = tmp_path / "benchmarks.md"
    assert bench(matrix(["lenet5_accel"], ["nano", "base"], "fast"), output, Silence(), store=store)
    text = output.read_text()
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles == ["Networks", "Speed-up", "Convolution and max pooling fused", "conv23 and conv", "Column reuse",
                      "Simulation", "Beside the paper"]
    for line in text.splitlines():
        if line.startswith("| lenet5_accel"):
            assert re.match(r"\| lenet5_accel, 1×32×32 \| (nano \| 20 \+ 4|base \| 20 \+ 8) B \| fast \| ", line)
        if line.startswith("| "):
            assert line.endswith(" |")
    assert "| 21 | paper, CONV23 | |" in text
    assert "| LeNet-5 | 76.6 % |" in text
    assert "Not run as a baseline, as a whole run would take more than ten minutes: lenet5_accel." in text


def figures(**changes):
    usual = Figures(cycles=1000, macs=64_000, multipliers=64, roofline_cycles=900, memory_bytes=1, bytes_moved=1,
                    buffer_bytes_read=1, energy_uj=2.0, energy_low_uj=1.0, energy_high_uj=4.0, technology="t",
                    seconds=1.0, cycles_per_second=1000.0, matches=True, tile_cycles=1.0, winograd_layers=1,
                    fused_pools=1, layers=2)
    return dataclasses.replace(usual, **changes)


def test_the_page_shows_how_far_predictions_are_off_and_what_differs_from_onnx_runtime():
    simulated = dataclasses.replace(CASE, engine="rtl")
    text = page({CASE: figures(cycles=1010), simulated: figures(matches=False)}, {"lenet5_accel": ()})
    assert "| fast | 1,010 | +1.0 % |" in text
    networks = text.split("## Speed-up")[0]
    assert "| rtl | 64,000 | 1,000 | 1.00 | 900 | 90.0 % |" in networks
    assert "| fast |" not in networks
    assert networks.rstrip().endswith("| **no** |")


def test_cuts_stand_beside_those_of_the_paper():
    other = BaselineFigures(name="plain C", cycles=200_000, instructions=1, energy_uj=8.0, energy_low_uj=4.0,
                            energy_high_uj=16.0)
    text = page({CASE: figures()}, {"lenet5_accel": (other,)})
    assert "| 200,000 | 200 × | 99.500 % | 8 (4 … 16) | 75.0 % |" in text
    assert ("| LeNet-5 | 76.6 % | 99.500 % | 74.8 % | 75.0 % | lenet5_accel, 1×32×32, base, engine fast | plain C |"
            in text)
    assert "Not run as a baseline" not in text


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr("tilewright.runtime.bench.bench.baselines_of", lambda *_: ())
    output = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["bench", "--networks", "lenet5", "--machines", "base", "--engine", "fast", "-o",
                                    str(output)])
    assert done.exit_code == 0, done.output
    assert "| lenet5, 1×32×32 | base |" in output.read_text()
