"""Our cycles beside Vela's: the table, the .tflite files written for it, and what is said where a tool is missing."""

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright.bench import peers
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.peer_networks import tflite_of
from tilewright.cli.app import app
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError
from tilewright.models import FOLDER, LARGE, NAMES, PUBLISHED, builtin
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


def test_the_networks_of_mlperf_tiny_and_larger_ones_are_compared():
    assert set(PUBLISHED) < set(peers.COMPARED_NETWORKS) <= set(NAMES)
    assert set(peers.COMPARED_NETWORKS) - set(PUBLISHED) <= set(LARGE)


def test_both_memories_have_a_file():
    ours, arms = peers.MEMORIES.values()
    assert f"[System_Config.{next(iter(peers.MEMORIES))}]" in Path(ours).read_text()
    assert not Path(arms).is_absolute()


def test_a_row_says_which_accelerator_with_which_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "estimate", lambda model, peer, system, scratch: 40_000 if system == "Tilewright"
                        else 200_000)
    found = peers.peers(["mlperf-ad"], FigureStore.open(tmp_path), Silence())
    assert [(each.peer, each.machine, each.theirs) for each in found] == [
        ("ethos-u55-64", "base", (40_000, 200_000)), ("ethos-u55-256", "large", (40_000, 200_000))]
    table = peers.peers_table(found)
    assert f"{found[0].ours:,} | {found[0].ours / 40_000:.2f} ({found[0].ours / 200_000:.2f}) |" in table
    assert "20 cycles" in table


def test_without_vela_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="peers"):
        peers.estimate(FOLDER / "mlperf-ad.tflite", "ethos-u55-64", "Tilewright", tmp_path)


def test_without_its_schema_no_tflite_file_is_written(monkeypatch):
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(InputError, match="peers"):
        tflite_of(compile_network(builtin("lenet5")))


def test_a_network_that_vela_is_not_asked_about_is_refused():
    done = CliRunner().invoke(app, ["bench", "--peers", "--only", "lenet5"])
    assert done.exit_code != 0


@pytest.mark.parametrize("name", ["resnet18-32", "mobilenetv2-96"])
def test_a_written_file_has_the_networks_weights_and_operators(name):
    tflite = pytest.importorskip("tflite", reason="needs the extra peers")
    network = compile_network(find_model(name, Silence()).path)
    model = tflite.Model.GetRootAs(tflite_of(network), 0)
    graph = model.Subgraphs(0)
    largest = max(model.Buffers(index).DataLength() for index in range(model.BuffersLength()))
    assert largest == max(layer.weights.size for layer in network.layers if layer.weights is not None)
    outputs = graph.Tensors(graph.Outputs(0))
    assert np.array_equal(outputs.ShapeAsNumpy(), [1, 1, 1, network.outputs[0].shape[0]])
    assert graph.OperatorsLength() >= len(network.layers)
