"""A quantised window as a stream: the machine gives, frame by frame, the bits that ONNX Runtime has of the window."""

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.stream_models import separable_stack
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession
from tilewright.runtime.streamed_model import streamed_source
from tilewright.tools.progress import Silence

_FRAMES, _FEATURES = 9, 4


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(separable_stack(((3, 8), (4, 6)), frames=_FRAMES, features=_FEATURES, classes=3), tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


def test_each_call_behind_the_first_window_has_the_bits_of_the_last_frames(file):
    window = find_model(file, Silence())
    stream = streamed_source(window, 2, Silence())
    ours, theirs = InferenceSession(stream.path, "nano"), onnx_session(window.path.read_bytes())
    ours.carry(stream.state)
    frames = np.random.default_rng(0).normal(size=(1, _FEATURES, 13, 1)).astype(np.float32)
    for call in range(13):
        (found,) = ours.run(["y"], {"x": frames[:, :, call:call + 1]})
        if call >= _FRAMES - 1:
            np.testing.assert_array_equal(found, theirs.run(["y"], {"x": frames[:, :, call - _FRAMES + 1:call + 1]})[0])


def test_the_commands_say_what_a_stream_keeps(file):
    told = " ".join(invoke("run", file, "--machine", "nano", "--stream", "2").output.split())
    assert "with the bits of the whole window" in told
    assert "50 bytes are kept between calls" in told
    assert "every element is equal" in told
    assert "call 9 ends the first window" in " ".join(invoke("check", file, "--machine", "nano", "--stream",
                                                             "2").output.split())


def test_options_that_exclude_each_other_are_refused(file):
    assert "--state" in refused(2, "check", file, "--stream", "2", "--state", "x=y")
    assert "axis of time" in refused(2, "check", file, "--stream", "0")
