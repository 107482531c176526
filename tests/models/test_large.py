"""The large models: as many multiplications and parameters as published, values spread over the int8 range."""

import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError
from tilewright.models import FOLDER, LARGE, is_large, large_file, resnet, vgg16
from tilewright.models.images import images
from tilewright.models.large import NETWORKS
from tilewright.runtime.model_source import choose_inputs, find_model, model_folder
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.value_ranges import tensor_statistics
from tilewright.tools.progress import Silence


def stated(name):
    """Return the MACs and parameters that the docstring of a model's module states."""
    text = f"{vgg16.__doc__}\n{resnet.__doc__}"
    row = re.search(rf"^ +{name} +\S+ +([\d,]+) +([\d,]+)", text, re.MULTILINE)
    return tuple(int(number.replace(",", "")) for number in row.groups())


@pytest.mark.parametrize("name", ["vgg16-32", "resnet18-32"])
def test_size_is_as_stated_and_values_use_the_range(name):
    source = find_model(name, Silence())
    model = source.path
    network = compile_network(model)
    macs, parameters = stated(name)
    assert network.macs == macs
    tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer}
    assert sum(t.size for n, t in tensors.items() if n.endswith("_quantized")) == parameters

    inputs = choose_inputs(network.inputs, source, None)
    assert "natural spectrum" in inputs.origin
    values = run_network(network, {info.name: quantise_input(info, inputs.arrays[info.onnx_name])
                                   for info in network.inputs})
    layers = [(layer.name, layer.output) for layer in network.layers]
    statistics = tensor_statistics(layers, values, {name: info.zero_point for name, info in network.tensors.items()})
    for each in statistics:
        assert each.zeros < 0.75, each
        assert each.saturated < 0.01, each
        # Half the values, 128 of them, are what ReLU leaves of a symmetric range.
        assert each.levels >= min(60, each.elements // 2), each


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18-224", "vgg16-224", "resnet50-224"])
def test_size_of_a_network_for_photographs_is_as_stated(name):
    network = compile_network(find_model(name, Silence()).path)
    weights = sum(layer.weights.size + layer.bias.size for layer in network.layers if layer.weights is not None)
    assert (network.macs, weights) == stated(name)


def test_every_name_can_be_built_and_names_the_side_of_its_image():
    assert {name: side for name, (_, side) in NETWORKS.items()} == {
        name: int(name.rpartition("-")[2]) for name in LARGE}


def test_a_model_is_recognised_by_its_content(tmp_path):
    built = find_model("vgg16-32", Silence()).path
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(built.read_bytes())
    assert is_large(copy, model_folder())
    assert not is_large(FOLDER / "lenet5.onnx", model_folder())


def test_a_network_is_built_without_torch(tmp_path):
    script = ("import sys; from pathlib import Path; sys.modules['torch'] = None; "
              f"from tilewright.models.large import build; build('detector-96', Path({str(tmp_path)!r}))")
    subprocess.run([sys.executable, "-c", script], check=True)
    (built,) = tmp_path.rglob("*.onnx")
    onnx.checker.check_model(onnx.load(built), full_check=True)


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Large model .*vgg16-32.*'vgg19'"):
        large_file("vgg19", tmp_path)
    with pytest.raises(InputError, match=r"Model.*'vgg19'"):
        find_model("vgg19", Silence())


def test_images_are_normalised_and_their_amplitude_falls_as_one_over_frequency():
    pictures = images(4, 128, seed=3)
    assert (pictures.dtype, pictures.shape) == (np.float32, (4, 3, 128, 128))
    np.testing.assert_allclose(pictures.mean(axis=(1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(pictures.std(axis=(1, 2, 3)), 1, rtol=1e-5)
    amplitude = np.abs(np.fft.rfft2(pictures)).mean(axis=(0, 1))
    low, high = amplitude[4, 4:8].mean(), amplitude[32, 32:64].mean()
    assert low / high == pytest.approx(8, rel=0.3)
    np.testing.assert_array_equal(pictures, images(4, 128, seed=3))
    assert np.any(pictures != images(4, 128, seed=4))
