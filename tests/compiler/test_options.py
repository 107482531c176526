"""Options change how a network is computed, and never a value."""

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_layers import network_of, random_layer
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import preset
from tilewright.models import builtin

LIMITED = [Options(fuse_pool=False), Options(winograd="never"), Options(reuse=False),
           Options(fuse_pool=False, winograd="never", reuse=False)]


def compiled_with(options: Options, network: Network, machine: str):
    compiled = compile_layers(network, preset(machine), keep_tensors=True, options=options)
    check((command for _, command in compiled.program.commands()), preset(machine))
    return compiled


def mnemonics(compiled) -> set[str]:
    return {f"{command.instruction.mnemonic}.{command.variant.name}" for _, command in compiled.program.commands()}


@pytest.mark.parametrize("options", LIMITED, ids=str)
@pytest.mark.parametrize("machine", ["nano", "base"])
def test_every_tensor_is_the_same_under_any_option(options, machine):
    network = compile_network(builtin("lenet5_accel"), options)
    best = compile_network(builtin("lenet5_accel"))
    rng = np.random.default_rng(11)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    tensors = execute(compiled_with(options, network, machine), inputs)
    expected = run_network(network, inputs)
    for name, values in expected.items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)
    for name, values in run_network(best, inputs).items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)


def test_each_option_does_what_it_says():
    network = compile_network(builtin("lenet5_accel"))
    used = {str(options): mnemonics(compiled_with(options, network, "base")) for options in (BEST, *LIMITED)}
    assert "conv23.run" in used[str(BEST)]
    assert not any(name.startswith("conv23") for name in used["no Winograd"])
    assert "conv23.run_without_reuse" in used["no column reuse"]
    assert "conv23.run" not in used["no column reuse"]


def test_a_pooling_that_is_not_fused_is_a_layer_of_its_own():
    fused = compile_network(builtin("lenet5_accel"))
    apart = compile_network(builtin("lenet5_accel"), Options(fuse_pool=False))
    pools = [layer for layer in fused.layers if layer.pool]
    assert pools
    assert len(apart.layers) == len(fused.layers) + len(pools)
    assert [layer.kind for layer in apart.layers if layer.pool] == ["pass"] * len(pools)
    assert [layer.output for layer in apart.layers if layer.pool] == [layer.output for layer in pools]


def test_random_layers_are_exact_without_winograd_and_without_reuse():
    for seed in range(40):
        rng = np.random.default_rng(5000 + seed)
        network = network_of(random_layer(rng, longest=14, widest=30))
        inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
        expected = run_network(network, inputs)["y"]
        for options in (Options(winograd="never"), Options(reuse=False)):
            tensors = execute(compiled_with(options, network, "nano"), inputs)
            np.testing.assert_array_equal(tensors["y"], expected, err_msg=f"seed {seed}, {options}")


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match=r"Option winograd.*not 'always'"):
        Options(winograd="always")
