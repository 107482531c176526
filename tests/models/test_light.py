"""The structures of onnx run with drawn weights, and their batch normalisations normalise."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tilewright.models.images import images
from tilewright.models.light import LIGHT, SIDE, light
from tilewright.runtime.oracle.onnx_runtime import session

SMALL = ("squeezenet", "shufflenet", "inception_v1")


def run(model, names, image):
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    extended.graph.output.extend(map(helper.make_empty_tensor_value_info, names))
    wanted = [model.graph.output[0].name, *names]
    return session(extended.SerializeToString()).run(wanted, {model.graph.input[0].name: image})


@pytest.mark.parametrize("name", [name if name in SMALL else pytest.param(name, marks=pytest.mark.slow)
                                  for name in LIGHT])
def test_the_network_tells_images_apart(name):
    model = light(name)
    assert len(model.graph.input) == 1
    assert not any(node.op_type == "ConstantOfShape" for node in model.graph.node)
    answers = [run(model, [], image[np.newaxis])[0].ravel() for image in images(2, SIDE, seed=11)]
    assert all(np.isfinite(answer).all() for answer in answers)
    # Where logits are large, Softmax leaves a few hundred of a thousand above zero.
    assert all(len(np.unique(answer)) > 100 for answer in answers)
    assert np.abs(answers[0] - answers[1]).max() > 1e-4


def test_batch_normalisation_normalises_the_image_it_was_made_with():
    model = light("shufflenet", seed=3)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    normalisations = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    _, *values = run(model, [node.output[0] for node in normalisations], images(1, SIDE, seed=3))
    assert len(values) == 49
    for node, value in zip(normalisations, values, strict=True):
        gain, shift = (constants[name] for name in node.input[1:3])
        np.testing.assert_allclose(value.mean(axis=(0, 2, 3)), shift, atol=1e-3)
        # A channel that hardly varies is not blown up: 1e-5 is added to its variance.
        assert np.median(np.abs(value.std(axis=(0, 2, 3)) / gain - 1)) < 0.01, node.name


def test_weights_are_those_of_the_seed():
    first, again, other = (light("squeezenet", seed).SerializeToString() for seed in (0, 0, 1))
    assert first == again != other


def test_an_unknown_structure_is_refused():
    with pytest.raises(ValueError, match=r"Structure.*bvlc_alexnet.*not 'vgg16'"):
        light("vgg16")
