"""Winograd's array against a plain one of int8 multipliers, in osu018's cells on a real layer: area and energy."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.array_streams import (
    DRAIN,
    LANES,
    TILES,
    Work,
    dot_work,
    input_transform,
    lane_energy,
    mapped,
    weight_transform,
    winograd_work,
)
from tilewright.compiler.compile import compile_network
from tilewright.compiler.network.reference import run_layer
from tilewright.runtime.model_source import choose_inputs, find_model
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.tools.debian import debian_data
from tilewright.tools.progress import Silence
from tilewright.tools.toolchain import ToolMissingError

pytestmark = pytest.mark.slow

ROW, COLUMN = 16, 12
"""First output of the tiles, in the middle of the image."""


@pytest.fixture(autouse=True, scope="module")
def _library():
    try:
        debian_data("osu018_stdcells.lib")
    except ToolMissingError as error:
        pytest.skip(str(error))


@dataclass(frozen=True)
class Operands:
    """The layer's padded input (channels, height, width), weights, and exact sums of the first lane (2, 8)."""

    x: np.ndarray
    weights: np.ndarray
    sums: np.ndarray


@pytest.fixture(scope="module")
def operands():
    """Layer 1 of VGG16 on 32x32: 64 channels, 3x3, behind a Relu."""
    source = find_model("vgg16-32", Silence())
    network = compile_network(source.path)
    (info,) = network.inputs
    image = choose_inputs(network.inputs, source, None).arrays[node_arg(info).name]
    first, layer = network.layers[:2]
    x = run_layer(first, quantise_input(info, np.asarray(image)).reshape(first.in_shape))
    assert layer.weights.shape == (64, 64, 3, 3)
    assert (layer.pads, layer.pad_value) == ((1, 1, 1, 1), 0)
    x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    kernel = layer.weights[0].astype(int)
    sums = [[(x[:, y:y + 3, left:left + 3] * kernel).sum() for left in range(COLUMN, COLUMN + 8)]
            for y in (ROW, ROW + 1)]
    return Operands(x, layer.weights, np.array(sums))


def winograd_area():
    return LANES * mapped("lane").netlist.area + mapped("inputs").netlist.area + mapped("weights").netlist.area


def winograd_energy(work: Work):
    """Return pJ per MAC, and the first lane's finished sums; that lane stands for the others, within 3 %."""
    lane, sums = lane_energy(work, 0, plain=False)
    return (LANES * lane + input_transform(work) + weight_transform(work)) / work.macs, sums


def plain_energy(work: Work):
    """Return the same of the plain array."""
    lane, sums = lane_energy(work, 0, plain=True)
    return LANES * lane / work.macs, sums


def test_plain_multipliers_in_the_same_area_nearly_make_up_for_winograds_fewer_products():
    plain = 16 * winograd_area() / mapped("plain").netlist.area
    assert plain == pytest.approx(130.4, rel=0.03)
    assert 36 * LANES / plain == pytest.approx(1.10, rel=0.03)


def test_winograd_takes_more_energy_than_plain_multipliers_and_less_than_its_own_dot_products(operands):
    winograd = winograd_work(operands.x, operands.weights, ROW, COLUMN)
    dots = dot_work(operands.x, operands.weights, ROW, COLUMN)
    assert winograd.patches.shape[0] * TILES + DRAIN == 264
    by_winograd, sums = winograd_energy(winograd)
    np.testing.assert_array_equal(sums.reshape(4, 2, 2).transpose(1, 0, 2).reshape(2, 8), operands.sums)
    expected = [operands.sums[0, :4], operands.sums[1, 4:]]
    by_dots, sums = winograd_energy(dots)
    np.testing.assert_array_equal(sums @ [1, -1, -1, 1], expected)
    by_plain, sums = plain_energy(dots)
    np.testing.assert_array_equal(sums[:, :, 0], expected)
    assert by_winograd / by_plain == pytest.approx(1.50, rel=0.07)
    assert by_winograd / by_dots == pytest.approx(0.77, rel=0.07)
