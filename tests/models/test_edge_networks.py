"""MobileNetV2, SqueezeNet and the detector: of the size stated, and all integer operators in ONNX Runtime."""

import re
from math import prod

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tilewright.models import LARGE, detector, large_file, mobilenet, resnet, squeezenet
from tilewright.models.images import images
from tilewright.models.large import NETWORKS
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import Reference
from tilewright.tools.progress import Silence

QUICK = ("mobilenetv2-96", "squeezenet-64", "detector-96")
SLOW = ("mobilenetv2-224", "squeezenet-224", "detector-224", "resnet50-64")
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
OUTPUTS = {"detector-96": {"coarse": (1, 75, 6, 6), "fine": (1, 75, 12, 12)},
           "detector-224": {"coarse": (1, 75, 14, 14), "fine": (1, 75, 28, 28)}}


def stated(name):
    """Return the MACs and parameters that the docstring of a model's module states."""
    text = "\n".join(module.__doc__ for module in (mobilenet, squeezenet, detector, resnet))
    row = re.search(rf"^ +{name} +\S+ +([\d,]+) +([\d,]+)", text, re.MULTILINE)
    return tuple(int(number.replace(",", "")) for number in row.groups())


def counted(model):
    """Return the MACs and parameters of a QDQ model, from its nodes alone."""
    inferred = onnx.shape_inference.infer_shapes(model)
    shapes = {value.name: [extent.dim_value for extent in value.type.tensor_type.shape.dim]
              for value in (*inferred.graph.value_info, *inferred.graph.output)}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    origin = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "DequantizeLinear"}
    macs = parameters = 0
    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm"):
            weights, *bias = (constants[origin[name]] for name in node.input[1:])
            macs += prod(shapes[node.output[0]]) * prod(weights.shape[1:])
            parameters += weights.size + sum(each.size for each in bias)
    return macs, parameters


@pytest.mark.parametrize("name", ALL)
def test_size_is_as_stated(name):
    assert counted(onnx.load(find_model(name, Silence()).path)) == stated(name)


@pytest.mark.parametrize("name", ALL)
def test_all_is_integer_and_values_use_the_range(name):
    model, side = find_model(name, Silence()).path, NETWORKS[name][1]
    reference = Reference(model)
    assert not reference.rounded_in_float
    (image,) = onnx.load(model, load_external_data=False).graph.input
    values = reference.run({image.name: images(1, side, seed=5)})
    outputs = {key: values.pop(key).shape for key in OUTPUTS.get(name, {"logits": (1, 1000)})}
    assert outputs == OUTPUTS.get(name, {"logits": (1, 1000)})
    for key, tensor in values.items():
        assert tensor.dtype == np.int8
        assert np.mean(np.abs(tensor.astype(int)) >= 127) < 0.02, key
        assert len(np.unique(tensor)) >= min(50, tensor.size // 4), key


def test_each_large_network_has_a_recipe_of_its_own_modules(tmp_path):
    folders = {name: large_file(name, tmp_path).parent for name in LARGE}
    assert folders["detector-96"] == folders["detector-224"]
    assert len(set(folders.values())) == len({"detector", "mobilenet", "squeezenet", "vgg16", "resnet"})
