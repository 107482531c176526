"""Layers that hand over blocks of channels give what they do apart, without a race, and load no weight twice."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_chains import random_inputs, random_separable
from tests.support.random_layers import random_machine
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.planner import DoesNotFitError, LayerPlan
from tilewright.compiler.schedule import bands
from tilewright.compiler.schedule.races import RaceError, check
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report


def commands_of(compiled: Compiled) -> list[EncodedCommand]:
    return [command for _, command in compiled.program.commands()]


def pairs_of(compiled: Compiled) -> list[tuple[LayerPlan, LayerPlan]]:
    """Return each layer that hands over blocks of channels, with the one that takes them."""
    return [(first, second) for first, second in zip(compiled.plans, compiled.plans[1:])
            if isinstance(second, LayerPlan) and second.channels_at_once]


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take blocks of channels at any price, and no bands of rows, so that they occur in small networks."""
    monkeypatch.setattr(bands, "_PATIENCE", 1 / 20)
    monkeypatch.setattr(bands, "_LEAST", 0)
    monkeypatch.setattr(bands, "_groups", lambda *_: ())


def test_random_networks_equal_the_reference(nothing_else):
    seen = dict.fromkeys(("conv23", "conv", "first conv23", "strides", "stored too", "third on chip",
                          "table", "last block smaller", "many blocks", "short of room"), 0)
    for seed in range(2000, 2060):
        rng = np.random.default_rng(seed)
        network, machine = random_separable(rng), random_machine(rng, any_array=True)
        inputs = random_inputs(rng, network)
        try:
            compiled = compile_layers(network, machine)
        except DoesNotFitError:
            continue
        pairs = pairs_of(compiled)
        if not pairs:
            continue
        check(commands_of(compiled), machine)
        tensors, expected = execute(compiled, inputs), run_network(network, inputs)
        for info in network.outputs:
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"seed {seed}, {info.name}")
        for first, second in pairs:
            seen[second.nest.algorithm] += 1
            seen["first conv23"] += first.nest.winograd
            seen["strides"] += max(second.layer.strides) > 1
            seen["stored too"] += first.chip.stored
            seen["third on chip"] += second.chip.output
            seen["table"] += first.layer.table is not None or second.layer.table is not None
            seen["last block smaller"] += second.blocks[-1].channels < second.blocks[0].channels
            seen["many blocks"] += len(second.blocks) > 3
            seen["short of room"] += machine.activation_bytes < 20000
    assert all(seen.values()), f"everything about blocks of channels must occur: {seen}"
