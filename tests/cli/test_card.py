"""The command ``card``: a row for each design, JSON and Markdown, refusals that do not stop the other models."""

import json

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.float_models import classifier
from tilewright.compiler.network.options import BEST
from tilewright.models import builtin, data
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_run import predict_model
from tilewright.tools.progress import Silence


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Keep what is measured in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_the_figures_are_those_of_a_run(tmp_path):
    done = invoke("card", "lenet5", "--designs", "nano,base,lanes=8", "--json", str(tmp_path / "card.json"))
    assert done.exit_code == 0, done.output
    (card,) = json.loads((tmp_path / "card.json").read_text())["cards"]
    assert (card["accuracy"], card["images"]) == (1.0, 32)
    for cost, design in zip(card["costs"], ("nano", "base,lanes=8"), strict=True):
        report = predict_model(find_model("lenet5", Silence()), design_of(design), BEST, Silence(),
                               outputs_only=True).report
        assert (cost["cycles"], cost["energy_uj"]) == (report.cycles, report.energy.total_uj)
        assert f"{report.cycles:,}" in done.output


def test_a_float_file_says_where_its_ranges_come_from_and_has_no_accuracy(tmp_path):
    onnx.save(classifier(), tmp_path / "net.onnx")
    done = invoke("card", str(tmp_path / "net.onnx"), "--designs", "base", "--json", str(tmp_path / "card.json"))
    assert done.exit_code == 0, done.output
    assert "noise" in done.output
    (card,) = json.loads((tmp_path / "card.json").read_text())["cards"]
    assert card["accuracy"] is None


def test_labelled_images_give_a_file_its_accuracy(tmp_path):
    (tmp_path / "net.onnx").write_bytes(builtin("lenet5").read_bytes())
    digits = data.samples()
    np.save(tmp_path / "images.npy", digits.images[:4])
    np.save(tmp_path / "labels.npy", digits.labels[:4])
    done = invoke("card", str(tmp_path / "net.onnx"), "--designs", "base", "--input", str(tmp_path / "images.npy"),
                  "--labels", str(tmp_path / "labels.npy"))
    assert done.exit_code == 0, done.output
    assert "accuracy 100.00 % of 4 images" in done.output


def test_a_refused_model_is_a_card_with_the_reason_and_the_others_have_theirs(tmp_path):
    (tmp_path / "text.onnx").write_text("no model")
    done = invoke("card", str(tmp_path / "text.onnx"), "lenet5", "--designs", "base", "--markdown",
                  str(tmp_path / "cards.md"))
    assert done.exit_code == 2
    assert "text is refused on base: " in done.output
    *_, last = (tmp_path / "cards.md").read_text().splitlines()
    assert last.startswith("| lenet5, ")


def test_options_that_do_not_go_together_are_refused(tmp_path):
    assert "--labels" in refused(2, "card", "lenet5", "--labels", "labels.npy")
    assert "one MODEL" in refused(2, "card", "lenet5", "mlperf-kws", "--input", "images.npz")
    assert "nosuch" in refused(2, "card", "nosuch")
    assert "'huge'" in refused(2, "card", "lenet5", "--designs", "huge")
