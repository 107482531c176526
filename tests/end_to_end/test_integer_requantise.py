"""Layers that are requantised in whole numbers, between others: the same values in every array, down to RTL."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MORE_UNITS
from tests.support.random_layers import fitting_layers
from tests.support.rtl import execute_rtl
from tests.support.side_by_side import side_by_side
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import MemoryTiming, preset

PAIRS = replace(MORE_UNITS, name="pairs", array="winograd_inner", lanes=8, channel_kernels=False)
ONE = replace(MORE_UNITS, name="one lane", array="plain", column_reuse=False, lanes=1, clusters=1, post_lanes=1)


def in_integers(layer, rng):
    """Return a layer with integers in place of its scales, about as large: by multipliers and addends, or long ones."""
    if rng.random() < 0.5:
        fractions, exponents = np.frexp(layer.requantisation.scale.astype(np.float64))
        multipliers = np.rint(np.ldexp(fractions, 31)).astype(np.int64) | rng.integers(0, 64, fractions.size)
        long = LongScale(tuple(multipliers.tolist()), tuple((31 - exponents).tolist()), bool(rng.random() < 0.5))
        return replace(layer, requantisation=replace(layer.requantisation, scale=long.factors, integers=long))
    bits, scale = int(rng.integers(8, 18)), layer.requantisation.scale
    shift = int(np.clip(bits - np.ceil(np.log2(scale.max())), 0, 63))
    multipliers = np.clip(np.rint(scale * 2.0**shift), 1, 2**18 - 1).astype(np.int64)
    addends = multipliers * rng.integers(-300, 300, scale.size) + rng.integers(0, multipliers)
    integers, biases = IntegerScale.of(multipliers.tolist(), addends.tolist(), shift)
    return replace(layer, bias=(layer.bias + biases).astype(np.int32), requantisation=replace(
        layer.requantisation, scale=integers.factors, integers=integers))


def network_in_integers(machine, seed, count):
    rng = np.random.default_rng(seed)
    layers = [each for each in fitting_layers(rng, machine, count) if each.factor is None and not each.whole]
    return side_by_side([in_integers(each, rng) if rng.random() < 0.8 else each for each in layers]), rng


def ran(machine, run, seed=1, count=12):
    """Assert that the layers compute what the reference does."""
    network, rng = network_in_integers(machine, seed, count)
    assert sum(each.requantisation.integers is not None for each in network.layers) >= count // 2
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    found, expected = run(compiled, inputs), run_network(network, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(found[layer.output], expected[layer.output], err_msg=layer.name)


@pytest.mark.parametrize("machine", [MORE_UNITS, PAIRS, ONE], ids=lambda machine: machine.name)
def test_every_array_computes_the_same(machine):
    ran(machine, execute)


def test_rtl_under_stalls(tmp_path):
    timing = MemoryTiming(bytes_per_cycle=4, stall_percent=30, seed=5)
    ran(MORE_UNITS, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path, timing=timing)[0], 2, 6)


def test_a_machine_without_is_refused_with_what_to_do():
    network, _ = network_in_integers(MORE_UNITS, 3, 4)
    with pytest.raises(UnsupportedNodeError, match="integer_requantise=true") as caught:
        compile_layers(network, preset("base"))
    asked = sum(each.requantisation.integers is not None for each in network.layers)
    assert 1 + len(caught.value.others) == asked
