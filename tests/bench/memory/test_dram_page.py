"""The page of what DRAM costs: each figure in its row, relative to the fixed latency; the worst error named."""

import pytest

from tests.support.markdown_tables import number, numbers, rows, section
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.memory.dram_page import MEMORIES, CheckedRun, Memory, dram_page, predict
from tilewright.isa.dram.parts import PARTS
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Silence

COSTS = {memory: 1000 + 100 * place for place, memory in enumerate(MEMORIES)}
RUNS = [CheckedRun("lenet5", "nano", MEMORIES[0], 1000, 1020, "5 of 5"),
        CheckedRun("lenet5", "base", MEMORIES[1], 1000, 970, "5 of 5")]


@pytest.fixture(scope="module")
def page() -> str:
    return dram_page({("lenet5", "nano", None): 1000, **{("lenet5", "nano", each): cycles
                                                         for each, cycles in COSTS.items()}}, RUNS)


def test_costs_stand_beside_the_fixed_latency(page):
    (row,) = rows(page, "What it costs")
    assert (row["network"], row["machine"], number(row["fixed latency"])) == ("lenet5", "nano", 1000)
    for memory, cycles in COSTS.items():
        assert numbers(row[str(memory)]) == [cycles, (cycles - 1000) / 10]


def test_runs_stand_beside_their_predictions_and_the_worst_is_named(page):
    first, second = rows(page, "In RTL")
    assert (number(first["cycles in RTL"]), number(first["predicted"]), number(first["error"])) == (1000, 1020, 2)
    assert number(second["error"]) == -3
    assert "3.00%" in section(page, "In RTL")


def test_every_part_has_its_column(page):
    table = rows(page, "The parts")
    assert all(set(PARTS) < set(row) for row in table)
    assert [row["ddr3l-1600x16"] for row in table if row[""] in ("tRCD", "banks", "MB/s at most")] == [
        "8", "13.75", "3,200"]


def test_predictions_are_those_of_the_design_and_are_kept(tmp_path):
    store = FigureStore.open(tmp_path)
    found = predict(["lenet5"], store, Silence())
    slow = Memory("sdr-133x16", 80)
    network = PredictedNetwork.named("lenet5")
    assert found["lenet5", "nano", None] == network.predict(design_of("nano")).cycles
    assert found["lenet5", "nano", slow] == network.predict(
        design_of("nano", memory=f"dram={slow.part}", clock="80MHz")).cycles
    kept = list(tmp_path.iterdir())
    assert predict(["lenet5"], store, Silence()) == found
    assert list(tmp_path.iterdir()) == kept
