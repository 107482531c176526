"""The roofline: worked out by hand for single layers, and its figures for the networks."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tests.support.stacks import Stack, large_network
from tilewright.compiler.plan.roofline import layer_roofline, least_bytes, roofline_cycles

# Million cycles on base, and a half of the last digit for its rounding.
FIGURES = {"vgg16-32": (3.0, 0.05), "resnet18-32": (4.5, 0.05), "vgg16-224": (122, 0.5), "resnet18-224": (16.7, 0.05),
           "resnet50-224": (52, 0.5)}


@pytest.mark.parametrize("name", FIGURES)
def test_networks_have_the_stated_roofline(name):
    millions, half_digit = FIGURES[name]
    found = roofline_cycles(large_network(name), WINOGRAD_MACHINES["base"]) / 1e6
    assert found == pytest.approx(millions, abs=half_digit)


def single(shape, outputs, kernel, **settings):
    stack = Stack(shape)
    stack.conv(outputs, kernel, **settings)
    return stack.network("single").layers[0]


def test_winograd_counts_whole_tiles():
    # 7 x 7 outputs are 4 x 4 tiles; 64 channels; 32 outputs are 8 groups of 4 lanes.
    roofline = layer_roofline(single((64, 7, 7), 32, 3, pad=1), WINOGRAD_MACHINES["base"])
    assert roofline.compute_cycles == 16 * 64 * 8
    assert roofline.cycles == max(roofline.compute_cycles, roofline.memory_cycles)


def test_dot_products_count_whole_runs():
    # A kernel row of 5 x 6 bytes takes two runs of 16; 5 outputs are 2 groups of 4 lanes.
    roofline = layer_roofline(single((6, 16, 16), 5, 5, stride=2, pad=2), WINOGRAD_MACHINES["base"])
    assert roofline.compute_cycles == 8 * 8 * 5 * 2 * 2


def test_dot_products_count_pairs_of_rows():
    # A kernel row of 7 x 3 bytes is three pieces of 8, and 7 rows are 4 pairs.
    roofline = layer_roofline(single((3, 16, 16), 5, 7, stride=2, pad=3), WINOGRAD_MACHINES["base"])
    assert roofline.compute_cycles == 8 * 8 * 4 * 3 * 2


def test_every_byte_crosses_the_bus_once():
    layer = single((8, 10, 10), 16, 3, pool=(2, 2, 0))
    assert least_bytes(layer) == 8 * 10 * 10 + 16 * 4 * 4 + 16 * 8 * 9 + 16 * 8
    assert layer_roofline(layer, WINOGRAD_MACHINES["nano"]).memory_cycles == least_bytes(layer) // 4


def test_what_computes_every_byte_alike_counts_bytes():
    layer = single((3, 8, 8), 3, 3, pad=1)
    table = replace(layer, kind="pass", weights=None, kernel=(1, 1), pads=(0, 0, 0, 0), groups=3,
                    bias=np.zeros(3, np.int32),
                    requantisation=replace(layer.requantisation, scale=np.ones(3, np.float32)))
    assert layer_roofline(table, WINOGRAD_MACHINES["base"]).compute_cycles == 8 * 8 * 3 // 4


def test_a_fully_connected_layer_is_bound_by_its_weights():
    roofline = layer_roofline(single((512, 1, 1), 1000, 1), WINOGRAD_MACHINES["base"])
    assert roofline.cycles == roofline.memory_cycles > roofline.compute_cycles
