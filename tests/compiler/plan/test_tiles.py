"""Inputs that stay in the activation buffer: each row is loaded once, and a strip only when a tile needs it."""

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import WINOGRAD_MACHINES
from tests.support.random_layers import Shape, build_layer, network_of, random_machine
from tilewright.compiler import compile as backend
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.reference import run_layer
from tilewright.compiler.plan.algorithms import Algorithm, loop_nests
from tilewright.compiler.plan.planner import candidates
from tilewright.compiler.plan.problem import Problem
from tilewright.compiler.schedule.races import check


def staying_plans(layer, machine):
    """Return the plans whose input stays."""
    return [plan for how in loop_nests(layer, Algorithm.WINOGRAD, machine)
            for plan in candidates(Problem(layer, LayerLayouts.gap_free(layer), how, machine)) if plan.stays]


@pytest.mark.parametrize("seed", range(40))
def test_layers_of_staying_inputs_equal_the_reference(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 1, 2, 4]))
    channels, outputs = (groups * int(rng.integers(1, 9)) for _ in range(2))
    shapes = [Shape(int(rng.integers(5, 30)), 3, 1, 1, *map(int, rng.integers(0, 3, 2))) for _ in range(2)]
    layer, machine = build_layer(rng, "conv", channels, outputs, groups, shapes), random_machine(rng)
    plans = staying_plans(layer, machine)
    if not plans:
        pytest.skip("the input does not fit")
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network_of(layer).inputs}
    expected = run_layer(layer, inputs["x"], inputs.get("residual"))
    for index in sorted({0, len(plans) // 2, len(plans) - 1}):
        monkeypatch.setattr(backend, "plan_once", lambda *_, chosen=plans[index]: chosen)
        compiled = compile_layers(network_of(layer), machine)
        commands = [command for _, command in compiled.program.commands()]
        check(commands, machine)
        np.testing.assert_array_equal(execute(compiled, inputs)["y"], expected)
        loaded = [each.operands["rows"] for each in commands if str(each).startswith("lda.blocked")]
        assert sum(loaded) <= layer.in_shape[1]


def test_a_depthwise_layer_loads_its_input_once():
    rng = np.random.default_rng(0)
    layer = build_layer(rng, "conv", 96, 96, 96, [Shape(28, 3, 1, 1, 1, 1)] * 2)
    network = network_of(layer)
    (plan,) = compile_layers(network, WINOGRAD_MACHINES["base"]).plans
    assert plan.stays
    assert plan.cost.bytes < 2.2 * 28 * 28 * 96
