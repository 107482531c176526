"""Groups of bands with several readers and writers of a tensor give what their layers do, without a race."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_branches import random_branches
from tests.support.random_chains import random_inputs
from tests.support.random_layers import random_machine
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.planner import DoesNotFitError, LayerPlan
from tilewright.compiler.schedule import bands
from tilewright.compiler.schedule.chaining import computed_together
from tilewright.compiler.schedule.races import check

BATCH = 40


def run_batch(batch: int) -> dict[str, int]:
    """Compile and execute the networks of ``batch``, all groups cheap; return how often there was what."""
    return run_seeds(range(batch * BATCH, (batch + 1) * BATCH))


def run_seeds(seeds: range) -> dict[str, int]:
    """Compile and execute a network of each seed; return how often there was what."""
    seen = dict.fromkeys(("several readers", "several writers", "in two layouts", "stored too", "wraps", "padded late",
                          "several ends", "deep"), 0)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        network, machine = random_branches(rng, longest=18), random_machine(rng, any_array=True)
        machine = replace(machine, activation_bytes=min(machine.activation_bytes, 1 << int(rng.integers(11, 14))))
        inputs = random_inputs(rng, network)
        try:
            compiled = compile_layers(network, machine)
        except DoesNotFitError:
            continue
        check([command for _, command in compiled.program.commands()], machine)
        tensors, expected = execute(compiled, inputs), run_network(network, inputs)
        for info in network.outputs:
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"seed {seed}, {info.name}")
        for each in computed_together(compiled.plans):
            count([plan for plan in compiled.plans[each.start:each.stop] if isinstance(plan, LayerPlan)], seen)
    return seen


def count(plans: list[LayerPlan], seen: dict[str, int]) -> None:
    """Add to ``seen`` what occurs in a group."""
    readers = [index + feed.ahead for index, plan in enumerate(plans) for feed in plan.chip.feeds]
    seen["several writers"] += len(set(readers)) < len(readers)
    seen["several ends"] += sum(not plan.chip.feeds for plan in plans) > 1
    for index, plan in enumerate(plans):
        fed = [plans[index + feed.ahead] for feed in plan.chip.feeds]
        seen["several readers"] += len(fed) > 1
        seen["in two layouts"] += len({each.nest.winograd for each in fed}) > 1
        seen["stored too"] += plan.chip.output and plan.chip.stored
        if plan.bands is not None and plan.bands.ring is not None:
            seen["wraps"] += bool(plan.bands.ring.behind)
            seen["padded late"] += plan.bands.ring.padded >= 0
            seen["deep"] += plan.bands.depth > 1


@pytest.mark.parametrize("batch", range(3))
def test_networks_equal_the_reference(batch, monkeypatch):
    monkeypatch.setattr(bands, "_LEAST", 0)
    seen = run_batch(batch)
    assert all(seen.values()), f"everything must occur in groups: {seen}"


def test_turns_over_rows_that_lie_backwards_begin_within_the_buffer_s_range(monkeypatch):
    monkeypatch.setattr(bands, "_LEAST", 0)
    run_seeds(range(1096, 1097))


@pytest.mark.slow
def test_many_networks_equal_the_reference(monkeypatch):
    monkeypatch.setattr(bands, "_LEAST", 0)
    for batch in range(3, 30):
        run_batch(batch)
