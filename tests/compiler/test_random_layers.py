"""Random layers on random machines: compiled, proven free of races, executed; equal to the reference."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_layers import (
    network_of,
    random_large_layer,
    random_layer,
    random_machine,
    random_narrow_layer,
)
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.reference import run_layer
from tilewright.compiler.plan.planner import DoesNotFitError
from tilewright.compiler.schedule.races import check

BATCH = 50
FEW, MANY = 6, 44


def run_batch(batch: int, draw: Callable[[np.random.Generator], Layer] = random_layer) -> dict[str, int]:
    """Run layers of the seeds of ``batch`` and return how many were cut in which way."""
    seen = dict.fromkeys(("tiles", "columns", "blocks", "parts", "too large", "conv23", "conv", "pool", "paired",
                          "paired odd", "pieces", "folded", "cut", "strips"), 0)
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = np.random.default_rng(seed)
        layer, machine = draw(rng), random_machine(rng, any_array=True)
        network = network_of(layer)
        inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
        try:
            compiled = compile_layers(network, machine)
        except DoesNotFitError:
            seen["too large"] += 1
            continue
        check((command for _, command in compiled.program.commands()), machine)
        expected = run_layer(layer, inputs["x"], inputs.get("residual"))
        np.testing.assert_array_equal(execute(compiled, inputs)["y"], expected, err_msg=f"seed {seed}: {layer.name}")
        plan = compiled.plans[0]
        seen[plan.nest.algorithm] += 1
        seen["paired"] += plan.nest.paired
        seen["paired odd"] += plan.nest.paired and layer.kernel[0] % 2
        seen["pieces"] += plan.nest.pieces and plan.nest.kernel_x > 1
        seen["tiles"] += len(plan.tiles) > 1
        seen["columns"] += len(plan.tiles[0].columns.out) < layer.out_shape[2]
        seen["blocks"] += len(plan.blocks) > 1
        seen["folded"] += bool(plan.nest.fold)
        seen["cut"] += plan.nest.cuts != (1, 1)
        seen["strips"] += plan.nest.cuts != (1, 1) and plan.splits_input
        seen["parts"] += len(plan.blocks[0].runs) < plan.nest.runs
    return seen


@pytest.mark.parametrize("batch", range(FEW))
def test_layers_equal_the_reference(batch):
    seen = run_batch(batch)
    # The point of tiny buffers is that layers are cut; and most must fit.
    assert seen["tiles"] > BATCH // 4
    assert seen["blocks"] > BATCH // 6
    assert seen["too large"] < BATCH // 4
    assert all(seen[algorithm] for algorithm in ("conv23", "conv", "pool"))


@pytest.mark.parametrize("batch", range(2))
def test_layers_of_large_kernels_equal_the_reference(batch):
    seen = run_batch(batch, random_large_layer)
    assert min(seen["folded"], seen["cut"]) > BATCH // 10
    assert seen["strips"]
    assert seen["too large"] < BATCH // 3


@pytest.mark.parametrize("batch", range(2))
def test_layers_of_narrow_kernel_rows_equal_the_reference(batch):
    seen = run_batch(batch, random_narrow_layer)
    assert seen["paired"] > BATCH // 2
    assert seen["paired odd"] > BATCH // 8
    assert seen["pieces"] > BATCH // 16
    assert seen["tiles"] > BATCH // 8


@pytest.mark.slow
def test_many_layers_equal_the_reference():
    total: dict[str, int] = {}
    for batch in range(FEW, FEW + MANY):
        for what, count in run_batch(batch).items():
            total[what] = total.get(what, 0) + count
    assert all(total.values()), f"every way to cut a layer must occur: {total}"
