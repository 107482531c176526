"""The levels of a Softmax's result: all 256 up to its largest value, at a scale that fused and unfused read alike."""

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.float_models import FloatBuilder
from tilewright.runtime.model_source import find_model
from tilewright.runtime.quantise import softmax_levels
from tilewright.runtime.quantise.softmax_levels import largest_whole
from tilewright.tools.progress import Silence

TOKENS, WIDTH = 65, 32


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Quantise in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_every_scale_is_one_by_a_whole_number_that_its_reciprocal_gives_back():
    for value in np.random.default_rng(0).uniform(.002, 1, 2000):
        k = largest_whole(value)
        assert np.floor(np.float32(1) / np.float32(np.float32(1) / np.float32(k))) == k
        assert value * k <= 255
        assert value * (1.02 * k + 1) > 255    # a fiftieth of the levels at most, where k does not come back


def attention(moved):
    """Return a float model of one head: softmax of q times k, times v; and its samples."""
    graph = FloatBuilder()
    q, k, v = (graph.input((1, TOKENS, WIDTH), name) for name in "qkv")
    scores = graph.node("MatMul", q, graph.node("Transpose", k, perm=[0, 2, 1]))
    weights = graph.node("Softmax", graph.node("Mul", scores, graph.constant(np.float32(WIDTH ** -.5))), axis=-1)
    if moved:
        weights = graph.node("Unsqueeze", weights, graph.constant(np.array([1])))
        v = graph.node("Unsqueeze", v, graph.constant(np.array([1])))
    proto = graph.finish(graph.node("MatMul", weights, v))
    rng = np.random.default_rng(1)
    return proto, {value.name: rng.normal(size=(4, TOKENS, WIDTH)).astype(np.float32) for value in proto.graph.input}


def made(proto, arrays, folder):
    """Quantise with samples; return the file's scales and zero points by the tensor that is quantised, and the file."""
    onnx.save(proto, folder / "head.onnx")
    np.savez(folder / "samples.npz", **{name: each[:, np.newaxis] for name, each in arrays.items()})
    found = find_model(str(folder / "head.onnx"), Silence(), calibrate=folder / "samples.npz").quantised
    model = onnx.load(found.model)
    values = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    return {node.input[0]: (values[node.input[1]], values[node.input[2]]) for node in model.graph.node
            if node.op_type == "QuantizeLinear"}, found.model


def noise_of(model, proto, arrays):
    """Return the noise of an int8 file's output against the float model, in dB below it, over the samples."""
    sessions = [onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
                for content in (proto.SerializeToString(), str(model))]
    off = total = 0.0
    for index in range(4):
        feed = {name: each[index:index + 1] for name, each in arrays.items()}
        (exact,), (found,) = (each.run(None, feed) for each in sessions)
        off += float(((exact - found) ** 2).sum())
        total += float((exact ** 2).sum())
    return 10 * np.log10(total / off)


@pytest.mark.parametrize("moved", [False, True])
def test_the_weights_of_an_attention_have_256_levels_and_less_noise_than_with_127(tmp_path, monkeypatch, moved):
    proto, arrays = attention(moved)
    pairs, model = made(proto, arrays, tmp_path)
    (scale,) = (scale for scale, zero in pairs.values() if zero == -128)
    k = round(1 / float(scale))
    assert np.float32(1 / np.float32(k)) == scale
    monkeypatch.setattr(softmax_levels, "softmax_levels", lambda *_: {})
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "plain"))
    before, plain = made(proto, arrays, tmp_path)
    assert all(each[1] == 0 for each in before.values())
    assert noise_of(model, proto, arrays) > noise_of(plain, proto, arrays) + .5
