"""Whole networks: every tensor equals the reference on every machine, and artefacts hold what was compiled."""

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.stacks import resnet, vgg
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import UnsupportedModelError
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.memory_map import ALIGNMENT
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import PRESETS, Machine
from tilewright.models import builtin

TINY = Machine(name="tiny", lanes=2, tiles=4, post_lanes=2, bus_bytes=4, activation_bytes=8192, weight_bytes=8192,
               result_bytes=2048, parameter_channels=32)
MACHINES = [*PRESETS.values(), TINY]

SMALL_VGG = vgg(16, ((8, 2), (16, 2), (24, 1)), (20, 10))
SMALL_RESNET = resnet(16, (8, 16, 24), (2, 1, 1))
BOTTLENECK = resnet(64, (4, 8), (1, 1), bottleneck=True)


def run(network: Network, machine: Machine, *, keep_tensors: bool) -> tuple[dict, dict]:
    rng = np.random.default_rng(7)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=keep_tensors)
    check((command for _, command in compiled.program.commands()), machine)
    return execute(compiled, inputs), run_network(network, inputs)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("name", ["lenet5", "lenet5_accel", "lenet5_qoperator"])
def test_every_tensor_of_lenet_equals_the_reference(name, machine):
    if machine is TINY:
        machine = PRESETS["nano"]
    tensors, expected = run(compile_network(builtin(name)), machine, keep_tensors=True)
    for tensor, values in expected.items():
        np.testing.assert_array_equal(tensors[tensor], values, err_msg=tensor)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("network", [SMALL_VGG, SMALL_RESNET, BOTTLENECK], ids=lambda network: network.name)
def test_stacks_equal_the_reference(network, machine):
    tensors, expected = run(network, machine, keep_tensors=True)
    for tensor, values in expected.items():
        np.testing.assert_array_equal(tensors[tensor], values, err_msg=tensor)


@pytest.mark.parametrize("network", [SMALL_VGG, SMALL_RESNET], ids=lambda network: network.name)
def test_memory_that_is_used_again_changes_no_output(network):
    tensors, expected = run(network, TINY, keep_tensors=False)
    for info in network.outputs:
        np.testing.assert_array_equal(tensors[info.name], expected[info.name])


def test_tensors_share_memory_unless_they_are_kept():
    kept = compile_layers(SMALL_VGG, TINY, keep_tensors=True).memory
    shared = compile_layers(SMALL_VGG, TINY).memory
    assert shared.peak_bytes < kept.peak_bytes
    assert all(address % ALIGNMENT == 0 for address in (*kept.tensors.values(), *kept.records))


def test_windows_give_no_more_than_needed():
    windows = {window.name: window for window in compile_layers(SMALL_RESNET, TINY).windows}
    assert {name: (window.readable, window.writable) for name, window in windows.items()} == {
        "weights": (True, False), "inputs": (True, False), "activations": (True, True), "outputs": (False, True)}


def test_a_network_without_layers_is_refused():
    empty = Network(name="empty", layers=(), inputs=(), outputs=(), tensors={})
    with pytest.raises(UnsupportedModelError, match=r"Network.*'empty'"):
        compile_layers(empty, TINY)
