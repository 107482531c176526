"""The functions `compile`, `check`, `compare` and `explore` do what the commands of these names do."""

import json

import numpy as np
import onnx
import pytest

import tilewright
from tests.support.float_models import classifier
from tilewright.models import builtin, data

SAMPLES = np.random.default_rng(0).normal(size=(4, 3, 12, 10)).astype(np.float32)


def test_what_is_compiled_is_what_a_session_runs(tmp_path):
    compiled = tilewright.compile(onnx.load(builtin("lenet5")), tmp_path / "out", "nano")
    assert isinstance(compiled, tilewright.CompiledModel)
    assert compiled.plan.machine.name == "nano"
    feed = {"image": data.samples().images[:1]}
    ours, theirs = (tilewright.InferenceSession(model, machine).run(None, feed)[0]
                    for model, machine in ((compiled.folder, None), ("lenet5", "nano")))
    np.testing.assert_array_equal(ours, theirs)


def test_noise_is_warned_of_and_samples_are_not(tmp_path):
    model = classifier().SerializeToString()
    with pytest.warns(UserWarning, match="noise"):
        noisy = tilewright.compile(model, tmp_path / "noisy")
    ours = tilewright.compile(model, tmp_path / "ours", calibrate=SAMPLES)
    assert {layer.algorithm for layer in (*noisy.plan.layers, *ours.plan.layers)}.isdisjoint({"core"})
    scales = [[each["scale"] for each in json.loads((folder / "manifest.json").read_text())["tensors"]]
              for folder in (noisy.folder, ours.folder)]
    assert scales[0] != scales[1]


def test_a_check_tells_what_does_not_fit():
    found = tilewright.check("lenet5", "nano", capacity=0.01)
    assert isinstance(found, tilewright.Check)
    assert not found.compiles
    assert not found.memory.fits
    slow, quick = (tilewright.check("lenet5", tilewright.design_of("nano", memory=f"latency={latency}"))
                   for latency in (200, 20))
    assert slow.cycles > quick.cycles


def test_a_comparison_takes_inputs_as_arrays_or_as_a_file(tmp_path):
    images = data.samples().images[3:4]
    np.savez(tmp_path / "image.npz", image=images)
    for inputs in ({"image": images}, tmp_path / "image.npz"):
        found = tilewright.compare("lenet5", "nano", inputs=inputs)
        assert isinstance(found, tilewright.LayerComparison)
        assert found.matches
    with pytest.raises(tilewright.InputError, match="image"):
        tilewright.compare("lenet5", inputs={"picture": images})


def test_an_exploration_goes_on_where_it_stopped(tmp_path):
    first = tilewright.explore("lenet5", tmp_path / "out", trials=3, objectives=["cycles", "energy"])
    front = tilewright.explore(["lenet5"], tmp_path / "out", trials=6, objectives=["cycles", "energy"])
    assert (first.trials, front.trials) == (3, 6)
    assert isinstance(front, tilewright.ExploredFront)
    cycles = [each.measures["cycles"] for each in front.designs]
    assert cycles == sorted(cycles)
    for each in front.designs:
        assert tilewright.design_of(str(each.file)).machine.same_as(each.design.machine)
    session = tilewright.InferenceSession("lenet5", front.designs[0].design)
    session.run(None, {"image": data.samples().images[:1]})
    assert session.report.cycles == cycles[0]


def test_an_exploration_without_a_design_within_its_limits_is_refused(tmp_path):
    with pytest.raises(tilewright.InputError, match="2 trials"):
        tilewright.explore("lenet5", tmp_path / "out", trials=2, limits=["lut4<=1"])
