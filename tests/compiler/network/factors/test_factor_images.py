"""A product by a computed vector: what is written as weights is what the array wants, on every machine."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.factor_networks import product_network
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.factors.factor_images import with_factor_images
from tilewright.compiler.network.layers import Layer, Place
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS

BYTES = np.arange(-128, 128, dtype=np.int8)


def inputs_of(network, rng):
    return {info.name: rng.choice(BYTES, info.shape) for info in network.inputs}


@pytest.mark.parametrize("machine", PRESETS.values(), ids=str)
@pytest.mark.parametrize(("x_zero", "s_zero"), [(-128, -128), (5, 0), (0, -128), (127, 127), (-3, 17), (0, 0)])
@pytest.mark.parametrize("channels", [1, 3, 16, 37])
def test_products_are_those_of_the_definition(machine, x_zero, s_zero, channels):
    network = product_network(channels, x_zero=x_zero, s_zero=s_zero)
    inputs = inputs_of(network, np.random.default_rng(channels))
    inputs["s"].flat[:2] = [127, -128][:channels]
    sums = (inputs["x"].astype(int) - x_zero) * (inputs["s"].astype(int) - s_zero) * (-1 if s_zero == -128 else 1)
    expected = np.clip(np.rint(sums.astype(np.float32) * np.float32(1 / 300)) + 3, -128, 127)
    np.testing.assert_array_equal(run_network(network, inputs)["y"], expected)
    np.testing.assert_array_equal(execute(compile_layers(network, machine, keep_tensors=True), inputs)["y"], expected)


@pytest.mark.parametrize(("machine", "channels", "size"), [("nano", 300, (2, 2)), ("base", 1200, (1, 1)),
                                                          ("large", 1032, (1, 2)), ("base", 72, (40, 40))])
def test_weights_of_many_blocks_and_images_of_many_tiles(machine, channels, size):
    network = product_network(channels, size)
    inputs = inputs_of(network, np.random.default_rng(1))
    compiled = compile_layers(network, PRESETS[machine])
    np.testing.assert_array_equal(execute(compiled, inputs)["y"], run_network(network, inputs)["y"])
    assert len(compiled.plans[-1].tiles) * len(compiled.plans[-1].blocks) > 1


def test_on_a_machine_without_tables_the_core_looks_up_the_bias():
    network, machine = product_network(37, x_zero=5), replace(PRESETS["base"], name="no tables", value_tables=False)
    inputs = inputs_of(network, np.random.default_rng(3))
    compiled = compile_layers(network, machine)
    assert not any(isinstance(layer, Layer) and layer.table is not None for layer in compiled.network.layers)
    np.testing.assert_array_equal(execute(compiled, inputs)["y"], run_network(network, inputs)["y"])


def test_a_vector_may_be_part_of_another_tensor():
    network = product_network(6, place=Place(parent="all", offset=4, row_step=6, pixel_step=6))
    inputs = inputs_of(network, np.random.default_rng(2))
    expected = run_network(network, inputs)["y"]
    np.testing.assert_array_equal(execute(compile_layers(network, PRESETS["base"]), inputs)["y"], expected)


def test_without_zero_point_the_parameters_are_constants():
    layers = with_factor_images(product_network(8, x_zero=0), PRESETS["base"]).layers
    assert [layer.kind for layer in layers] == ["conv", "conv"]
    assert layers[-1].factor.weights
    assert not layers[-1].factor.parameters


def test_images_are_written_once():
    network = with_factor_images(product_network(8), PRESETS["base"])
    assert with_factor_images(network, PRESETS["base"]) is network
