"""Layers that hand over blocks of channels give what they do apart, without a race, and load no weight twice."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_chains import random_inputs, random_separable
from tests.support.random_layers import random_machine
from tests.support.separable import inverted_bottlenecks
from tests.support.stacks import Stack
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
    return [(first, second) for first, second in zip(compiled.plans, compiled.plans[1:], strict=False)
            if isinstance(second, LayerPlan) and second.channels_at_once]


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take blocks of channels at any price, and no bands of rows, so that they occur in small networks."""
    monkeypatch.setattr(bands, "_PRICES", (1,))
    monkeypatch.setattr(bands, "_TOO_MUCH", 1 / 20)
    monkeypatch.setattr(bands, "_LEAST", 0)
    monkeypatch.setattr(bands, "_groups", lambda *_: ())


def test_random_networks_equal_the_reference(nothing_else):
    seen = dict.fromkeys(("conv23", "conv", "first conv23", "strides", "residual", "stored too", "third on chip",
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
            seen["residual"] += second.layer.residual is not None
            seen["stored too"] += first.chip.stored
            seen["third on chip"] += second.chip.output
            seen["table"] += first.layer.table is not None or second.layer.table is not None
            seen["last block smaller"] += second.blocks[-1].channels < second.blocks[0].channels
            seen["many blocks"] += len(second.blocks) > 3
            seen["short of room"] += machine.activation_bytes < 20000
    assert all(seen.values()), f"everything about blocks of channels must occur: {seen}"


def test_what_lies_between_never_leaves_the_chip_and_weights_come_once():
    network, machine = inverted_bottlenecks(2), preset("base")
    blocks, apart = compile_layers(network, machine), compile_layers(network, machine, options=Options(bands=False))
    assert [first.layer.name for first, _ in pairs_of(blocks)] == ["conv1", "conv4"]
    assert not pairs_of(apart)
    assert not {"conv1", "conv2", "conv4", "conv5"} & blocks.memory.tensors.keys()
    check(commands_of(blocks), machine)
    inputs = random_inputs(np.random.default_rng(0), network)
    expected = run_network(network, inputs)["conv6"]
    assert len(np.unique(expected)) > 50
    np.testing.assert_array_equal(execute(blocks, inputs)["conv6"], expected)
    reports = [predict_report(job_of_compiled(each, "blocks")) for each in (blocks, apart)]
    moved = [sum(layer.bytes_read + layer.bytes_written for layer in report.layers) for report in reports]
    assert moved[0] < 0.5 * moved[1]
    assert reports[0].cycles < 0.95 * reports[1].cycles
    loads = [command.operands["address"] for command in commands_of(blocks)
             if command.instruction.mnemonic == "ldw" and command.variant.name == "main"]
    assert len(loads) == len(set(loads))


def test_two_layers_that_take_turns_share_what_was_counted():
    compiled = compile_layers(inverted_bottlenecks(1), preset("base"))
    job = job_of_compiled(compiled, "blocks")
    assert [(layer.name, layer.group) for layer in job.layers if layer.group] == [("conv1", "conv1"),
                                                                                 ("conv2", "conv1")]
    cycles = {layer.name: layer.cycles for layer in predict_report(job).layers}
    assert cycles["conv2"] > 0.3 * cycles["conv1"]


@pytest.mark.parametrize("flag", ["wait_wgt_ready", "wait_act_ready"])
def test_no_wait_of_a_pair_can_be_left_out(flag):
    """The proof of order finds each one that is missing."""
    machine = preset("base")
    commands = commands_of(compile_layers(inverted_bottlenecks(1), machine))
    found = [index for index, command in enumerate(commands) if flag in command.flags][2:5]
    assert found
    for index in found:
        command = commands[index]
        bare = replace(command, funct7=command.funct7 & ~command.variant.flag_bits(flag))
        with pytest.raises(RaceError):
            check([*commands[:index], bare, *commands[index + 1:]], machine)


def test_a_layer_whose_stride_leaves_rows_unread_takes_no_blocks(nothing_else):
    """Rows that nobody reads have no place."""
    stack = Stack((16, 9, 9))
    stack.conv(64, 1)
    stack.depthwise(4, stride=4, pad=0)
    stack.conv(16, 1)
    assert not pairs_of(compile_layers(stack.network("unread"), preset("base")))


def test_what_stores_every_tensor_has_no_blocks_of_channels():
    assert not pairs_of(compile_layers(inverted_bottlenecks(1), preset("base"), keep_tensors=True))


def test_the_plan_says_how_many_channels_come_at_a_time():
    (_, second), = pairs_of(compile_layers(inverted_bottlenecks(1), preset("base")))
    assert f"{second.channels_at_once} channels after the other" in second.summary()
