"""Layers of 16 bits: the program computes what the reference does, in every array, down to RTL under stalls."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MORE_PAIRS, MORE_UNITS
from tests.support.rtl import execute_rtl
from tests.support.word_layers import SHAPES, SUMS, word_layer, word_network, word_sum
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import ARRAYS, Machine, MemoryTiming

SMALL = Machine(name="words", array="winograd_inner", lanes=8, clusters=2, post_lanes=4, bus_bytes=4,
                activation_bytes=16384, weight_bytes=16384, result_bytes=4096, parameter_channels=128, wide_words=True)
FORMS = ((True, True), (True, False), (False, True))


def ran(machine, run, seed=1, curved=False):
    """Assert that layers of all kinds, or ``curved`` ones, compute what the reference does."""
    rng = np.random.default_rng(seed)
    layers = [word_layer(rng, index, wide_in=wide_in, wide_out=wide_out, curved=curved) for index in range(len(SHAPES))
              for wide_in, wide_out in [FORMS[index % 3] if index > 3 else FORMS[0]] if wide_out or not curved]
    network = word_network([*layers, *(word_sum(rng, index) for index in range(len(SUMS)))])
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    found, expected = run(compiled, inputs), run_network(network, inputs)
    for layer in network.layers:
        for name in layer.writes:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{layer.name} {name}")
    return compiled


@pytest.mark.parametrize("array", ARRAYS)
def test_every_array_computes_the_same(array):
    compiled = ran(replace(SMALL, array=array), execute)
    assert any(plan.nest.winograd for plan in compiled.plans) == (array in ("winograd", "winograd_inner"))


@pytest.mark.parametrize("machine", [MORE_UNITS, *(
    pytest.param(replace(SMALL, name=array, array=array), marks=pytest.mark.slow)
    for array in ARRAYS if array != MORE_UNITS.array)], ids=lambda machine: machine.name)
def test_rtl_under_stalls(machine, tmp_path):
    timing = MemoryTiming(bytes_per_cycle=4, stall_percent=40, seed=3)
    ran(machine, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path, timing=timing)[0])


CURVED = replace(SMALL, bus_bytes=8)


@pytest.mark.parametrize("array", ARRAYS)
def test_results_follow_their_curve_in_every_array(array):
    ran(replace(CURVED, array=array), execute, curved=True)


@pytest.mark.parametrize("machine", [
    MORE_PAIRS, pytest.param(replace(CURVED, bus_bytes=16), marks=pytest.mark.slow)], ids=lambda machine: machine.name)
def test_results_follow_their_curve_in_rtl_under_stalls(machine, tmp_path):
    timing = MemoryTiming(bytes_per_cycle=machine.bus_bytes, stall_percent=40, seed=4)
    ran(machine, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path, timing=timing)[0], curved=True)
