"""Variables of a .tflite file are state: what a call assigns, the next one reads, from zeros on."""

import numpy as np
import pytest

from tests.support.tflite_files import TfliteFile
from tilewright.compiler.compile import compile_file, emit_artefact
from tilewright.compiler.errors import BadModelError, CompileError
from tilewright.compiler.onnx.reader import read_model
from tilewright.isa.machine import preset
from tilewright.runtime.model_source import find_model
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

CHANNELS, TAPS, FRAMES, ZERO = 6, 3, 5, -20
RNG = np.random.default_rng(7)
WEIGHTS = RNG.integers(-127, 128, (1, TAPS, 1, CHANNELS)).astype(np.int8)
BIAS = RNG.integers(-900, 900, CHANNELS).astype(np.int32)
SAMPLES = RNG.integers(-128, 128, (1, FRAMES, 1, CHANNELS)).astype(np.int8)
VALID = {"Padding": 1, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1, "DepthMultiplier": 1}


def convolved(file, x, frames):
    """Add a depthwise convolution over time, and return its output of so many frames."""
    y = file.tensor((1, frames, 1, CHANNELS), 0.5, 3, name="heard")
    file.operator("DEPTHWISE_CONV_2D", [x, file.constant(WEIGHTS, 0.01, axis=3), file.constant(BIAS, 0.001)], [y],
                  **VALID)
    return y


def window():
    """Return the file that computes all frames at once, behind frames of zeros."""
    file = TfliteFile()
    x = file.tensor((1, FRAMES + TAPS - 1, 1, CHANNELS), 0.1, ZERO, name="sound")
    return file.content([x], [convolved(file, x, FRAMES)])


def stream(*, start=ZERO, graph=1, dtype="int8", reads=1, name="old"):
    """Return the file that keeps the frames before in a variable, and computes a new one."""
    file, old = TfliteFile(), (1, TAPS - 1, 1, CHANNELS)
    x, handle = file.tensor((1, 1, 1, CHANNELS), 0.1, ZERO, name="sound"), file.tensor((), dtype="resource")
    file.operator("CALL_ONCE", [], [], InitSubgraphIndex=graph)
    file.operator("VAR_HANDLE", [], [handle], SharedName="old", Container="")
    before, joined, after = (file.tensor(shape, 0.1, ZERO, name=each) for shape, each in (
        (old, "before"), ((1, TAPS, 1, CHANNELS), "joined"), (old, "after")))
    file.operator("READ_VARIABLE", [handle], [before])
    file.operator("CONCATENATION", [before, x], [joined], Axis=1)
    numbers = [file.constant(np.array(each, np.int32)) for each in ((0, 1, 0, 0), (1, TAPS, 1, CHANNELS), (1, 1, 1, 1))]
    file.operator("STRIDED_SLICE", [joined, *numbers], [after], BeginMask=13, EndMask=15)
    file.operator("ASSIGN_VARIABLE", [handle, after], [])
    outputs = [convolved(file, joined, 1)]
    if reads > 1:
        again = file.tensor(old, 0.1, ZERO, name="again")
        file.operator("READ_VARIABLE", [handle], [again])
        outputs.append(again)
    file.next_graph()
    handle, begun = file.tensor((), dtype="resource"), file.constant(np.full(old, start, dtype), 0.1, zero=ZERO)
    file.operator("VAR_HANDLE", [], [handle], SharedName=name, Container="")
    file.operator("ASSIGN_VARIABLE", [handle, begun], [])
    return file.content([x], outputs)


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "stream.tflite"
    path.write_bytes(stream())
    return path


def frames_of(session):
    return np.concatenate([session.run(["heard"], {"sound": SAMPLES[:, frame:frame + 1]})[0]
                           for frame in range(FRAMES)], 1)


def test_calls_one_after_the_other_are_the_window(path, tmp_path):
    whole = tmp_path / "window.tflite"
    whole.write_bytes(window())
    silence = np.full((1, TAPS - 1, 1, CHANNELS), ZERO, np.int8)
    expected = InferenceSession(whole).run(None, {"sound": np.concatenate([silence, SAMPLES], 1)})[0]
    session = InferenceSession(path)
    first = frames_of(session)
    assert np.array_equal(first, expected)
    session.reset()
    assert np.array_equal(frames_of(session), first)
    assert find_model(str(path), Silence()).state == session.pairs == {"before": "after"}


def test_a_compiled_model_keeps_the_state(path, tmp_path):
    folder = emit_artefact(compile_file(path, preset("nano")), find_model(str(path), Silence()).path,
                           tmp_path / "made").folder
    assert np.array_equal(frames_of(InferenceSession(folder)), frames_of(InferenceSession(path)))


def test_what_was_assigned_is_read_behind_it(tmp_path):
    path = tmp_path / "again.tflite"
    path.write_bytes(stream(reads=2))
    session = InferenceSession(path)
    found = [session.run(["after"], {"sound": SAMPLES[:, frame:frame + 1]})[0] for frame in range(2)]
    assert np.array_equal(found[1], SAMPLES[:, :2])


@pytest.mark.parametrize(("settings", "why"), [
    ({"start": 0}, "does not begin with zeros"), ({"start": 0, "dtype": "int32"}, "begins as int32"),
    ({"name": "other"}, "no value before the first call")])
def test_a_state_that_no_session_starts_is_named(settings, why):
    with pytest.raises(CompileError, match=why) as error:
        read_model(stream(**settings))
    assert "before" in str(error.value)


def test_a_subgraph_that_is_none_is_named():
    with pytest.raises(BadModelError, match="subgraph 2 of 2"):
        read_model(stream(graph=2))
