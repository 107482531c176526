"""Random layers in RTL: every element that the reference and the functional engine compute, on every machine.

On every machine with every timing of memory, each with layers of its own: 400 in all; and, in the slow set, on each
array in three sizes: 300 in all.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MACHINES, slow_unless_built
from tests.support.random_layers import fitting_layers, mostly_small_layer, random_narrow_layer
from tests.support.rtl import execute_rtl
from tests.support.side_by_side import side_by_side
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.isa.machine import ARRAYS, PRESETS, Machine, MemoryTiming

BATCH = 25
TIMINGS = ((1, 16), (200, 16), (20, 4), (55, 2))  # latency in cycles, bytes per cycle


def assert_exact(machine: Machine, seed: int, folder, timing: MemoryTiming | None = None,
                 draw: Callable[[np.random.Generator], Layer] = mostly_small_layer) -> tuple[LayerPlan, ...]:
    rng = np.random.default_rng(seed)
    network = side_by_side(fitting_layers(rng, machine, BATCH, draw))
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    tensors, _ = execute_rtl(compiled, inputs, folder, timing=timing)
    expected, functional = run_network(network, inputs), execute(compiled, inputs)
    for layer in network.layers:
        name = layer.output
        np.testing.assert_array_equal(functional[name], expected[name], err_msg=f"{layer.name}, functional engine")
        np.testing.assert_array_equal(tensors[name], expected[name], err_msg=f"{layer.name}, RTL")
    return compiled.plans


@pytest.mark.parametrize("machine", [PRESETS["nano"], PRESETS["base"]], ids=lambda machine: machine.name)
def test_layers_of_narrow_kernel_rows_equal_the_reference(machine, tmp_path):
    plans = assert_exact(machine, 1, tmp_path, draw=random_narrow_layer)
    assert sum(plan.nest.paired for plan in plans) > BATCH // 2
    assert any(plan.nest.pieces and plan.nest.kernel_x > 1 for plan in plans)


@pytest.mark.parametrize("timing", range(len(TIMINGS)))
@pytest.mark.parametrize("machine", slow_unless_built(MACHINES.values()))
def test_layers_equal_the_reference(timing, machine, tmp_path):
    # From memory without latency to one that answers late and slowly: no result may hang on when data come.
    latency, rate = TIMINGS[timing]
    seed = timing + len(TIMINGS) * list(MACHINES).index(machine.name)
    assert_exact(machine, seed, tmp_path, MemoryTiming(latency_cycles=latency, bytes_per_cycle=rate))


def _with_array(machine: Machine, array: str) -> Machine:
    """Return ``machine`` with another array, of as many lanes as such an array may have."""
    fetched = 2 if array.endswith("inner") else 1
    each = min(max(machine.lanes // machine.clusters, fetched), fetched * machine.tiles)
    lanes = each * machine.clusters
    return replace(machine, name=f"{machine.name}-{array}", array=array, lanes=lanes,
                   post_lanes=min(machine.post_lanes, lanes))


@pytest.mark.slow
@pytest.mark.parametrize("size", PRESETS)
@pytest.mark.parametrize("array", ARRAYS)
def test_layers_equal_the_reference_on_each_array_in_each_size(array, size, tmp_path):
    machine = _with_array(PRESETS[size], array)
    assert_exact(machine, 100 + len(ARRAYS) * list(PRESETS).index(size) + list(ARRAYS).index(array), tmp_path)
