"""Chained layers compute what others do, without a race; what stays on chip has no place in memory and is not moved.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import WINOGRAD_MACHINES
from tests.support.random_chains import random_chain, random_inputs
from tests.support.random_layers import random_machine
from tests.support.stacks import Stack, large_network
from tilewright.compiler.compile import compile_file, compile_layers
from tilewright.compiler.explain import explain
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.planner import DoesNotFitError
from tilewright.compiler.schedule.accesses import Access
from tilewright.compiler.schedule.races import RaceError, check
from tilewright.compiler.schedule.rings import Region, Ring
from tilewright.compiler.schedule.step_commands import Draft
from tilewright.compiler.schedule.synchronisation import ScheduleError, synchronise
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import preset
from tilewright.models import builtin
from tilewright.sim.fast_engine import run_fast

BASE = WINOGRAD_MACHINES["base"]
APART = Options(chain=False)
BATCH = 40


def small() -> Stack:
    """Return three padded layers of which each needs the whole result of the one before."""
    stack = Stack((64, 4, 4))
    for outputs, kernel in ((64, 3), (64, 3), (32, 3)):
        stack.conv(outputs, kernel, pad=kernel // 2)
    return stack


def commands_of(compiled) -> list[EncodedCommand]:
    return [command for _, command in compiled.program.commands()]


def run_batch(batch: int) -> dict[str, int]:
    """Compile and execute the networks of ``batch``; return how many layers were chained in which way."""
    seen = dict.fromkeys(("conv23", "conv", "pool", "several tiles", "tiles behind", "several blocks", "rotated",
                          "stored too", "inside a chain", "padded", "residual", "pooled"), 0)
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = np.random.default_rng(seed)
        network, machine, keep = random_chain(rng), random_machine(rng, any_array=True), rng.random() < 0.3
        inputs = random_inputs(rng, network)
        try:
            compiled = compile_layers(network, machine, keep_tensors=keep, options=Options(bands=False))
        except DoesNotFitError:
            continue
        check(commands_of(compiled), machine)
        tensors, expected = execute(compiled, inputs), run_network(network, inputs)
        for info in network.tensors.values() if keep else network.outputs:
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"seed {seed}, {info.name}")
        found = [index + feed.ahead for index, plan in enumerate(compiled.plans) for feed in plan.chip.feeds]
        assert sorted(found) == [index for index, plan in enumerate(compiled.plans) if plan.chip.input]
        for index, first in enumerate(compiled.plans):
            for second in (compiled.plans[index + feed.ahead] for feed in first.chip.feeds):
                assert keep <= first.chip.stored == (first.layer.output in compiled.memory.tensors)
                seen[second.nest.algorithm] += 1
                seen["several tiles"] += len(first.tiles) > 1
                seen["tiles behind"] += len(second.tiles) > 1
                seen["several blocks"] += len(first.blocks) > 1
                seen["rotated"] += second.nest.algorithm == "conv23" and any(
                    block.first_channel % 16 for block in first.blocks)
                seen["stored too"] += first.chip.stored and not keep
                seen["inside a chain"] += first.chip.input
                seen["padded"] += any(second.layer.pads)
                seen["residual"] += first.layer.residual is not None
                seen["pooled"] += first.layer.pool is not None
    return seen


@pytest.mark.parametrize("batch", range(3))
def test_networks_equal_the_reference(batch):
    seen = run_batch(batch)
    assert all(seen.values()), f"every way to chain a layer must occur: {seen}"


@pytest.mark.slow
def test_many_networks_equal_the_reference():
    for batch in range(3, 60):
        run_batch(batch)


def test_what_stays_on_chip_has_no_place_and_moves_nothing():
    network = small().network("small")
    chained, apart = compile_layers(network, BASE), compile_layers(network, BASE, options=APART)
    assert [plan.chip.output for plan in chained.plans] == [True, True, False]
    assert chained.memory.tensors.keys() == {"input", "conv2"}
    assert chained.memory.peak_bytes == 0 < apart.memory.peak_bytes
    assert [str(each).split()[0] for each in commands_of(chained)].count("lda.blocked") == 1
    runs = [run_fast(BASE, each.program, each.images, each.windows, memory_bytes=each.memory_bytes)
            for each in (chained, apart)]
    between = sum(np.prod(network.tensors[name].shape) for name in ("conv0", "conv1"))
    assert runs[1].words_written - runs[0].words_written == between // BASE.bus_bytes
    assert runs[1].words_read - runs[0].words_read >= between // BASE.bus_bytes
    assert runs[0].cycles < runs[1].cycles


def test_kept_tensors_are_stored_and_read_on_chip_all_the_same():
    network = small().network("small")
    compiled = compile_layers(network, BASE, keep_tensors=True)
    assert [(plan.chip.output, plan.chip.stored) for plan in compiled.plans] == [(True, True), (True, True),
                                                                               (False, True)]
    inputs = random_inputs(np.random.default_rng(0), network)
    tensors, expected = execute(compiled, inputs), run_network(network, inputs)
    assert tensors.keys() == expected.keys()
    assert all(np.array_equal(tensors[name], expected[name]) for name in expected)
    assert [str(each).split()[0] for each in commands_of(compiled)].count("lda.blocked") == 1


def test_a_second_reader_finds_the_tensor_on_chip():
    stack = small()
    stack.conv(24, 1, source="conv1")
    compiled = compile_layers(stack.network("branch"), BASE, options=Options(bands=False))
    # Layer 3 comes behind layer 2 and reads what layer 1 computed.
    assert [(plan.chip.input, plan.chip.output, plan.chip.stored) for plan in compiled.plans] == [
        (False, True, False), (True, True, False), (True, False, True), (True, False, True)]
    check(commands_of(compiled), BASE)


def test_outputs_of_the_model_are_stored():
    network = small().network("small")
    network = replace(network, outputs=(*network.outputs, network.tensors["conv0"]))
    compiled = compile_layers(network, BASE)
    assert [plan.chip.stored for plan in compiled.plans] == [True, False, True]


def test_layers_that_find_no_room_read_from_memory():
    stack = Stack((8, 16, 16))
    for _ in range(4):
        stack.conv(8, 1)
    network = stack.network("four")
    tight = replace(BASE, activation_bytes=8192)
    whole = Options(bands=False)
    # 2,048 bytes each: a head and three inputs behind it, then no more.
    assert sum(plan.chip.input for plan in compile_layers(network, tight, options=whole).plans) == 3
    tight = replace(tight, activation_bytes=4096)
    assert sum(plan.chip.input for plan in compile_layers(network, tight, options=whole).plans) < 3


@pytest.mark.parametrize("network", [small().network("small"), random_chain(np.random.default_rng(15))],
                         ids=["small", "random"])
def test_every_flag_of_a_chain_is_needed(network):
    compiled = compile_layers(network, BASE)
    commands = commands_of(compiled)
    flags = [(index, flag) for index, each in enumerate(commands) for flag in each.flags]
    handed = [index for index, flag in flags if (commands[index].variant.name, flag) in (
        ("linear", "signal_act_ready"), ("blocked", "signal_act_ready"))
        and commands[index].instruction.mnemonic == "sta"]
    assert handed
    for index, flag in flags:
        changed = replace(commands[index], funct7=commands[index].funct7 & ~commands[index].variant.flag_bits(flag))
        with pytest.raises(RaceError):
            check([*commands[:index], changed, *commands[index + 1:]], BASE)


def test_padding_of_a_chain_is_spread_over_the_loads_of_its_first_layer():
    """While padding is written nothing is loaded, and no results are stored beside it."""
    compiled = compile_file(builtin("mlperf-vww"), preset("base"))
    names = [str(each).split()[0] for each in commands_of(compiled)]
    loads = "".join("f" if "fill" in name else "l" for name in names if name in (
        "lda.fill_linear", "lda.fill_blocked", "lda.linear", "lda.blocked"))
    together = [len(each) for each in loads.split("l") if each]
    assert sum(together) > 20
    assert max(together) <= 6      # those of a layer, and of one with little


def test_padding_written_late_is_found():
    """Padding that comes behind the first input may overwrite results beside it."""
    commands = commands_of(compile_layers(small().network("small"), BASE))
    names = [str(each).split()[0] for each in commands]
    fill, run = names.index("lda.fill_blocked"), names.index("conv23.run")
    settings = [index for index in range(fill) if names[index].startswith("lda.set")][:3]
    late = [commands[index] for index in (*settings, fill)]
    rest = [each for index, each in enumerate(commands) if index != fill]
    with pytest.raises(RaceError, match=r"sta\.blocked .*bytes of activations"):
        check([*rest[:run], *late, *rest[run:]], BASE)


def test_signals_of_two_units_in_any_order_are_found():
    """A load that nothing holds back may signal before the store does whose signal is to be taken first."""
    commands = commands_of(compile_layers(small().network("small"), BASE))
    load = next(index for index, each in enumerate(commands) if "signal_act_ready" in each.flags)
    stores = [index for index, each in enumerate(commands) if each.instruction.mnemonic == "sta"
              and "signal_act_ready" in each.flags]
    # Behind everything: other bytes, and so no race but that of the two signals.
    extra = replace(commands[load], rs2=commands[load].rs2 | 0x10000)
    assert extra.operands["base"] > max(commands[index].operands["target"] for index in stores) + 8192
    with pytest.raises(RaceError, match=re.escape("signal act_ready in any order")):
        check([*commands[:-1], extra, commands[-1]], BASE)


def test_a_load_that_may_signal_too_early_is_a_mistake_of_the_compiler():
    place, other = Access("activations", 0, 64), Access("activations", 64, 128)
    written = replace(place, write=True)
    drafts = [Draft("conv", "run", {"hold": 0}), Draft("act", "run", {}, (Access("results", 0, 8, write=True),)),
              Draft("sta", "linear", {}, (Access("results", 0, 8), written)),
              Draft("conv", "run", {"hold": 0}, (place, other))]
    drafts.insert(0, Draft("lda", "linear", {}, (replace(other, write=True),)))
    with pytest.raises(ScheduleError, match="act_ready once, not"):
        synchronise(drafts)


@pytest.mark.parametrize("name", ["vgg16-32", "resnet18-32"])
def test_large_networks_move_less_and_take_no_longer(name):
    network = large_network(name)
    runs = [run_fast(BASE, each.program, each.images, each.windows, memory_bytes=each.memory_bytes)
            for each in (compile_layers(network, BASE), compile_layers(network, BASE, options=APART))]
    moved = [run.words_read + run.words_written for run in runs]
    assert moved[0] < moved[1]
    assert runs[0].cycles <= runs[1].cycles


def test_the_plan_says_what_stays():
    network = small().network("small")
    shown = explain(compile_layers(network, BASE))
    assert [(each.input_on_chip, each.output_on_chip) for each in shown.layers] == [(False, True), (True, True),
                                                                                  (True, False)]
    assert shown.layers[1].to_json()["on_chip"] == {"input": True, "output": True}
    kept = explain(compile_layers(network, BASE, keep_tensors=True))
    assert kept.memory_bytes == shown.memory_bytes
    apart = explain(compile_layers(network, BASE, options=APART))
    assert not any(each.input_on_chip or each.output_on_chip for each in apart.layers)
    assert shown.predicted_bytes < apart.predicted_bytes
    assert "its input is on chip; its output stays on chip" in compile_layers(network, BASE).plans[1].summary()


def test_a_ring_goes_around_what_is_taken():
    ring = Ring(16 * 1024, 16)
    ring.make_room(8192, [Region(0, 4096)])
    assert ring.cursor == 8192
    ring.cursor = 0
    kept = ring.allocate(8192)
    places = []
    for _ in range(5):
        region = ring.allocate(3000, around=True)
        assert region is not None
        places.append(region.start)
        ring.release(region)
    assert places == [8192, 11200, 8192, 11200, 8192]
    assert ring.allocate(9000, around=True) is None
    assert kept is not None
    ring.release(kept)
    assert ring.allocate(9000, around=True) is not None


def test_results_are_stored_twice_only_where_the_store_has_time_for_both():
    network = compile_network(builtin("lenet5_accel"))
    kept, alone = ([plan.chip.input for plan in compile_layers(network, BASE, keep_tensors=keep).plans]
                   for keep in (True, False))
    # Behind the first layer, of one channel, the store would be busier than the array.
    assert alone[1]
    assert not kept[1]
    assert all(kept[2:])
