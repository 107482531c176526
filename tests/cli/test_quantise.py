"""The command ``quantise``: a file with chosen bits, and its refusals."""

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Keep what is quantised in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_layers_get_the_bits_that_are_chosen_for_them(tmp_path):
    target = tmp_path / "made.onnx"
    done = invoke("quantise", "lenet5", "--weights", "int4", "--weights", "int8:conv1,5", "-o", str(target))
    assert done.exit_code == 0, done.output
    assert "31,230" in done.output
    kinds = [tensor.data_type for tensor in onnx.load(target).graph.initializer if len(tensor.dims) > 1]
    assert kinds.count(onnx.TensorProto.INT4) == 3
    assert invoke("run", str(target), "--machine", "base,coded_weights=true").exit_code == 0


def test_samples_of_a_quantised_model_decide_how_weights_are_rounded(tmp_path):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(0, 1, (4, 1, 32, 32)).astype(np.float32))
    done = invoke("quantise", "lenet5", "--calibrate", str(tmp_path / "images.npy"), "--weights", "int2:fc2", "-o",
                  str(tmp_path / "made.onnx"))
    assert done.exit_code == 0, done.output
    assert "rounded by 4 samples" in done.output


def test_what_cannot_be_meant_is_refused(tmp_path):
    target = str(tmp_path / "made.onnx")
    assert "'made.txt'" in refused(2, "quantise", "lenet5", "-o", "made.txt")
    assert "'int3'" in refused(2, "quantise", "lenet5", "--weights", "int3", "-o", target)
    assert "/fc2/Gemm" in refused(2, "quantise", "lenet5", "--weights", "int4:fc9", "-o", target)
    assert "--float" in refused(2, "quantise", "lenet5", "--float", "-o", target)
    assert "'none.onnx'" in refused(2, "quantise", "none.onnx", "--calibrate", "none.npz", "-o", target)
