"""A report's parts add up to the run, its JSON has the promised keys, and its table shows no codes of a model."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.cli.tables.report_tables import report_text
from tilewright.energy.added_logic import CURVE_TOGGLES
from tilewright.energy.pricing import Pricing
from tilewright.errors import InputError, SimulationError
from tilewright.isa.counters import COUNTERS
from tilewright.isa.machine import MemoryTiming, preset
from tilewright.isa.program import Function, Loop, Program, issue
from tilewright.runtime.execution.accounting import account, count_commands
from tilewright.runtime.execution.engines import Execution
from tilewright.runtime.execution.job import Job, JobLayer
from tilewright.runtime.execution.records import STALLS
from tilewright.runtime.execution.shares import share_out
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

ROOT = Path(__file__).parents[3]
KEYS = {"asleep_cycles", "model", "machine", "engine", "host", "predicted_cycles", "memory", "design", "milliseconds",
        "inferences_per_second", "milliwatts", "cycles", "macs", "multipliers", "macs_per_multiplier_cycle",
        "instructions", "matches_reference", "compared", "outputs", "energy", "wall_seconds",
        "simulated_cycles_per_second", "layers", "toggles", "toggles_from", "imported_power", "core_share", "images",
        "cycles_per_image"}
LAYER_KEYS = {"name", "kind", "algorithm", "onnx_nodes", "macs", "cycles", "stalls", "bytes_read", "bytes_written",
              "activation_bytes_read", "energy_uj", "energy", "toggles", "counters", "comparison"}
RANGES = {"relative_low_uj", "relative_high_uj", "absolute_low_uj", "absolute_high_uj"}
ENERGY_KEYS = {"total_uj", "low_uj", "high_uj", "by_component", "components", *RANGES}

FENCE = issue("sta", "fence")
LOADS = Loop("i", 3, (issue("ldw", "main", address=0x8000_0000, base=0, words=1),))
PROGRAM = Program((Function("layer0", "", (LOADS, FENCE)), Function("layer1", "", (FENCE,)),
                   Function("finish", "", (FENCE,))))


def layer(name, macs):
    return JobLayer(name=name, kind="conv", algorithm="conv23", onnx_nodes=(f"{name}/node",), macs=macs, inputs=(),
                    outputs=(name,), record=0x8000_0000, predicted_cycles=1)


JOB = Job(name="net", machine=preset("base"), program=PROGRAM, elf=None, images=(), tensors={}, inputs=(), outputs=(),
          windows=(), layers=(layer("a", 6400), layer("b\x1b[31m[bold]", 640)), memory_bytes=1)


def record(cycles, **counts):
    stalled = sum(value for name, value in counts.items() if name in STALLS)
    empty = dict.fromkeys((counter.name for counter in COUNTERS), 0)
    return empty | {"cycles": cycles, "mac_issue": cycles - stalled} | counts


def execution(cycles=130):
    records = (record(100, mac_setup=10, mac_wait_post=20, tile_slots=70, memory_read=800),
               record(120, mac_setup=10, mac_wait_post=20, tile_slots=90, memory_read=800, memory_written=64))
    return Execution(cycles=cycles, instructions=1001, tensors={}, records=records, wall_seconds=0.5,
                     cycles_per_second=260.0)


@pytest.fixture
def report():
    return account(JOB, "fast", MemoryTiming(), execution())


def test_layers_and_tail_are_the_run(report):
    assert [each.cycles for each in report.layers] == [100, 20]
    assert report.tail_cycles == 10
    assert (report.layers[0].bytes_read, report.layers[1].bytes_written) == (800, 64)
    assert report.layers[0].stalls == dict.fromkeys(STALLS, 0) | {"mac_setup": 10, "mac_wait_post": 20}
    assert report.layers[0].main_stall == "mac_wait_post"
    assert report.layers[1].main_stall is None


def test_energy_adds_up_in_every_way(report):
    assert report.energy.total_uj == pytest.approx(sum(report.energy.by_component.values()))
    assert report.energy.total_uj > sum(each.energy.total_uj for each in report.layers) > 0
    assert report.energy.low_uj < report.energy.total_uj < report.energy.high_uj


def test_utilisation_counts_the_models_macs(report):
    assert report.macs == 7040
    assert report.macs_per_multiplier_cycle == 7040 / (80 * 130)


def test_json_has_the_promised_keys(report):
    data = report.to_json()
    assert set(data) == KEYS
    assert set(data["memory"]) == {"latency_cycles", "bytes_per_cycle"}
    assert set(data["energy"]) == ENERGY_KEYS | {"technology", "dram", "clock_mhz", "clocks_gated"}
    assert all(set(each["energy"]) == ENERGY_KEYS for each in data["layers"])
    assert all(set(each) == RANGES | {"uj"} for each in data["energy"]["components"].values())
    assert all(set(each) == LAYER_KEYS for each in data["layers"])
    assert data["layers"][0]["onnx_nodes"] == ["a/node"]
    assert data["layers"][0]["algorithm"] == "conv23"
    assert data["matches_reference"] is None


def test_instructions_are_counted_through_loops(report):
    assert report.instructions == {"lda": 0, "ldw": 3, "conv23": 0, "conv": 0, "act": 0, "pool": 0, "sta": 3,
                                   "riscv": 1001}
    assert count_commands(PROGRAM)[1] == [4, 1, 1]


def test_a_run_shorter_than_its_layers_is_refused():
    with pytest.raises(SimulationError, match=r"119, .*1 more$"):
        account(JOB, "fast", MemoryTiming(), execution(cycles=119))


def test_shares_are_whole_and_add_up():
    rng = np.random.default_rng(0)
    for _ in range(100):
        weights = rng.integers(1, 1000, rng.integers(1, 20)).tolist()
        total = int(rng.integers(0, 10**6))
        shares = share_out(total, weights)
        assert sum(shares) == total
        assert all(abs(share - total * weight / sum(weights)) <= 1
                   for share, weight in zip(shares, weights, strict=True))


def test_counted_toggles_are_told_apart_by_layer():
    def sums(factor):
        return {block: factor * (index + 1) for index, block in enumerate(ENERGY_BLOCKS)}

    counted = account(JOB, "rtl", MemoryTiming(), replace(execution(), toggles=(sums(100), sums(130), sums(131))))
    assert [each.toggles for each in counted.layers] == [sums(100), sums(30)]
    assert counted.toggles == sums(131)
    assert counted.to_json()["toggles_from"] == "rtl"
    assert "counted in RTL" in report_text(counted)
    with pytest.raises(SimulationError, match=r"2 records .*not 2 times"):
        account(JOB, "rtl", MemoryTiming(), replace(execution(), toggles=(sums(100), sums(130))))


def test_words_that_follow_a_curve_are_counted_once_for_both_bytes():
    words = replace(JOB.layers[0], outputs=("a:upper", "a:lower"))
    job = replace(JOB, machine=replace(JOB.machine, wide_words=True), layers=(words, JOB.layers[1]))
    records = tuple(record(cycles, requantized=count, table_read=count) for cycles, count in ((100, 640), (120, 650)))
    ran = replace(execution(), records=records)
    bent, bytes_alone = (account(each, "fast", MemoryTiming(), ran) for each in (job, replace(job, layers=JOB.layers)))
    assert [each.curved_words for each in bent.layers] == [320, 0]
    assert [each.curved_words for each in bytes_alone.layers] == [0, 0]
    assert bent.layers[0].toggles["post_processing"] - bytes_alone.layers[0].toggles["post_processing"] \
        == 320 * CURVE_TOGGLES
    assert bent.layers[0].energy.total_uj > bytes_alone.layers[0].energy.total_uj
    assert bent.layers[1].energy.total_uj == bytes_alone.layers[1].energy.total_uj


def test_predicted_toggles_are_less_certain_than_counted_ones(report):
    predicted = tuple(report.layers[0].toggles[block] for block in ENERGY_BLOCKS)
    both = {block: sum(each.toggles[block] for each in report.layers) for block in ENERGY_BLOCKS}
    rows = (report.layers[0].toggles, both, report.toggles)
    counted = account(JOB, "rtl", MemoryTiming(), replace(execution(), toggles=rows))
    assert tuple(counted.layers[0].toggles.values()) == predicted
    assert counted.energy.total_uj == pytest.approx(report.energy.total_uj)
    assert counted.energy.total.relative_low_uj > report.energy.total.relative_low_uj
    assert counted.energy.total.relative_high_uj < report.energy.total.relative_high_uj


def test_the_part_of_main_memory_and_the_technology_are_the_callers():
    dear = account(JOB, "fast", MemoryTiming(), execution(), Pricing(dram="ddr3"))
    assert dear.energy.by_component["main_memory"] > account(
        JOB, "fast", MemoryTiming(), execution()).energy.by_component["main_memory"]
    with pytest.raises(InputError, match=r"^Technology must be one of "):
        account(JOB, "fast", MemoryTiming(), execution(), Pricing(technology="none"))


def test_the_table_names_layers_stalls_and_doubts(report):
    text = report_text(report)
    assert "wait post 20 %" in text
    assert "generic45, not calibrated" in text
    assert "\x1b" not in text
    assert "[31m[bold]" in text


def test_a_report_is_imported_without_the_world():
    code = ("import sys; from tilewright.runtime.execution.report import Report; "
            "print(*(name for name in sys.modules if name.split('.')[0] in ('tilewright', 'numpy', 'rich')))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    names = done.stdout.split()
    assert len(names) <= 12, names
    assert not {"numpy", "rich"} & set(names)
