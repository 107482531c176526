"""State: an output that an input is in the next call stays in the session, until it is reset."""

import numpy as np
import onnx
import pytest

from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.network.options import Options
from tilewright.errors import InputError
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.inputs import NodeArg
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession
from tilewright.runtime.state_pairs import proposed_state
from tilewright.tools.progress import Silence

_SIZES = (1, 1, 8, 16)
_PAIRS = {"h": "hn", "c": "cn"}


@pytest.fixture
def quantised(tmp_path, monkeypatch):
    """Return the file of a step of an LSTM, quantised, and samples of its input."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(recurrent_model("LSTM", sizes=_SIZES, outputs=("hn", "cn")), tmp_path / "net.onnx")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 1, 1, 8)).astype(np.float32)
    state = {name: rng.uniform(-1, 1, size=(4, 1, 1, 16)).astype(np.float32) for name in _PAIRS}
    np.savez(tmp_path / "samples.npz", x=x, **state)
    return find_model(str(tmp_path / "net.onnx"), Silence(), calibrate=tmp_path / "samples.npz").path, x


def carrying(model, state=None):
    session = InferenceSession(model, "nano")
    session.carry(_PAIRS if state is None else state)
    return session


def test_calls_one_after_the_other_are_those_of_onnx_runtime_that_is_given_the_state(quantised):
    model, x = quantised
    ours, theirs = carrying(model), onnx_session(model.read_bytes())
    state = {name: np.zeros((1, 1, 16), np.float32) for name in _PAIRS}
    for step in x:
        expected = theirs.run(["hn", "cn"], {"x": step, **state})
        for value, right in zip(ours.run(["hn", "cn"], {"x": step}), expected, strict=True):
            np.testing.assert_array_equal(value, right)
        state = dict(zip(_PAIRS, expected, strict=True))
        assert all(np.array_equal(ours.state[name], state[name]) for name in _PAIRS)
    first = onnx_session(model.read_bytes()).run(["hn"], {"x": x[0], **{
        name: np.zeros((1, 1, 16), np.float32) for name in _PAIRS}})[0]
    ours.reset()
    np.testing.assert_array_equal(ours.run(["hn"], {"x": x[0]})[0], first)


def test_weights_that_stay_are_loaded_by_the_first_call_and_the_one_behind_a_reset(quantised):
    model, x = quantised
    plain, keeping = (InferenceSession(model, options=Options(keep_weights=keep)) for keep in (False, True))
    cost = []
    for session in (plain, keeping):
        session.carry(_PAIRS)
        outputs = [session.run(None, {"x": x[0]}), session.run(None, {"x": x[1]})]
        cost.append([cost_of(session)])
        outputs.append(session.run(None, {"x": x[2]}))
        cost[-1].append(cost_of(session))
        session.reset()
        outputs.append(session.run(None, {"x": x[0]}))
        cost[-1].append(cost_of(session))
        if session is plain:
            expected = outputs
    for found, right in zip(np.ravel(outputs), np.ravel(expected), strict=True):
        np.testing.assert_array_equal(found, right)
    (each, *others), (second, third, again) = cost
    assert others == [each, each]
    assert second == third
    assert second[0] < each[0] < again[0]
    assert second[1] < each[1] <= again[1]
    assert plain.kept == ()
    assert f"{again[1] - second[1]:,} bytes stay" in keeping.kept[0]
    assert f"{again[0] - second[0]:,} cycles" in keeping.kept[0]


def cost_of(session):
    """Return the cycles and the bytes read of the last call."""
    return session.report.cycles, sum(layer.bytes_read for layer in session.report.layers)


def test_a_state_may_be_given_once(quantised):
    model, x = quantised
    session = carrying(model)
    given = np.full((1, 1, 16), 0.5, np.float32)
    expected = onnx_session(model.read_bytes()).run(["hn"], {"x": x[0], "h": given, "c": given})[0]
    np.testing.assert_array_equal(session.run(["hn"], {"x": x[0], "h": given, "c": given})[0], expected)
    with pytest.raises(InputError, match="'h'"):
        session.run(None, {"x": x[0], "h": given[..., :3]})


def test_both_ends_of_a_state_have_one_scale(quantised):
    session = InferenceSession(quantised[0], "nano")
    scales = {each.onnx_name: each.scale for each in (*session.quantised_inputs, *session.quantised_outputs)}
    assert [scales[name] for name in _PAIRS] == [scales[output] for output in _PAIRS.values()]


@pytest.mark.parametrize(("state", "named"), [
    ({"hh": "hn"}, "'hh'"), ({"h": "hm"}, "'hm'"), ({"h": "hn", "c": "hn"}, "'hn'"), ({"x": "hn"}, "(1, 1, 8)"),
    ([("h", "hn")], "map"), ({"h": 3}, "map")])
def test_a_state_that_is_none_is_refused(quantised, state, named):
    with pytest.raises(InputError) as caught:
        carrying(quantised[0], state)
    assert named in str(caught.value)


def arguments(*names, shape=(1, 4)):
    return [NodeArg(name, shape, "tensor(float)") for name in names]


@pytest.mark.parametrize(("before", "after"), [
    ("h", "hn"), ("h0", "hn"), ("state", "stateN"), ("cache_in", "cache_out"), ("state_0", "new_state_0"),
    ("h_in", "h_out"), ("prev_state", "next_state"), ("input_states", "output_states"), ("c0", "cn")])
def test_pairs_are_found_by_their_names(before, after):
    assert proposed_state(arguments("x", before), arguments("y", after)) == {before: after}


def test_pairs_of_other_shapes_or_names_are_none():
    assert proposed_state(arguments("h"), arguments("hn", shape=(1, 5))) == {}
    assert proposed_state(arguments("image"), arguments("logits")) == {}
