"""The committed calibration: page and technology file show its JSON, and its errors follow from what was measured."""

import copy
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support import markdown_tables
from tilewright.energy.actions import CORE_COMPONENTS
from tilewright.energy.estimate import Technology
from tilewright.energy.technology_text import FOLDER, read_text
from tilewright.hardware.calibration import calibration as calibrate
from tilewright.hardware.calibration.calibration_page import page
from tilewright.hardware.calibration.captures import Workload
from tilewright.hardware.calibration.core_page import core_section
from tilewright.hardware.calibration.cores import CoreResult
from tilewright.hardware.calibration.process import LayoutEffects
from tilewright.hardware.calibration.processes import PROCESSES
from tilewright.hardware.calibration.record import CalibrationRecord, CoreRecord
from tilewright.hardware.calibration.technology_file import technology_text
from tilewright.hardware.gates.core_netlist import CORES
from tilewright.hardware.gates.core_waves import CoreCounts
from tilewright.hardware.gates.fit import FitError, fit, fit_gated, non_negative
from tilewright.hardware.gates.mapping import plain_verilog
from tilewright.hardware.gates.measure import Measurement
from tilewright.isa.machine import ARRAYS, preset
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.sim.verilog.energy_blocks import ARRAY_BLOCKS, ENERGY_BLOCKS
from tilewright.tools.progress import Silence

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {name: (DOCS / process.page).with_suffix("") for name, process in PROCESSES.items()}
ALL = {name: json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for name, path in PAGES.items()}
FOUND = ALL["osu018"]
EACH_BLOCK = [(name, block) for name, found in ALL.items() for block in found["blocks"]]

each_process = pytest.mark.parametrize("process", ALL)
each_core = pytest.mark.parametrize(("process", "name"), [(name, core) for name in ALL for core in CORES])


def measurements(block):
    """Return what the JSON has measured of a block, as over one cycle."""
    return {name: Measurement(
        cycles=1, registers=block["registers"], register_cycles=each["clocked_registers"],
        register_toggles=each["register_toggles_per_cycle"],
        switching=each["pJ_per_cycle"] - each["clock_pJ_per_cycle"],
        internal=0.0, clock=each["clock_pJ_per_cycle"], leakage=block["leakage_nW"], area=block["area_um2"],
        cells=block["cells"]) for name, each in block["measured"].items()}


def rows(page, title):
    """Return the rows of the table under a title by their first cell: the others, column by column."""
    return {first: rest for first, *rest in (row.values() for row in markdown_tables.rows(page, title))}


def number(cell):
    """Return a cell's number: per cent as a share."""
    value = float(cell.removesuffix("%").replace(",", ""))
    return value / 100 if cell.endswith("%") else value


@each_process
def test_the_record_is_written_back_as_it_was_read(process):
    text = PAGES[process].with_suffix(".json").read_text(encoding="utf-8")
    assert json.dumps(CalibrationRecord.from_json(json.loads(text)).to_json(), indent=1) + "\n" == text


@each_process
def test_page_and_technology_file_were_written_by_the_present_templates(process):
    found = CalibrationRecord.from_json(ALL[process])
    assert PAGES[process].with_suffix(".md").read_text(encoding="utf-8") == page(found)
    assert (FOLDER / f"{process}.toml").read_text(encoding="utf-8") == technology_text(found)


def test_a_gated_price_of_zero_gives_a_technology_file_that_can_be_read():
    found = copy.deepcopy(ALL["osu018"])
    found["blocks"]["store"]["gated_price"]["pJ"] = 0.0
    text = technology_text(CalibrationRecord.from_json(found))
    read_text(text)
    low, high, _ = tomllib.loads(text)["gated_price"]["relative"][0]
    assert 0 < low <= 1 <= high


@each_process
def test_the_page_shows_what_was_measured_of_each_block(process):
    text, blocks = PAGES[process].with_suffix(".md").read_text(encoding="utf-8"), ALL[process]["blocks"]
    shown = rows(text, "Prices and errors")
    assert list(shown) == list(blocks)
    for name, block in blocks.items():
        cells, registers, area, cycle, toggle, energies, clock, rms, largest = shown[name]
        assert (number(cells), number(registers)) == (block["cells"], block["registers"])
        assert number(area) == pytest.approx(block["area_um2"] / 1e6, abs=0.005)
        assert number(cycle) == pytest.approx(block["prices_pJ"]["register_cycle"], abs=0.0005)
        assert number(toggle) == pytest.approx(block["prices_pJ"]["register_toggle"], abs=0.005)
        measured = np.array([each["pJ_per_cycle"] for each in block["measured"].values()])
        clocks = np.array([each["clock_pJ_per_cycle"] for each in block["measured"].values()])
        assert [number(each) for each in energies.split(" to ")] == pytest.approx(
            [measured.min(), measured.max()], abs=0.5)
        assert number(clock) == pytest.approx(clocks.sum() / measured.sum(), abs=0.005)
        errors = np.array(list(block["held_out"].values()))
        assert number(rms) == pytest.approx(np.sqrt(np.mean(errors**2)), abs=0.0005)
        assert number(largest) == pytest.approx(np.abs(errors).max(), abs=0.0005)


@each_process
def test_the_page_shows_every_error_and_every_window(process):
    text, found = PAGES[process].with_suffix(".md").read_text(encoding="utf-8"), ALL[process]
    shown, windows = rows(text, "Error by window, held out"), rows(text, "Windows")
    assert list(shown) == list(windows) == list(found["workloads"])
    for window, errors in shown.items():
        expected = [*(block["held_out"][window] for block in found["blocks"].values()),
                    found["sum_of_blocks"]["held_out"][window]]
        assert [number(each) for each in errors] == pytest.approx([100 * each for each in expected], abs=0.051)
        model, layer, what = windows[window]
        assert found["workloads"][window] == {"model": model, "layer": int(layer), "what": what,
                                              "where": found["workloads"][window]["where"]}


@each_core
def test_the_page_shows_what_an_instruction_took_in_each_window(process, name):
    core = ALL[process]["cores"][name]
    shown = rows(PAGES[process].with_suffix(".md").read_text(encoding="utf-8"), f"The RISC-V core {name.upper()}")
    assert list(shown) == list(core["windows"])
    for window, each in core["windows"].items():
        what, cycles, retired, accesses, energy, instruction, error = shown[window]
        assert (what, int(cycles), int(retired), int(accesses)) == (
            each["what"], each["cycles"], each["retired"], each["data_accesses"])
        assert number(energy) == pytest.approx(each["pJ_per_cycle"], abs=0.5)
        without_clock = each["pJ_per_cycle"] - each["clock_pJ_per_cycle"]
        assert number(instruction) == pytest.approx(without_clock * each["cycles"] / each["retired"], abs=0.5)
        assert number(error) == pytest.approx(100 * core["held_out"][window], abs=0.051)


def test_the_page_shows_what_clock_gates_save():
    shown = rows(PAGES["osu018"].with_suffix(".md").read_text(encoding="utf-8"), "Clock gating")
    assert list(shown) == list(FOUND["blocks"])
    for name, block in FOUND["blocks"].items():
        before, after = (np.mean([block[key][window]["pJ_per_cycle"] for window in block["gated"]])
                         for key in ("measured", "gated"))
        clocked = np.mean([each["clocked_registers"] for each in block["gated"].values()]) / block["registers"]
        idle, left = block["idle_clock_pJ_per_cycle"], block["idle_clock_gated_pJ_per_cycle"]
        expected = [before, after, 1 - after / before, block["gated_area_um2"] / block["area_um2"] - 1, clocked, idle,
                    left, left / idle, block["gated_price"]["pJ"], block["gated_price"]["rms"],
                    block["gated_price"]["largest"]]
        errors = [0.5, 0.5, 0.005, 0.005, 0.005, 0.05, 0.05, 0.005, 0.005, 0.0005, 0.0005]
        assert np.all(np.abs(np.array([number(each) for each in shown[name]]) - expected) <= np.array(errors) * 1.02)


@each_process
def test_the_technology_file_has_the_prices_that_were_measured(process):
    data, found = tomllib.loads((FOLDER / f"{process}.toml").read_text(encoding="utf-8")), ALL[process]
    cycles, toggles = [], []
    for name, block in found["blocks"].items():
        entries = data["block"][name]
        clocks = [each["clock_pJ_per_cycle"] for each in block["measured"].values()]
        cycles.append(np.mean(clocks) / block["elaborated_registers"])
        toggles.append(block["prices_pJ"]["register_toggle"])
        assert entries["register_cycle"]["pJ"] == pytest.approx(cycles[-1], rel=1e-3)
        assert entries["register_toggle"]["pJ"] == pytest.approx(toggles[-1], rel=1e-3)
        ((low, high, _),) = entries["register_toggle"]["relative"]
        ratios = [1 / (1 + error) for error in block["held_out"].values()]
        assert (low, high) == pytest.approx((min(1, *ratios), max(1, *ratios)), rel=5e-3)
        if block["gated"]:
            remainder = block["idle_clock_gated_pJ_per_cycle"] / block["idle_clock_pJ_per_cycle"]
            assert entries["gating"]["remainder"] == pytest.approx(remainder, rel=1e-3)
            assert entries["gated_price"]["factor"] == pytest.approx(block["gated_price"]["pJ"] / toggles[-1], rel=1e-3)
    assert data["price"]["register_cycle"]["pJ"] == pytest.approx(np.mean(cycles), rel=1e-3)
    # As far from the lowest block as from the highest.
    middle = data["price"]["register_toggle"]["pJ"]
    assert middle / min(toggles) == pytest.approx(max(toggles) / middle, rel=2e-3)
    leakage = sum(block["leakage_nW"] for block in found["blocks"].values())
    registers = sum(block["elaborated_registers"] for block in found["blocks"].values())
    assert data["leakage"]["per_register_nW"] == pytest.approx(leakage / registers, rel=1e-3)


def test_a_calibration_of_a_machine_is_of_the_other_arrays_too(monkeypatch):
    def blocks_of(process, machine, workloads, steps, blocks):
        return machine.array, machine.lanes, tuple(blocks)

    monkeypatch.setattr(calibrate, "calibrate_cores", lambda path, process, steps: {})
    monkeypatch.setattr(calibrate, "calibrate_blocks", blocks_of)
    monkeypatch.setattr(calibrate, "replace", lambda found, cores, arrays: (found, arrays))
    process = replace(PROCESSES["osu018"], library=lambda steps: Path("none"))
    whole, others = calibrate.calibrate(process, preset("base"), [], Silence())
    assert whole == ("winograd_inner", 8, ENERGY_BLOCKS)
    assert others == {"winograd": ("winograd", 4, ARRAY_BLOCKS),
                      "plain": ("plain", 4, ARRAY_BLOCKS), "inner": ("inner", 8, ARRAY_BLOCKS)}


@pytest.mark.parametrize(("process", "name"), EACH_BLOCK)
def test_prices_and_errors_follow_from_what_was_measured(process, name):
    block = ALL[process]["blocks"][name]
    fitted = fit(measurements(block))
    assert fitted.prices == pytest.approx(block["prices_pJ"], rel=1e-6)
    assert fitted.held_out == pytest.approx(block["held_out"], abs=1e-6)


@each_process
def test_errors_with_each_window_left_out_are_within_10_percent_rms_and_20_at_most(process):
    errors = np.array(list(ALL[process]["sum_of_blocks"]["held_out"].values()))
    assert len(errors) >= 10
    assert np.sqrt(np.mean(errors**2)) <= 0.10
    assert np.abs(errors).max() <= 0.20


@each_process
def test_the_sum_of_blocks_is_that_of_their_errors(process):
    found = ALL[process]
    assert set(found["blocks"]) == set(ENERGY_BLOCKS)
    for name, error in found["sum_of_blocks"]["held_out"].items():
        blocks = found["blocks"].values()
        measured = sum(block["measured"][name]["pJ_per_cycle"] for block in blocks)
        modelled = sum(block["measured"][name]["pJ_per_cycle"] * (1 + block["held_out"][name]) for block in blocks)
        assert error == pytest.approx(modelled / measured - 1, abs=1e-9)


def test_prices_with_clock_gates_follow_from_what_was_measured():
    for block in FOUND["blocks"].values():
        # Apart from the clock that an idle block has left, all goes by toggles.
        idle, found = block["idle_clock_gated_pJ_per_cycle"], block["gated_price"]
        energies = {name: each["pJ_per_cycle"] for name, each in block["gated"].items()}
        toggles = {name: each["register_toggles_per_cycle"] for name, each in block["measured"].items()}
        for left_out in (None, *energies):
            names = [name for name in energies if name != left_out]
            rows = np.array([toggles[name] / energies[name] for name in names])
            price = rows @ np.array([1 - idle / energies[name] for name in names]) / (rows @ rows)
            if left_out is None:
                assert found["pJ"] == pytest.approx(price, rel=1e-6)
            else:
                error = (idle + price * toggles[left_out]) / energies[left_out] - 1
                assert found["held_out"][left_out] == pytest.approx(error, abs=1e-6)


def test_errors_with_clock_gates_are_within_15_percent_rms_and_25_at_most():
    errors = np.array(list(FOUND["sum_of_blocks"]["held_out_gated"].values()))
    assert len(errors) >= 10
    assert np.sqrt(np.mean(errors**2)) <= 0.15
    assert np.abs(errors).max() <= 0.25


@each_process
def test_every_block_has_prices_in_the_technology(process):
    technology = Technology.load(process)
    assert technology.calibrated
    for block in ENERGY_BLOCKS:
        for event in ("register_cycle", "register_toggle"):
            assert technology.entries[f"{block}.{event}"].kind == "measured"
            assert technology.price(f"{block}.{event}").picojoules > 0.01


@each_process
def test_the_page_compares_the_arrays_on_the_same_layers(process):
    found = ALL[process]
    text = PAGES[process].with_suffix(".md").read_text(encoding="utf-8")
    shown = markdown_tables.rows(text, "Other arrays", len(found["arrays"]))
    records = {preset(found["machine"]).array: found, **found["arrays"]}
    assert [row["array"] for row in shown] == list(records)
    for row in shown:
        each = records[row["array"]]
        block, rate = each["blocks"]["array"], each["macs_per_cycle"]["vgg16-64"]
        energy = block["measured"]["vgg16-64"]["pJ_per_cycle"]
        assert number(row["pJ per MAC"]) == pytest.approx(energy / rate, abs=0.05)
        assert number(row["µm² for one"]) == pytest.approx(block["area_um2"] / rate, abs=0.5)
    # Pairs of products and Winograd each let a multiplier do more; both together most.
    rates = {array: each["macs_per_cycle"]["vgg16-64"] for array, each in records.items()}
    assert rates["plain"] < rates["inner"] < rates["winograd"] < rates["winograd_inner"]


@each_process
def test_every_other_kind_of_array_has_prices_of_its_own(process):
    """They are in the page and the technology file, follow from what was measured, and hold for machines with it."""
    found, technology = ALL[process], Technology.load(process)
    text = PAGES[process].with_suffix(".md").read_text(encoding="utf-8")
    assert sorted([preset(found["machine"]).array, *found["arrays"]]) == sorted(ARRAYS)
    for place, (array, each) in enumerate(found["arrays"].items()):
        assert list(each["blocks"]) == list(ARRAY_BLOCKS)
        assert set(each["workloads"]) == set(found["workloads"])
        errors = np.array(list(each["sum_of_blocks"]["held_out"].values()))
        assert np.sqrt(np.mean(errors**2)) <= 0.10
        assert np.abs(errors).max() <= 0.30   # inner: a depthwise layer
        shown = {row["block"]: row for row in markdown_tables.rows(text, "Other arrays", place)}
        own = technology.of_array(array)
        for name, block in each["blocks"].items():
            fitted = fit(measurements(block))
            assert fitted.prices == pytest.approx(block["prices_pJ"], rel=1e-6)
            assert number(shown[name]["pJ per toggle"]) == pytest.approx(block["prices_pJ"]["register_toggle"],
                                                                         abs=0.005)
            assert own.price(f"{name}.register_toggle").picojoules == pytest.approx(
                block["prices_pJ"]["register_toggle"], rel=1e-3)
        assert own.price("load.register_toggle") == technology.price("load.register_toggle")
        assert own.price("array.register_toggle") != technology.price("array.register_toggle")


def test_what_was_measured_is_the_gateware_of_both():
    assert len({found["rtl"] for found in ALL.values()}) == 1
    for core in CORES:
        assert len({found["cores"][core]["verilog"] for found in ALL.values()}) == 1


def test_a_layout_adds_its_wires_and_multiplies_the_rest():
    bare = Measurement(cycles=1, registers=2, register_cycles=2, register_toggles=3, switching=10.0, internal=20.0,
                       clock=5.0, leakage=1.0, area=7.0, cells=4)
    wired = replace(bare, switching=16.0, internal=21.0, clock=8.0)
    found = LayoutEffects(wire=0.003, cells=1.5, clock=2.0).applied(bare, wired)
    assert (found.switching, found.internal, found.clock) == (15.0 + 6.0, 30.0 + 1.0, 10.0)
    assert LayoutEffects().applied(bare, bare) == bare


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


def test_prices_of_events_that_are_counted_beside_the_measurement_are_found_again():
    rng = np.random.default_rng(1)
    retired, stalls = rng.integers(50, 250, 12), rng.integers(10, 90, 12)
    found, counts = {}, {}
    for index, (count, stall) in enumerate(zip(retired.tolist(), stalls.tolist(), strict=True)):
        found[str(index)] = Measurement(
            cycles=250, registers=100, register_cycles=25_000, register_toggles=7, switching=40.0 * count + 9.0 * stall,
            internal=0.0, clock=5000.0, leakage=0.0, area=0.0, cells=0)
        counts[str(index)] = count, stall
    fitted = fit(found, counts, ("instruction", "stall"))
    assert fitted.prices == pytest.approx({"register_cycle": 0.2, "instruction": 40.0, "stall": 9.0})
    assert fitted.largest < 1e-9
    one = fit(found, {name: each[:1] for name, each in counts.items()}, ("instruction",))
    assert 40.0 < one.prices["instruction"] < 60.0
    assert one.largest > 0.001
    # Least squares of relative errors, by hand.
    energies = np.array([each.energy for each in found.values()])
    rows, rest = retired / energies, 1 - 5000 / energies
    assert one.prices["instruction"] == pytest.approx(rows @ rest / (rows @ rows))
    with pytest.raises(FitError, match="at least 6 workloads, not 5"):
        fit(dict(list(found.items())[:5]), counts, ("instruction", "stall"))


def core_measurements(core):
    """Return what a JSON has measured of a core."""
    return {name: Measurement(
        cycles=each["cycles"], registers=core["registers"], register_cycles=core["registers"] * each["cycles"],
        register_toggles=each["register_toggles"],
        switching=(each["pJ_per_cycle"] - each["clock_pJ_per_cycle"]) * each["cycles"], internal=0.0,
        clock=each["clock_pJ_per_cycle"] * each["cycles"], leakage=core["leakage_nW"], area=core["area_um2"],
        cells=core["cells"]) for name, each in core["windows"].items()}


def gated_core(core):
    """Return the same with clock gates."""
    plain = core_measurements(core)
    with_gates = {name: replace(plain[name], area=core["gated_area_um2"], clock=each["clock_pJ_per_cycle"] * 250,
                                switching=(each["pJ_per_cycle"] - each["clock_pJ_per_cycle"]) * 250)
                  for name, each in core["gated"].items()}
    retired = {name: (each["retired"],) for name, each in core["windows"].items()}
    return fit_gated(with_gates, core["idle_clock_gated_pJ_per_cycle"], retired, ("instruction",))


def test_an_instruction_with_clock_gates_follows_from_what_was_measured():
    for core in FOUND["cores"].values():
        found = gated_core(core).prices
        assert found.prices["instruction"] == pytest.approx(core["gated_price"]["pJ"], rel=1e-6)
        assert found.held_out == pytest.approx(core["gated_price"]["held_out"], abs=1e-6)
        assert found.rms <= 0.15
        assert found.largest <= 0.25


def test_a_calibration_is_of_blocks_and_core(monkeypatch):
    array, results = FOUND["blocks"]["array"], {}
    for name, core in FOUND["cores"].items():
        windows = [Workload(window, each["model"], each["layer"], each["what"], each["where"])
                   for window, each in core["windows"].items()]
        counts = {window: CoreCounts(each["retired"], each["data_accesses"])
                  for window, each in core["windows"].items()}
        results[name] = CoreResult(name, tuple(windows), core_measurements(core), counts, core["verilog"],
                                   gated_core(core))
    made = {"calibrate_cores": lambda path, process, steps: results, "capture": lambda *given: [],
            "read_library": lambda path: None, "mac_rates": lambda *given: {},
            "coprocessor_verilog": lambda machine: "",
            "measure": lambda *given, gates, blocks: ({"array": measurements(array)}, {"array": 1.0})}
    for name, each in made.items():
        monkeypatch.setattr(calibrate, name, each)
    workloads = [Workload(name, **each) for name, each in FOUND["workloads"].items()]
    process = replace(PROCESSES["osu018"], library=lambda steps: Path("none"))
    found = calibrate.calibrate(process, preset("base"), workloads, Silence(), ("array",)).record()
    assert list(found.blocks) == ["array"]
    assert not found.arrays
    for name, core in FOUND["cores"].items():
        section = core_section(name, CoreRecord.from_json(core))
        assert core_section(name, found.cores[name]) == section
        assert section in page(found)
    committed = (FOLDER / "osu018.toml").read_text(encoding="utf-8")
    for section in ("[price.instruction]", "[block.riscv_core.register_cycle]", "[block.xpulp_core.instruction]",
                    "[block.xpulp_core.register_cycle]"):
        entry = committed[committed.index(section):].split("\n\n")[0]
        assert entry in technology_text(found)


@each_core
def test_the_price_of_an_instruction_follows_from_what_was_measured(process, name):
    core = ALL[process]["cores"][name]
    fitted = fit(core_measurements(core), {window: (each["retired"],) for window, each in core["windows"].items()},
                 ("instruction",))
    assert fitted.prices == pytest.approx(core["prices_pJ"], rel=1e-6)
    assert fitted.held_out == pytest.approx(core["held_out"], abs=1e-6)
    assert len(core["windows"]) >= 10
    assert fitted.rms <= 0.10
    assert fitted.largest <= 0.20


@each_core
def test_the_range_of_an_instruction_reaches_every_window(process, name):
    core = ALL[process]["cores"][name]
    price = Technology.load(process).price(f"{CORE_COMPONENTS[name]}.instruction")
    low, high = CoreRecord.from_json(core).instruction_range
    assert price.picojoules == pytest.approx(core["prices_pJ"]["instruction"], rel=1e-3)
    assert (price.relative.low, price.relative.high) == pytest.approx((low, high), abs=0.005)
    for each in core["windows"].values():
        one = (each["pJ_per_cycle"] - each["clock_pJ_per_cycle"]) * each["cycles"] / each["retired"]
        assert 0.999 * low <= one / price.picojoules <= 1.001 * high


def test_modules_of_netlists_have_their_names_in_waveforms():
    # As sim/verilator/build.py builds it.
    simulated = plain_verilog(coprocessor_verilog(preset("nano"), probes=True, watched=True))
    netlists = calibrate.measured_verilog(preset("nano"))
    names = [set(re.findall(r"^module (\S+?)\s*\(", text, re.MULTILINE)) for text in (netlists, simulated)]
    assert len(names[0]) > 20
    assert names[0] <= names[1]
