"""An evaluation equals single runs, differs where the hardware would, and continues where it was interrupted."""

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.float_models import classifier
from tilewright.errors import InputError, SimulationError
from tilewright.isa.machine import preset
from tilewright.models import builtin, data
from tilewright.runtime.accuracy import answers as answering
from tilewright.runtime.accuracy import evaluation
from tilewright.runtime.accuracy.answers import Column, ValueEngine
from tilewright.runtime.accuracy.data_set import DataFiles
from tilewright.runtime.accuracy.evaluation import EvaluationRequest, default_files, evaluate
from tilewright.runtime.design.design import Design
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

DIGITS = DataFiles(images=data.SAMPLES_FILE)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Keep answers in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


def digits(**changed):
    source = find_model("lenet5", Silence())
    request = EvaluationRequest(**({"files": DIGITS, "design": Design(machine=preset("base"))} | changed))
    return evaluate(source, request, Silence())


def test_answers_are_those_of_single_runs():
    found = digits(limit=5)
    session = InferenceSession(builtin("lenet5"))
    classes = [session.run(None, {"image": image[np.newaxis]})[0].argmax() for image in data.samples().images[:5]]
    assert found.answers.top[Column.HARDWARE][:, 0].tolist() == classes
    assert found.right(Column.HARDWARE, 1) == sum(np.array(classes) == data.samples().labels[:5])
    assert (found.images, found.matches, found.columns) == (5, True, (Column.QUANTISED, Column.HARDWARE))


def test_an_engine_gives_the_same_answers_and_cycles():
    values, fast = digits(limit=2), digits(limit=2, engine=ValueEngine.FAST)
    for column in values.columns:
        np.testing.assert_array_equal(values.answers.top[column], fast.answers.top[column])
    assert values.answers.cycles.size == 0
    session = InferenceSession(builtin("lenet5"))
    session.run(None, {"image": data.samples().images[:1]})
    assert fast.answers.cycles[0] == session.report.cycles


def test_processes_give_the_same_answers(monkeypatch):
    alone = digits()
    monkeypatch.setattr(evaluation, "CHUNK", {ValueEngine.VALUES: 11})
    several = digits(jobs=2, fresh=True)
    assert several.evaluated_now == len(data.samples().labels)
    for column in alone.columns:
        np.testing.assert_array_equal(alone.answers.top[column], several.answers.top[column])


def test_a_float_model_has_a_column_of_its_own(tmp_path):
    onnx.save(classifier(), tmp_path / "net.onnx")
    images = np.random.default_rng(0).normal(size=(6, 3, 12, 10)).astype(np.float32)
    np.savez(tmp_path / "images.npz", image=images)
    source = find_model(str(tmp_path / "net.onnx"), Silence(), calibrate=tmp_path / "images.npz")
    request = EvaluationRequest(files=DataFiles(images=tmp_path / "images.npz"), design=Design(machine=preset("base")))
    found = evaluate(source, request, Silence())
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    expected = [session.run(None, {session.get_inputs()[0].name: image[np.newaxis]})[0].argmax() for image in images]
    assert found.columns == tuple(Column)
    assert found.answers.top[Column.FLOAT][:, 0].tolist() == expected
    assert found.labels is None
    again = evaluate(ModelSource(source.path), EvaluationRequest(
        files=request.files, design=Design(machine=preset("base")), float_model=tmp_path / "net.onnx"), Silence())
    assert again.answers.top[Column.FLOAT][:, 0].tolist() == expected


def test_a_float_model_of_other_images_is_refused(tmp_path):
    onnx.save(classifier(), tmp_path / "net.onnx")
    with pytest.raises(InputError, match=r"float model .*\(1, 1, 32, 32\)"):
        digits(float_model=tmp_path / "net.onnx")


def test_hardware_that_differs_is_found(monkeypatch):
    real = answering.run_network

    def faulty(network, inputs):
        values = real(network, inputs)
        name = network.outputs[0].name
        return values | {name: values[name] ^ np.int8(1)}

    monkeypatch.setattr(answering, "run_network", faulty)
    found = digits(limit=3)
    assert (found.matches, found.unequal) == (False, (0, 1, 2))
    assert found.answers.off.max() > 0


def test_an_interrupted_evaluation_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr(evaluation, "CHUNK", {ValueEngine.VALUES: 4})
    real, seen = answering.run_network, []

    def interrupted(network, inputs):
        seen.append(1)
        if len(seen) == 11:
            raise KeyboardInterrupt
        return real(network, inputs)

    monkeypatch.setattr(answering, "run_network", interrupted)
    with pytest.raises(SimulationError, match=r"8 of 12 images are saved: "):
        digits(limit=12)
    found = digits(limit=12)
    assert (found.resumed, found.evaluated_now, len(seen)) == (8, 4, 15)
    assert digits(limit=8).evaluated_now == 0
    assert digits(limit=12, fresh=True).resumed == 0


def test_answers_to_other_questions_are_not_taken(tmp_path):
    digits(limit=2)
    assert digits(limit=2).resumed == 2
    samples = data.samples()
    np.savez(tmp_path / "others.npz", image=samples.images[::-1], labels=samples.labels[::-1])
    assert digits(limit=2, files=DataFiles(images=tmp_path / "others.npz")).resumed == 0


def test_stored_answers_that_cannot_be_read_are_named():
    digits(limit=2)
    from tilewright.tools.toolchain import cache_folder

    (stored,) = (cache_folder() / "evaluations").rglob("*.npz")
    stored.write_bytes(b"no archive")
    with pytest.raises(SimulationError, match=r"cannot be read.*--fresh"):
        digits(limit=2)


@pytest.mark.parametrize("changed", [{"limit": 0}, {"jobs": 0}])
def test_numbers_must_be_positive(changed):
    with pytest.raises(InputError, match=r"one or more, not 0$"):
        EvaluationRequest(files=DIGITS, design=Design(machine=preset("base")), **changed)


def test_an_output_must_exist():
    with pytest.raises(InputError, match=r"logits, not 'scores'$"):
        digits(output="scores")


def test_a_users_model_has_no_images_of_its_own(tmp_path):
    with pytest.raises(InputError, match=r"'net' .*--input"):
        default_files(ModelSource(tmp_path / "net.onnx"))
