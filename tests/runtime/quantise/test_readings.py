"""A file is read once, and shapes are inferred once on the way to the quantiser, and once on the way to the network."""

import inspect
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright
from tests.support.float_models import FloatBuilder, classifier
from tilewright.compiler.compile import compile_file
from tilewright.compiler.onnx import cleaning, reader
from tilewright.isa.machine import PRESETS
from tilewright.models import builtin
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence

_SAMPLES = np.random.default_rng(0).normal(size=(2, 3, 12, 10)).astype(np.float32)


@pytest.fixture
def entered(tmp_path, monkeypatch):
    """Count what is entered: inference, cleaning, and the reading of each file."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    np.save(tmp_path / "samples.npy", _SAMPLES)
    found: Counter[str] = Counter()
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes",
                        counted(onnx.shape_inference.infer_shapes, found, lambda *_: "inference"))
    monkeypatch.setattr(cleaning, "_cleaned", counted(cleaning._cleaned, found, lambda *_: "cleaning"))
    monkeypatch.setattr(reader, "_parse", counted(reader._parse, found, str))
    return found


def counted(function, found, what):
    """Return ``function``, whose calls are counted in ``found``."""
    def wrapped(*args, **kwargs):
        found[what(args[0])] += 1
        return function(*args, **kwargs)

    return wrapped


def shaped() -> onnx.ModelProto:
    """Return a model that computes the shape of a Reshape, as exporters write it."""
    builder = FloatBuilder()
    x = builder.node("Relu", builder.conv(builder.input((1, 3, 12, 10)), 3, 4))
    batch = builder.node("Slice", builder.node("Shape", x), *(builder.constant(np.array([each])) for each in (0, 1, 0)))
    shape = builder.node("Concat", batch, builder.constant(np.array([-1])), axis=0)
    return builder.finish(builder.gemm(builder.node("Reshape", x, shape), 480, 3))


@pytest.mark.parametrize("model", [classifier, shaped])
def test_a_float_model_is_read_once_and_its_shapes_are_inferred_once(tmp_path, entered, model):
    path = tmp_path / "net.onnx"
    onnx.save(model(), path)
    entered.clear()
    source = find_model(str(path), Silence(), calibrate=tmp_path / "samples.npy")
    assert entered == {"inference": 1, "cleaning": 1, str(path): 1}
    # From the cache nothing but the file itself is read.
    assert find_model(str(path), Silence(), calibrate=tmp_path / "samples.npy") == source
    assert entered == {"inference": 1, "cleaning": 1, str(path): 2}
    compile_file(source.path, PRESETS["base"])
    assert (entered["inference"], entered[str(source.path)]) == (2, 1)


def test_a_quantised_model_has_its_shapes_inferred_once(tmp_path, entered):
    path = tmp_path / "net.onnx"
    path.write_bytes(builtin("mlperf-resnet8").read_bytes())
    assert find_model(str(path), Silence()).path == path
    assert entered == {str(path): 1}
    compile_file(path, PRESETS["base"])
    assert (entered["inference"], entered["cleaning"]) == (1, 1)


def test_the_way_from_a_float_file_to_a_network_goes_down_to_the_front_end_three_times(tmp_path, entered, monkeypatch):
    """To read the file, to clean what is quantised, and to read the result: between them it climbs twice."""
    callers: list[str] = []
    for module, name in ((reader, "_parse"), (cleaning, "_cleaned")):
        monkeypatch.setattr(module, name, told(getattr(module, name), callers))
    path = tmp_path / "net.onnx"
    onnx.save(classifier(), path)
    entered.clear()
    source = find_model(str(path), Silence(), calibrate=tmp_path / "samples.npy")
    tilewright.InferenceSession(source.path, engine="fast")
    assert [name for name, _ in itertools.groupby(callers)] == ["standard_file", "float_graph", "session"]
    assert entered["inference"] == entered["cleaning"] == 2


def told(function, callers):
    """Return ``function``; the module of runtime/ that each call comes from is added to ``callers``."""
    def wrapped(*args):
        frames = [Path(frame.filename) for frame in inspect.stack(0)]
        callers.append(next(file.stem for file in frames if "runtime" in file.parts and "tests" not in file.parts))
        return function(*args)

    return wrapped
