"""VGG16 and ResNet18 at 32×32, whole, in RTL: every layer is ONNX Runtime's, in the cycles promised and predicted.

One run of each in RTL serves all these questions, so they are one test: it takes half a minute.
"""

import numpy as np
import pytest

import tilewright
from tilewright.models.images import images
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.conversion import as_int8
from tilewright.runtime.oracle.onnx_runtime import Reference
from tilewright.tools.progress import Silence

NETWORK_ERROR = 0.02
LAYER_ERROR = 0.05
LONG = 10_000
"""Cycles from which on a layer is held to ``LAYER_ERROR``; see tests/sim/test_fast_vs_rtl.py."""


def run(model, engine, image):
    session = tilewright.InferenceSession(model, machine="base", engine=engine, keep_tensors=True)
    (info,) = session.get_inputs()
    session.run(None, {info.name: image})
    return session


@pytest.mark.parametrize(("name", "cycles", "long_layers"), [
    ("vgg16-32", 3_400_000, 10), pytest.param("resnet18-32", 5_000_000, 18, marks=pytest.mark.slow)])
def test_a_network_in_rtl_is_onnx_runtimes_as_fast_as_promised_and_as_predicted(name, cycles, long_layers):
    model = find_model(name, Silence()).path
    image = images(1, 32, seed=1)
    rtl, fast = (run(model, engine, image) for engine in ("rtl", "fast"))
    assert_every_tensor_is_onnx_runtimes(rtl, model, image)
    assert rtl.report.cycles <= cycles
    assert fast.report.cycles == pytest.approx(rtl.report.cycles, rel=NETWORK_ERROR)
    pairs = [(here, there) for here, there in zip(fast.report.layers, rtl.report.layers, strict=True)
             if there.cycles >= LONG]
    assert len(pairs) >= long_layers
    for here, there in pairs:
        assert here.cycles == pytest.approx(there.cycles, rel=LAYER_ERROR), here.name


def assert_every_tensor_is_onnx_runtimes(session, model, image):
    (info,) = session.get_inputs()
    expected = Reference(model).run({info.name: image})
    for name, tensor in session.tensors.items():
        np.testing.assert_array_equal(tensor, as_int8(expected[name]).reshape(tensor.shape), err_msg=name)
    assert len(session.tensors) > len(session.report.layers)
