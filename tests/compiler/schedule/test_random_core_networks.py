"""Random networks of convolutions and int8 operators of the host core: no race, whatever is alive at a time."""

import numpy as np
import pytest

from tests.support.core_networks import CoreStack, inputs_of
from tests.support.execute import execute
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import PRESETS, Machine
from tilewright.isa.program import Call

SMALL = Machine(name="small", lanes=4, activation_bytes=4096, weight_bytes=4096, result_bytes=1024,
                parameter_channels=16)


def random_network(seed: int) -> Network:
    """Return up to twelve layers, each reading any earlier tensors; some of these are handed out."""
    rng = np.random.default_rng(seed)
    stack = CoreStack((4, 6, 7), seed=seed)
    names = ["input"]
    for _ in range(rng.integers(2, 13)):
        source, other = (names[max(0, len(names) - int(rng.integers(1, 4)))] for _ in range(2))
        if rng.random() < 0.5:
            kernel = int(rng.choice([1, 3]))
            names.append(stack.conv(4, kernel, pad=kernel // 2, source=source,
                                    residual=other if rng.random() < 0.5 else None))
        elif rng.random() < 0.5:
            names.append(stack.core(str(rng.choice(["Neg", "Abs"])), (source,), (1, 4, 6, 7), "int8"))
        else:
            names.append(stack.core(str(rng.choice(["Max", "Min"])), (source, other), (1, 4, 6, 7), "int8"))
    stack.handed_out = [names[-1], *(name for name in names[1:-1] if rng.random() < 0.2)]
    return stack.network(f"random {seed}")


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_have_no_race_and_are_computed_as_the_reference_does(seed):
    network = random_network(seed)
    inputs = inputs_of(network, seed)
    expected = run_network(network, inputs)
    for machine in (SMALL, PRESETS["base"]):
        compiled = compile_layers(network, machine)
        check((each for _, each in compiled.program.actions()), machine)
        found = execute(compiled, inputs)
        for info in network.outputs:
            np.testing.assert_array_equal(found[info.name], expected[info.name], strict=True)


def test_random_networks_have_both_kinds_of_layers_and_calls_without_a_fence():
    calls = fences = 0
    for seed in range(40):
        actions = [each for _, each in compile_layers(random_network(seed), SMALL).program.actions()]
        calls += sum(isinstance(each, Call) for each in actions)
        fences += sum(not isinstance(each, Call) and each.variant.name == "fence" for each in actions[:-1])
    assert 100 < calls
    assert 30 < fences < calls
