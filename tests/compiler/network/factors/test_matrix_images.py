"""A product of computed matrices: what is written as weights and parameters is what the array wants, on every one."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MACHINES
from tests.support.matrix_networks import ZERO, matrix_network, product_of
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.factors.matrix_images import with_matrix_images
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import PRESETS, Machine

BYTES = np.arange(-128, 128, dtype=np.int8)
ALL = [*MACHINES.values(), Machine(name="plain", array="plain"), Machine(name="winograd", array="winograd"),
       replace(PRESETS["base"], name="inner", array="inner")]


def inputs_of(network, rng, extreme=False):
    return {info.name: rng.choice(BYTES[[0, -1]] if extreme else BYTES, info.shape) for info in network.inputs}


def executed(network, machine, inputs):
    compiled = compile_layers(network, machine, keep_tensors=True)
    check((command for _, command in compiled.program.commands()), machine)
    return compiled, execute(compiled, inputs)


@pytest.mark.parametrize("machine", ALL, ids=lambda machine: machine.name)
@pytest.mark.parametrize("zeros", [(0, 0), (5, 0), (0, 3), (-128, -128), (-128, 17), (127, 127)], ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1), (32, 3, 33), (17, 3, 5)], ids=str)
def test_products_are_those_of_the_definition(machine, shape, zeros):
    network = matrix_network(*shape, *zeros)
    rng = np.random.default_rng(sum(shape))
    for extreme in (False, True):
        inputs = inputs_of(network, rng, extreme)
        expected = product_of(inputs["x"], inputs["w"], *zeros)
        np.testing.assert_array_equal(run_network(network, inputs)["y"], expected)
        np.testing.assert_array_equal(executed(network, machine, inputs)[1]["y"], expected)


@pytest.mark.parametrize("machine", ALL, ids=lambda machine: machine.name)
@pytest.mark.parametrize("zeros", [(0, 0), (5, 0), (0, 3), (-128, -128), (-128, 17), (127, 127)], ids=str)
@pytest.mark.parametrize("scale", [LongScale((1431655765,) * 33, (41,) * 33, True),
                                   IntegerScale((21845,) * 33, (7,) * 33, 26)], ids=lambda each: type(each).__name__)
def test_products_are_requantised_in_whole_numbers_too(machine, zeros, scale):
    """The last byte of a bias has four bits of the numbers beside it."""
    network = matrix_network(32, 3, 33, *zeros)
    (product,) = network.layers
    network = replace(network, layers=(replace(product, requantisation=replace(
        product.requantisation, integers=scale)),))
    machine = replace(machine, integer_requantise=True)
    for extreme in (False, True):
        inputs = inputs_of(network, np.random.default_rng(7), extreme)
        sums = (inputs["w"][:, 0].T.astype(np.int32) - zeros[1]) @ (inputs["x"][:, 0].astype(np.int32) - zeros[0])
        negative = -1 if zeros[1] == -128 else 1
        expected = np.clip(scale.levels(negative * sums[:, None]) + ZERO, -128, 127)
        np.testing.assert_array_equal(run_network(network, inputs)["y"], expected)
        np.testing.assert_array_equal(executed(network, machine, inputs)[1]["y"], expected)


def test_biases_of_more_bits_than_whole_numbers_leave_are_refused():
    network = matrix_network(4000, 1, 2, 5, 0)
    (product,) = network.layers
    network = replace(network, layers=(replace(product, requantisation=replace(
        product.requantisation, integers=LongScale((1 << 30,) * 2, (41,) * 2, True))),))
    with pytest.raises(UnsupportedNodeError, match="28 bits"):
        with_matrix_images(network, replace(PRESETS["base"], integer_requantise=True))


def test_a_machine_that_leaves_no_sums_whole_is_refused_with_what_to_choose():
    machine = replace(PRESETS["nano"], name="no sums", whole_sums=False)
    with pytest.raises(UnsupportedNodeError, match="whole_sums"):
        compile_layers(matrix_network(17, 3, 5, 5, 0), machine)
    assert compile_layers(matrix_network(17, 3, 5, 0, 0), machine)


@pytest.mark.parametrize("machine", ALL, ids=lambda machine: machine.name)
def test_the_layers_that_write_them_are_computed_as_the_reference_says(machine):
    network = matrix_network(37, 6, 19, -7, 11)
    inputs = inputs_of(network, np.random.default_rng(4))
    compiled, found = executed(network, machine, inputs)
    expected = run_network(compiled.network, inputs)
    written = [name for layer in compiled.network.layers for name in layer.writes
               if name in ("y:sums", "y:parameters", "y") or ":weights[" in name]
    assert {"y:sums", "y:parameters", "y"} < set(written)
    # Bytes of lanes without an output are anybody's.
    for name in written:
        if "zero points" not in name:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize("rng", [np.random.default_rng(seed) for seed in range(8)])
@pytest.mark.parametrize("name", ["nano", "base", "large", "tiny"])
def test_random_shapes_and_zero_points(rng, name):
    shape = tuple(int(each) for each in rng.integers(1, (150, 50, 70)))
    zeros = tuple(int(each) for each in rng.integers(-128, 128, 2))
    network = matrix_network(*shape, *zeros)
    inputs = inputs_of(network, rng)
    compiled, found = executed(network, MACHINES[name], inputs)
    np.testing.assert_array_equal(found["y"], product_of(inputs["x"], inputs["w"], *zeros), err_msg=str((shape, zeros)))
    assert compiled.network.layers[-1].macs == network.macs == np.prod(shape)


@pytest.mark.parametrize("zeros", [(3, 0), (3, 9), (-128, -128)], ids=str)
@pytest.mark.parametrize("inputs", [500, 1500])
def test_weights_that_do_not_fit_are_loaded_part_by_part(inputs, zeros):
    network = matrix_network(inputs, 5, 7, *zeros)
    given = inputs_of(network, np.random.default_rng(inputs))
    compiled, found = executed(network, MACHINES["tiny"], given)
    expected = product_of(given["x"], given["w"], *zeros)
    np.testing.assert_array_equal(found["y"], expected)
    np.testing.assert_array_equal(run_network(compiled.network, given)["y"], expected)


def test_without_zero_points_a_plain_array_needs_no_parameters():
    layers = with_matrix_images(matrix_network(16, 3, 4, 0, 0), PRESETS["nano"]).layers
    assert [layer.name for layer in layers] == ["product:weights[0, 0, 0]", "product"]
    assert layers[-1].factor.weights
    assert not layers[-1].factor.parameters


def test_images_are_written_once():
    network = with_matrix_images(matrix_network(8, 3, 4, 1, 1), PRESETS["base"])
    assert with_matrix_images(network, PRESETS["base"]) is network
