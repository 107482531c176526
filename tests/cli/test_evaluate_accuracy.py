"""The command ``evaluate``: a table and JSON, its exit status, its refusals."""

import json

import pytest

from tests.cli.test_app import invoke, refused
from tilewright.cli.evaluate_accuracy import Answering, Axes
from tilewright.runtime.accuracy import answers
from tilewright.runtime.accuracy.answers import ValueEngine
from tilewright.runtime.accuracy.data_set import ImageAxes


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Keep answers in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_the_choices_are_those_of_the_library():
    assert [str(each) for each in Answering] == [str(each) for each in ValueEngine]
    assert [str(each) for each in Axes] == [str(each) for each in ImageAxes]


def test_the_digits_of_a_built_in_model_are_evaluated(tmp_path):
    done = invoke("evaluate", "lenet5", "--limit", "4", "--jobs", "1", "--json", str(tmp_path / "found.json"))
    assert done.exit_code == 0, done.output
    assert "lenet5 over 4 images" in done.output
    content = json.loads((tmp_path / "found.json").read_text())
    assert (content["images"], content["matches_reference"], content["scores"]["equal"]) == (4, True, 4)


def test_scores_that_are_not_onnx_runtimes_end_with_1(monkeypatch):
    real = answers.run_network
    monkeypatch.setattr(answers, "run_network", lambda network, inputs: {
        name: -1 - value for name, value in real(network, inputs).items()})
    assert invoke("evaluate", "lenet5", "--limit", "2", "--jobs", "1").exit_code == 1


def test_options_that_do_not_go_together_are_refused():
    assert "--input" in refused(2, "evaluate", "lenet5", "--labels", "labels.npy")
    assert "'none.npz'" in refused(2, "evaluate", "lenet5", "--input", "none.npz")
    assert "not 0" in refused(2, "evaluate", "lenet5", "--jobs", "0")
