"""VGG16 and ResNet18 at 32×32, whole, in RTL: every layer is ONNX Runtime's, within the cycles promised."""

import numpy as np
import pytest

import tilewright
from tilewright.models.images import images
from tilewright.runtime.models import model_file
from tilewright.runtime.progress import Silence
from tilewright.runtime.quantization import as_int8
from tilewright.runtime.reference import Reference


@pytest.mark.parametrize(("name", "cycles"), [("vgg16-32", 3_400_000), ("resnet18-32", 5_000_000)])
def test_every_tensor_is_onnx_runtimes_within_the_cycles_promised(name, cycles):
    model = model_file(name, Silence())
    session = tilewright.InferenceSession(model, machine="base", engine="rtl", keep_tensors=True)
    (info,) = session.get_inputs()
    image = images(1, 32, seed=1)
    session.run(None, {info.name: image})
    expected = Reference(model).run({info.name: image})
    for layer, tensor in session.tensors.items():
        np.testing.assert_array_equal(tensor, as_int8(expected[layer]).reshape(tensor.shape), err_msg=layer)
    assert len(session.tensors) > len(session.report.layers)
    assert session.report.cycles <= cycles
