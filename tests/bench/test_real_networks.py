"""Published networks from a list to a page: what ran, was refused, crashed or is missing each has its place."""

import json

import numpy as np
import onnx
import pytest

from tests.support.float_models import FloatBuilder, classifier
from tilewright.bench import real_networks
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.real_networks import ListedNetwork, facts_of, read_list
from tilewright.errors import InputError
from tilewright.models import builtin
from tilewright.tools.progress import Silence

LIST = """
folder = "networks"
[[network]]
name = "open"
file = "open.onnx"
source = "someone/somewhere"
licence = "MIT"
shape = { image = [1, 3, 12, 10] }
samples = 2
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Quantise in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def store(tmp_path):
    return FigureStore(tmp_path, "sources")


def listed(file, **changed):
    return ListedNetwork(**({"name": "net", "file": file, "source": "someone/somewhere", "licence": "MIT"} | changed))


def test_a_list_is_read_with_its_options(tmp_path):
    (tmp_path / "list.toml").write_text(LIST)
    assert read_list(tmp_path / "list.toml") == [ListedNetwork(
        name="open", file=tmp_path / "networks" / "open.onnx", source="someone/somewhere", licence="MIT",
        shape={"image": (1, 3, 12, 10)}, samples=2)]


@pytest.mark.parametrize("text", ["folder = ", "folder = 'x'", LIST + "colour = 'red'\n"])
def test_a_list_that_makes_no_sense_is_refused(tmp_path, text):
    (tmp_path / "list.toml").write_text(text)
    with pytest.raises(InputError, match=r"list\.toml"):
        read_list(tmp_path / "list.toml")


def test_a_network_that_runs_has_its_cycles_and_is_compared(store, monkeypatch):
    found = facts_of(listed(builtin("lenet5")), store, Silence())
    assert found.ran
    assert (found.matches, found.core_share, found.busy) == (True, 0.0, "")
    assert found.cycles > 8_000
    monkeypatch.setattr(real_networks, "run_model", None)
    assert facts_of(listed(builtin("lenet5")), store, Silence()) == found  # kept


def test_a_float_network_is_quantised_with_seeded_samples(store, tmp_path):
    onnx.save(classifier(), tmp_path / "net.onnx")
    found = facts_of(listed(tmp_path / "net.onnx", samples=2), store, Silence())
    assert (found.ran, found.ranges) == (True, "samples")
    assert "--calibrate" in found.given


def test_a_network_on_the_core_has_its_causes(store, tmp_path):
    graph = FloatBuilder()
    onnx.save(graph.finish(graph.node("Erf", graph.input((1, 3, 8, 8)))), tmp_path / "net.onnx")
    found = facts_of(listed(tmp_path / "net.onnx", keep_float=True), store, Silence())
    assert found.core_share > 0.5
    assert "Erf" in found.busy


def test_what_does_not_run_is_said(store, tmp_path, monkeypatch):
    assert facts_of(listed(tmp_path / "none.onnx"), store, Silence()).missing == "none.onnx"
    (tmp_path / "text.onnx").write_text("no model")
    refused = facts_of(listed(tmp_path / "text.onnx"), store, Silence())
    assert refused.refused
    assert not refused.ran

    def broken(*_, **__):
        raise KeyError("z")

    monkeypatch.setattr(real_networks, "run_model", broken)
    assert facts_of(listed(builtin("lenet5")), store, Silence()).crashed == "KeyError: 'z'"


def test_one_command_writes_the_page_and_its_facts(tmp_path, monkeypatch):
    (tmp_path / "list.toml").write_text(LIST + "[[network]]\nname = 'digits'\nfile = "
                                        f"'{builtin('lenet5')}'\nsource = 'here'\nlicence = 'Apache-2.0'\n")
    monkeypatch.setattr("sys.argv", ["real_networks", str(tmp_path / "list.toml"), str(tmp_path / "page.md")])
    assert real_networks.main() == 0
    assert "open.onnx" in (tmp_path / "page.md").read_text()
    facts = json.loads((tmp_path / "page.json").read_text())
    assert [each["name"] for each in facts["networks"]] == ["open", "digits"]
    assert facts["over_a_tenth"] == []
    assert np.isclose(facts["networks"][1]["core_share"], 0)
