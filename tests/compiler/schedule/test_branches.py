"""Chains of tensors with several readers and of concatenations compute what layers apart do, without a race."""


import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_branches import random_branches
from tests.support.random_chains import random_inputs
from tests.support.random_layers import random_machine
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.planner import DoesNotFitError, LayerPlan
from tilewright.compiler.schedule.chaining import chains
from tilewright.compiler.schedule.kept_inputs import lay_out
from tilewright.compiler.schedule.races import check

BATCH = 40


def run_batch(batch: int) -> dict[str, int]:
    """Compile and execute the networks of ``batch``; return how often there was what."""
    seen = dict.fromkeys(("several readers", "several writers", "in two layouts", "stored too", "shared padding",
                          "taken again", "rotated", "whole on chip", "not chained"), 0)
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = np.random.default_rng(seed)
        network, machine, keep = random_branches(rng), random_machine(rng, any_array=True), rng.random() < 0.2
        inputs = random_inputs(rng, network)
        try:
            compiled = compile_layers(network, machine, keep_tensors=keep, options=Options(bands=False))
        except DoesNotFitError:
            continue
        check([command for _, command in compiled.program.commands()], machine)
        tensors, expected = execute(compiled, inputs), run_network(network, inputs)
        for info in network.tensors.values() if keep else network.outputs:
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"seed {seed}, {info.name}")
        for each in chains(compiled.plans):
            count([plan for plan in compiled.plans[each.start:each.stop] if isinstance(plan, LayerPlan)], machine,
                  seen, keep=keep)
        seen["whole on chip"] += any(name.startswith("joined") and name not in compiled.memory.tensors
                                     for name in network.tensors)
        seen["not chained"] += not any(plan.chip.input for plan in compiled.plans)
    return seen


def count(plans, machine, seen: dict[str, int], *, keep: bool) -> None:
    """Add to ``seen`` what occurs in a chain."""
    readers = [index + feed.ahead for index, plan in enumerate(plans) for feed in plan.chip.feeds]
    seen["several writers"] += len(set(readers)) < len(readers)
    for index, plan in enumerate(plans):
        fed = [plans[index + feed.ahead] for feed in plan.chip.feeds]
        seen["several readers"] += len(fed) > 1
        seen["in two layouts"] += len({each.nest.winograd for each in fed}) > 1
        seen["stored too"] += plan.chip.output and plan.chip.stored and not keep
        seen["rotated"] += any(each.nest.winograd and feed.channel % 16
                               for each, feed in zip(fed, plan.chip.feeds, strict=True))
    places = lay_out(plans, machine).inputs
    seen["shared padding"] += any(not each.fresh for each in places)
    seen["taken again"] += any(each.late and each.start < other.stop and other.start < each.stop
                               for each in places for other in places if other is not each)


@pytest.mark.parametrize("batch", range(3))
def test_networks_equal_the_reference(batch):
    seen = run_batch(batch)
    assert all(seen.values()), f"every way to branch must occur: {seen}"


@pytest.mark.slow
def test_many_networks_equal_the_reference():
    for batch in range(3, 30):
        run_batch(batch)
