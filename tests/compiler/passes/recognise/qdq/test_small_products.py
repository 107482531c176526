"""Products of two small tensors of one shape run on the datapath, whatever their rank."""

import numpy as np
import onnx
import pytest

from tests.compiler.passes.recognise.qdq.test_sums_of_two import SCALE, pair
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(1, 10), (1, 60, 2), (1, 12, 5, 7), (3, 8, 4), (1, 1000), (1, 2, 3, 4, 5)], ids=str)
def test_two_tensors_of_one_shape(tmp_path, shape, dtype, relu):
    path = tmp_path / "model.onnx"
    onnx.save(pair("Mul", shape, dtype, relu), path)
    done = run_model(ModelSource.of(path), PRESETS["base"], "fast", None)
    assert done.report.core_cycles == 0
    assert done.comparison.matches is not False
    rng = np.random.default_rng(1)
    feed = {each: (rng.normal(size=shape) * 3).astype(np.float32) for each in ("x", "w")}
    (ours,) = InferenceSession(path, "nano").run(None, feed)
    (theirs,) = onnx_session(path).run(None, feed)
    assert np.abs(ours - theirs).max() <= SCALE * 1.001
    assert np.mean(ours == theirs) > 0.95
