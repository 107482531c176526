"""Scaling a baseline: the rule, and where layers are run."""

from dataclasses import replace

import pytest

from tests.support.stacks import Stack
from tilewright.compiler.network.layers import Layer, Network, Place
from tilewright.isa.machine import preset
from tilewright.runtime.baseline.scaling import Sampling, extrapolate, parts, sampling, shape_key
from tilewright.sim.verilator.build import build_simulator


def network() -> Network:
    stack = Stack((64, 56, 56))
    stack.conv(64, 3, pad=1)
    stack.conv(64, 3, pad=1)
    stack.conv(128, 3, pad=1, pool=(3, 2, 1))
    stack.conv(8, 1)
    stack.average()
    return stack.network("convolutions")


def convolutions() -> tuple[Layer, ...]:
    return network().layers


def rule(rows: int, channels: int) -> int:
    return 700 + 31 * rows + 17 * rows * channels


@pytest.mark.parametrize("where", [Sampling((1, 2), (4, 8)), Sampling((2, 5), (64,)), Sampling((56,), (4, 12)),
                                   Sampling((56,), (64,))])
def test_what_follows_the_rule_is_scaled_exactly(where):
    layer = convolutions()[0]
    measured = [rule(part.out_shape[1], part.out_shape[0]) for part in parts(layer, where)]
    assert len(measured) == len(where.rows) + len(where.channels) - 1
    assert extrapolate(layer, where, measured) == rule(56, 64)


def test_large_layers_are_run_in_parts_and_small_ones_whole():
    same, _, pooled, narrow, average = convolutions()
    assert sampling(same, xpulp=False) == Sampling((1, 2), (16, 32))  # the smallest part has 500,000 products
    assert sampling(pooled, xpulp=True).rows == (2, 4)  # the first and the last row reach beyond the image
    assert sampling(narrow, xpulp=True).whole
    assert sampling(average, xpulp=True).whole


def test_layers_of_one_shape_are_one():
    first, second, pooled, *_ = convolutions()
    tensors = network().tensors
    assert shape_key(first, tensors) == shape_key(second, tensors) != shape_key(pooled, tensors)
    inside = replace(tensors["conv1"], place=Place(parent="conv0", offset=0, row_step=56 * 128, pixel_step=128))
    assert shape_key(second, {**tensors, "conv1": inside}) != shape_key(second, tensors)


def test_a_coprocessor_has_a_host_core():
    with pytest.raises(ValueError, match=r"Core.*cv32e40x, ibex.*not 'cv32e40p'"):
        build_simulator(preset("base"), core="cv32e40p")
