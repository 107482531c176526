"""The benchmarks: the matrix of cases, figures that are kept and found again, and the page."""

import dataclasses
import re
import shutil
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.support.markdown_tables import number, numbers, rows
from tests.support.stacks import Stack
from tilewright.bench import figure_store, runs
from tilewright.bench.baselines import TITLES, BaselineFigures, baselines_of
from tilewright.bench.bench import bench
from tilewright.bench.benchmarks_page import page
from tilewright.bench.cases import FULL, NO_REUSE, NO_WINOGRAD, SIDES, UNFUSED, VARIANTS, BenchCase, matrix
from tilewright.bench.counted_work import energy_of
from tilewright.bench.figure_store import FILES, FigureStore, source_digest
from tilewright.bench.runs import Depthwise, Figures, depthwise_of, run_case
from tilewright.cli.app import app
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.options import BEST
from tilewright.energy.energies import Amount, EnergyEstimate
from tilewright.energy.pricing import Pricing
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS, MemoryTiming, preset
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.page_origin import computer
from tilewright.tools.progress import Silence

CASE = BenchCase(network="lenet5_accel", machine=preset("base"), engine="fast")

SCALED = ["nano", "base", "large", "base_depthwise", "large_depthwise"]
"""Machines with a name that compute these networks: base_integer has no float32 scales."""


@pytest.fixture
def store(tmp_path):
    return FigureStore.open(tmp_path / "store")


def test_matrix_has_every_machine_and_each_option_once():
    cases = matrix(["lenet5"], ["nano", "base"], "fast")
    assert [(case.machine.name, case.options) for case in cases] == [
        ("nano", BEST), ("base", BEST), *(("base", options) for options in VARIANTS)]


def test_what_runs_in_rtl_is_predicted_too():
    cases = matrix(["lenet5"], ["nano"], "rtl")
    assert [(case.engine, case.options) for case in cases] == [
        ("fast", BEST), ("rtl", BEST), *(("rtl", options) for options in VARIANTS)]


@pytest.mark.parametrize(("arguments", "sentence"), [
    ((["alexnet"], ["base"], "fast"), r"Networks to bench .*not 'alexnet'$"),
    ((["lenet5"], ["huge"], "fast"), r"Machine .*not 'huge'$"),
    (([], ["base"], "fast"), r"Networks to bench .*at least one"),
    ((["lenet5"], ["base"], "slow"), r"Engine .*not 'slow'$")])
def test_unknown_names_are_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        matrix(*arguments)


def test_designs_and_their_memory_are_benched():
    cases = matrix(["lenet5"], ["nano", "base,lanes=8"], "fast", memory="latency=60")
    assert [case.machine.lanes for case in cases[:2]] == [1, 8]
    assert {case.timing.latency_cycles for case in cases} == {60}
    assert matrix(["lenet5"], ["nano"], "fast")[0].memory is None


def test_large_images_run_in_rtl_on_one_machine_unless_more_are_named():
    def machines(network, named, engine, options=BEST):
        return [case.machine.name for case in matrix([network], named, "rtl")
                if (case.engine, case.options) == (engine, options)]

    assert machines("vgg16-224", None, "rtl") == ["base"]
    assert machines("vgg16-224", None, "fast") == SCALED
    assert machines("vgg16-32", None, "rtl") == list(PRESETS)
    assert machines("vgg16-224", ["nano", "large"], "rtl") == ["nano", "large"]
    assert machines("vgg16-224", None, "fast", UNFUSED) == machines("vgg16-32", None, "rtl", UNFUSED) == ["base"]
    assert not machines("vgg16-224", None, "rtl", UNFUSED)


def test_every_network_has_a_name_and_an_input():
    assert set(FULL) <= set(SIDES)
    assert len(matrix(FULL, None, "fast")) == len(FULL) * (len(SCALED) + len(VARIANTS))


def test_an_option_that_changes_nothing_is_not_run(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda *_: ())
    asked = []
    monkeypatch.setattr("tilewright.bench.bench.run_case",
                        lambda case, *_: asked.append(case.options) or figures(winograd_layers=0))
    bench(matrix(["lenet5"], ["base"], "fast"), tmp_path / "page.md", Silence(), store=store)
    assert asked == [BEST, UNFUSED]


def test_baselines_are_those_of_the_main_networks_unless_all_are_asked_for(store, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda name, *_: asked.append(name) or ())
    monkeypatch.setattr("tilewright.bench.bench.run_case", lambda *_: figures())
    cases = matrix(["lenet5", "squeezenet-64"], ["base"], "fast")
    bench(cases, tmp_path / "page.md", Silence(), store=store)
    assert asked == ["lenet5"]
    bench(cases, tmp_path / "page.md", Silence(), store=store, all_baselines=True)
    assert asked[1:] == ["lenet5", "squeezenet-64"]


def test_what_would_simulate_too_long_is_only_predicted(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda *_: ())
    asked = []
    monkeypatch.setattr("tilewright.bench.bench.run_case",
                        lambda case, *_: asked.append(case.engine) or figures(cycles=1000))
    cases = matrix(["lenet5"], ["base"], "rtl")
    bench(cases, tmp_path / "page.md", Silence(), store=store, rtl_cycles=999)
    assert asked == ["fast"]
    bench(cases, tmp_path / "page.md", Silence(), store=store, rtl_cycles=1000)
    assert asked[1:] == ["fast", *["rtl"] * 4]


def test_what_the_compiler_refuses_is_named_and_the_rest_runs(store, tmp_path, monkeypatch):
    def run(case, *_):
        if case.machine.name == "nano":
            raise CompileError("Layer must fit")
        return figures()

    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda *_: ())
    monkeypatch.setattr("tilewright.bench.bench.run_case", run)
    output = tmp_path / "page.md"
    assert not bench(matrix(["lenet5"], ["nano", "base"], "fast"), output, Silence(), store=store)
    text = output.read_text()
    assert "## Not run\n\n- lenet5 on nano: Layer must fit\n" in text
    assert [row["machine"] for row in rows(text, "Networks")] == ["base"]


def test_an_interrupted_bench_goes_on_where_it_was(store, tmp_path, monkeypatch):
    cases = matrix(["lenet5"], ["base"], "fast")
    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda *_: ())
    real, done = runs.run_model, []

    def counted(model, machine, engine, input_file, *, options, run):
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(options)
        return real(model, machine, engine, input_file, options=options, run=run)

    monkeypatch.setattr(runs, "run_model", counted)
    with pytest.raises(KeyboardInterrupt):
        bench(cases, tmp_path / "page.md", Silence(), store=store)
    monkeypatch.setattr(runs, "run_model", real)
    assert bench(cases, tmp_path / "page.md", Silence(), store=store)
    assert done == [BEST]
    assert len(list(store.folder.iterdir())) == 2  # fused and apart


def test_figures_are_of_the_run_and_its_plan(store):
    figures = run_case(CASE, store, Silence())
    assert figures.matches
    assert figures.compared == figures.layers == 8
    assert (figures.macs, figures.multipliers) == (953_472, 80)
    assert figures.macs_per_multiplier_cycle == pytest.approx(953_472 / 80 / figures.cycles)
    assert figures.roofline_share == figures.roofline_cycles / figures.cycles
    assert figures.energy.low_uj < figures.energy.total_uj < figures.energy.high_uj
    assert 0 < figures.winograd_layers < figures.layers
    assert 0 < sum(figures.layer_cycles) < figures.cycles
    assert (figures.core_cycles, figures.depthwise) == (0, ())


def test_depthwise_convolutions_are_counted_by_stride():
    stack = Stack((16, 10, 10))
    for stride in (1, 2, 1, 1):
        stack.conv(16, 3, stride=stride, pad=1)
    network = stack.network("separable")
    layers = [dataclasses.replace(layer, groups=16, weights=layer.weights[:, :1]) for layer in network.layers[:3]]
    network = dataclasses.replace(network, layers=(*layers, network.layers[3]))
    costs = [cost(macs=layer.macs, cycles=10 ** index) for index, layer in enumerate(network.layers)]
    assert depthwise_of(network, cost(layers=costs)) == (
        Depthwise(stride=1, layers=2, macs=9 * 16 * (100 + 25), cycles=101),
        Depthwise(stride=2, layers=1, macs=9 * 16 * 25, cycles=10))


cost = SimpleNamespace
"""Of a report what the figures look at."""


def test_layers_that_the_machine_needs_in_parts_are_counted_as_such(store):
    whole = dataclasses.replace(CASE, network="squeezenet-64", machine=preset("nano"))
    small = dataclasses.replace(whole, machine=dataclasses.replace(preset("nano"), activation_bytes=8192))
    figures, parts = (run_case(case, store, Silence()) for case in (whole, small))
    assert parts.layers > figures.layers == figures.compared
    assert parts.compared == parts.layers


def test_what_is_stored_is_priced_as_the_run_was_and_in_any_technology(store, tmp_path):
    model = runs.find_model("lenet5_accel", Silence())
    for pricing in (Pricing(), Pricing(technology="sky130", dram="ddr3")):
        report = runs.run_model(model, CASE.machine, "fast", None,
                                     run=RunOptions(pricing=pricing)).report
        again = energy_of(run_case(CASE, store, Silence()).work, CASE.machine, pricing)
        assert again.total_uj == pytest.approx(report.energy.total_uj, rel=1e-9)
        assert again.total.relative_high_uj == pytest.approx(report.energy.total.relative_high_uj, rel=1e-9)


def test_a_change_of_prices_runs_nothing_again(tmp_path, monkeypatch):
    for name, same in (("energy/technology/generic45.toml", True), ("energy/estimate.py", True),
                       ("rtl/array/lane.py", False)):
        before = source_digest()
        real = figure_store.Path.read_bytes
        monkeypatch.setattr(figure_store.Path, "read_bytes", lambda path, name=name, real=real: real(path) + (
            b"#" if path.as_posix().endswith(name) else b""))
        assert (source_digest() == before) is same
        monkeypatch.undo()


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

    monkeypatch.setattr(runs, "run_model", never)
    assert run_case(CASE, store, Silence()) == first
    assert run_case(CASE, FigureStore.open(store.folder), Silence()) == first
    with pytest.raises(AssertionError):
        run_case(CASE, dataclasses.replace(store, fresh=True), Silence())
    with pytest.raises(AssertionError):
        run_case(CASE, dataclasses.replace(store, sources="others"), Silence())


@pytest.mark.parametrize("name", ["isa/numerics.py", "sim/verilator/harness/obi.h", "runtime/session.py"])
def test_figures_are_of_the_sources_as_they_are(tmp_path, monkeypatch, name):
    for each in (*FILES, "isa/numerics.py", "sim/verilator/harness/obi.h"):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(figure_store.SOURCES / each, tmp_path / each)
    monkeypatch.setattr(figure_store, "SOURCES", tmp_path)
    before = source_digest()
    assert source_digest() == before
    with (tmp_path / name).open("a") as file:
        file.write(" ")
    assert source_digest() != before


def test_the_page_names_machine_memory_and_engine_in_every_row(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda *_: ())
    output = tmp_path / "benchmarks.md"
    assert bench(matrix(["lenet5_accel"], ["nano", "base"], "fast"), output, Silence(), store=store)
    text = output.read_text()
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles == ["Networks", "Convolution and max pooling fused", "conv23 and conv", "Column reuse",
                      "Simulation", "Beside the paper"]
    for title in titles[:-1]:
        for row in rows(text, title):
            timing = MemoryTiming.default(preset(row["machine"]))
            assert row["network, input"].startswith("lenet5_accel,")
            assert numbers(row["memory"]) == [timing.latency_cycles, timing.bytes_per_cycle]
            assert row["engine"] == "fast" if "engine" in row else row["seconds, fast"] and not row["seconds, rtl"]
    assert {row["machine"] for row in rows(text, "Networks")} == {"nano", "base"}
    paper, tiles = rows(text, "Beside the paper"), rows(text, "Beside the paper", 1)
    assert {number(row["latency cut, paper"]) for row in paper} == {76.6}
    assert 21 in [number(row["cycles per tile of F(2×2,3×3) and pair of channels"]) for row in tiles]
    assert "`tilewright bench`" in text
    assert computer() in text


def figures(**changes):
    usual = Figures(cycles=1000, macs=64_000, multipliers=64, roofline_cycles=900, memory_bytes=1, bytes_moved=1,
                    buffer_bytes_read=1, work=(), energy=EnergyEstimate({"array": Amount(2.0, 1.5, 3.0, 1.0, 4.0)}),
                    seconds=1.0, cycles_per_second=1000.0, matches=True, compared=2, nearly=0, loose=0, tile_cycles=1.0,
                    winograd_layers=1, fused_pools=1, layer_cycles=(100, 800), core_cycles=0, depthwise=())
    return dataclasses.replace(usual, **changes)


def test_the_page_shows_how_far_predictions_are_off_and_what_differs_from_onnx_runtime():
    simulated = dataclasses.replace(CASE, engine="rtl")
    predicted = figures(cycles=1010, layer_cycles=(100, 19_000, 52_000))
    text = page({CASE: predicted, simulated: figures(matches=False, layer_cycles=(50, 20_000, 50_000))},
                {"lenet5_accel": ()})
    (row,) = rows(text, "Simulation")
    assert (number(row["cycles, fast"]), number(row["cycles, rtl"])) == (1010, 1000)
    # 50 of 100 cycles is a lot too, but of a short layer.
    assert [number(cell) for head, cell in row.items() if head.startswith(("predicted", "largest"))] == [1.0, -5.0]
    (network,) = rows(text, "Networks")
    assert network["engine"] == "rtl"
    assert (number(network["MACs"]), number(network["cycles"])) == (64_000, 1000)
    assert number(network["MAC per multiplier and cycle"]) == 64_000 / 64 / 1000
    assert (number(network["roofline, cycles"]), number(network["share of roofline"])) == (900, 90)
    assert number(network["cycles in layers that run on the core"]) == 0
    assert numbers(network["layers equal to ONNX Runtime"]) == []


@pytest.mark.parametrize(("changes", "layers"), [
    ({}, [2, 2]), ({"compared": 1}, [1, 2]), ({"nearly": 1}, [2, 2, 1]), ({"loose": 1}, [1, 2, 1]),
    ({"matches": False}, [])])
def test_the_page_says_how_many_layers_were_compared(changes, layers):
    (row,) = rows(page({CASE: figures(**changes)}, {"lenet5_accel": ()}), "Networks")
    assert numbers(row["layers equal to ONNX Runtime"]) == layers


def test_the_page_shows_depthwise_convolutions_and_what_the_core_computes():
    text = page({CASE: figures(core_cycles=250, depthwise=(Depthwise(stride=2, layers=3, macs=9600, cycles=300),))},
                {"lenet5_accel": ()})
    assert number(rows(text, "Networks")[0]["cycles in layers that run on the core"]) == 25
    (row,) = rows(text, "Depthwise convolutions")
    assert [number(row[head]) for head in ("stride", "layers", "MACs", "cycles")] == [2, 3, 9600, 300]
    assert number(row["MAC per multiplier and cycle"]) == 9600 / 64 / 300
    assert number(row["of the network's cycles"]) == 30


PLAIN = BaselineFigures(core="cv32e40x", cycles=200_000, instructions=100_000, macs=64_000, measured_layers=2, layers=2,
                        matches=True)
SIMD = BaselineFigures(core="cv32e40p", cycles=40_000, instructions=30_000, macs=64_000, measured_layers=1, layers=2,
                       matches=True)


def test_both_baselines_stand_on_the_page_and_what_is_saved_over_each():
    text = page({CASE: figures()}, {"lenet5_accel": (PLAIN, SIMD)})
    (row,) = rows(text, "Speed-up")
    assert (number(row["plain C, cycles"]), number(row["XPULP SIMD, cycles"])) == (200_000, 40_000)
    assert (number(row["speed-up over plain C"]), number(row["speed-up over XPULP SIMD"])) == (200, 40)
    assert (number(row["latency cut over plain C"]), number(row["latency cut over XPULP SIMD"])) == (99.5, 97.5)
    # What was run in parts is marked.
    assert [head for head, cell in row.items() if cell.startswith("~")] == ["XPULP SIMD, cycles"]
    for baseline, head in ((PLAIN, "energy cut over plain C"), (SIMD, "energy cut over XPULP SIMD")):
        assert number(row[head]) == pytest.approx(100 * (1 - 2.0 / baseline.energy.total_uj), abs=0.06)
    for baseline, shown in zip((PLAIN, SIMD), rows(text, "Baselines"), strict=True):
        assert shown["baseline"].startswith(TITLES[baseline.core])
        assert numbers(shown["layers run whole"]) == [baseline.measured_layers, baseline.layers]
        assert (number(shown["cycles"]), number(shown["instructions"])) == (baseline.cycles, baseline.instructions)
        assert number(shown["cycles per MAC"]) == pytest.approx(baseline.cycles / baseline.macs, abs=0.0051)
        assert numbers(shown["energy, µJ (range)"]) == pytest.approx(
            [baseline.energy.total_uj, baseline.energy.low_uj, baseline.energy.high_uj], rel=0.006)
        assert ("in parts" in shown["baseline"]) is baseline.in_parts
        assert shown["equal to the integer reference"] == "yes"


@pytest.mark.parametrize(("found", "latency"), [((PLAIN, SIMD), [[99.5], [97.5]]), ((SIMD,), [[], [97.5]])])
def test_cuts_stand_beside_those_of_the_paper(found, latency):
    text = page({CASE: figures()}, {"lenet5_accel": found})
    (row,) = rows(text, "Beside the paper")
    assert (row["network"], number(row["latency cut, paper"]), number(row["energy cut, paper"])) == (
        "LeNet-5", 76.6, 74.8)
    assert [numbers(row[head]) for head in ("ours, over plain C", "ours, over XPULP SIMD")] == latency
    energy_cut = [100 * (1 - 2.0 / PLAIN.energy.total_uj)] if PLAIN in found else []
    assert numbers(row["ours, over plain C 2"]) == pytest.approx(energy_cut, abs=0.06)
    assert row["ours is of"] == "lenet5_accel, 1×32×32, base, engine fast"
    assert "no clock assumed" in " ".join(text.split())


def test_a_baseline_that_differs_from_the_reference_fails_the_bench(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.bench.bench.run_case", lambda *_: figures())
    for matches in (True, False):
        monkeypatch.setattr("tilewright.bench.bench.baselines_of",
                            lambda *_, found=matches: (PLAIN, dataclasses.replace(SIMD, matches=found)))
        done = bench(matrix(["lenet5"], ["base"], "fast"), tmp_path / "page.md", Silence(), store=store)
        assert done is matches


@pytest.mark.slow
def test_baselines_are_run_once_on_both_cores(store, tmp_path, monkeypatch):
    first = baselines_of("lenet5", store, Silence())
    assert [each.core for each in first] == ["cv32e40x", "cv32e40p"]
    assert all(each.matches and each.measured_layers == each.layers == 5 for each in first)
    plain, simd = first
    assert plain.macs == simd.macs == 416_520
    assert 3 * simd.cycles < plain.cycles
    assert plain.energy.low_uj < plain.energy.total_uj < plain.energy.high_uj
    assert simd.energy.total_uj < plain.energy.total_uj
    monkeypatch.setattr("tilewright.bench.baselines.run_model_alone", None)
    assert baselines_of("lenet5", store, Silence()) == first


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr("tilewright.bench.bench.baselines_of", lambda *_: ())
    output = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["bench", "--only", "lenet5", "--machines", "base", "--engine", "fast", "-o",
                                    str(output)])
    assert done.exit_code == 0, done.output
    assert [row["machine"] for row in rows(output.read_text(), "Networks")] == ["base"]
    assert "`tilewright bench --engine fast --only lenet5 --machines base`" in output.read_text()


def test_quick_and_only_together_are_refused():
    done = CliRunner().invoke(app, ["bench", "--quick", "--only", "lenet5"])
    assert done.exit_code == 2
    assert "Options --quick and --only exclude each other: both choose the networks" in done.stderr
