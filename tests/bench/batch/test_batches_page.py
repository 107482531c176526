"""The page of batches: cycles per image in their row, relative to one image alone, and runs in RTL beside them."""

import pytest

from tests.support.markdown_tables import number, numbers, rows
from tilewright.bench.batch.batches_page import BATCHES, BatchCost, CheckedBatch, batches_page, predict
from tilewright.bench.figure_store import FigureStore
from tilewright.compiler.network.options import Options
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Silence

COSTS = {1: BatchCost(1000, 500), 2: BatchCost(1500, 600), 4: BatchCost(2000, 800), 8: BatchCost(4000, 1600)}


@pytest.fixture(scope="module")
def page() -> str:
    return batches_page({("lenet5", images): cost for images, cost in COSTS.items()},
                        [CheckedBatch("lenet5", 4, 2010, 2000, "5 of 5 layers")])


def test_cycles_per_image_stand_beside_their_part_of_one_alone(page):
    (row,) = rows(page, "Predicted")
    assert {images: numbers(row[f"N = {images}"]) for images in BATCHES} == {
        1: [1000, 1], 2: [750, 0.75], 4: [500, 0.5], 8: [500, 0.5]}
    assert (number(row["bytes per image, N = 1"]), number(row["bytes per image, N = 8"])) == (500, 200)


def test_runs_stand_beside_their_predictions(page):
    (row,) = rows(page, "In RTL")
    assert (number(row["N"]), number(row["cycles in RTL"]), number(row["predicted"])) == (4, 2010, 2000)
    assert number(row["error"]) == pytest.approx(-0.5)


def test_predictions_are_those_of_the_options_and_are_kept(tmp_path):
    store = FigureStore.open(tmp_path)
    found = predict(["lenet5"], store, Silence())
    assert found["lenet5", 4].cycles == PredictedNetwork.named("lenet5", Options(batch=4)).predict(
        design_of("base")).cycles
    kept = list(tmp_path.iterdir())
    assert predict(["lenet5"], store, Silence()) == found
    assert list(tmp_path.iterdir()) == kept


def test_an_image_of_a_batch_is_not_slower_than_one_alone(tmp_path):
    found = predict(["lenet5_accel", "mlperf-ad", "mlperf-kws", "mlperf-resnet8"], FigureStore.open(tmp_path),
                    Silence())
    for (name, images), cost in found.items():
        assert cost.cycles <= 1.01 * images * found[name, 1].cycles, (name, images)
    assert 3 * found["mlperf-ad", 8].cycles < 8 * found["mlperf-ad", 1].cycles
