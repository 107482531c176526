"""Groups computed band by band give what their layers do, without a race; what lies between never leaves the chip."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_chains import random_chain, random_inputs
from tests.support.random_layers import random_machine
from tests.support.stacks import Stack
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan import band_plans, row_ring
from tilewright.compiler.plan.planner import DoesNotFitError, LayerPlan
from tilewright.compiler.plan.tiles import block_rows
from tilewright.compiler.schedule import bands
from tilewright.compiler.schedule.races import RaceError, check
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report

SMALL = replace(preset("base"), activation_bytes=32768)
WHOLE = Options(bands=False)


def block() -> Network:
    """Return 1x1, 3x3 and 1x1 with a residual, of 32x32 pixels: what lies between does not fit ``SMALL``."""
    stack = Stack((8, 32, 32))
    stack.conv(8, 1)
    source = stack.last
    stack.conv(32, 1)
    stack.conv(32, 3, pad=1)
    stack.conv(8, 1, residual=source)
    return stack.network("block")


def commands_of(compiled: Compiled) -> list[EncodedCommand]:
    return [command for _, command in compiled.program.commands()]


def group_of(compiled: Compiled) -> list[LayerPlan]:
    return [plan for plan in compiled.plans if isinstance(plan, LayerPlan) and plan.bands is not None]


def count(plans: list[LayerPlan], seen: dict[str, int]) -> None:
    """Add to ``seen`` what occurs in a group."""
    for plan in plans:
        seen["stored too"] += plan.chip.output and plan.chip.stored
        ring = plan.bands.ring
        if ring is None:
            continue
        seen[plan.nest.algorithm] += 1
        seen["wraps"] += bool(ring.behind)
        seen["padded late"] += ring.padded >= 0
        seen["deep"] += plan.bands.place > 1
        seen["residual"] += plan.layer.residual is not None
        seen["pooled"] += plan.layer.pool is not None
        seen["several blocks"] += len(plan.blocks) > 1


def test_random_networks_equal_the_reference(monkeypatch):
    """Groups are taken here at any price, so that they occur in small networks."""
    monkeypatch.setattr(bands, "_PRICES", (1,))
    monkeypatch.setattr(bands, "_TOO_MUCH", 1 / 20)
    monkeypatch.setattr(bands, "_LEAST", 0)
    seen = dict.fromkeys(("conv23", "conv", "wraps", "padded late", "deep", "residual", "pooled", "several blocks",
                          "stored too"), 0)
    for plans in equal_to_the_reference(range(1000, 1100), 30):
        count(plans, seen)
    assert all(seen.values()), f"everything about bands must occur: {seen}"


def test_random_networks_with_closed_rings_equal_the_reference(monkeypatch):
    """Rings are closed here wherever that is possible, whether there is room for another or not."""
    monkeypatch.setattr(bands, "_PRICES", (1,))
    monkeypatch.setattr(bands, "_TOO_MUCH", 1 / 20)
    monkeypatch.setattr(bands, "_LEAST", 0)
    monkeypatch.setattr(band_plans, "ring_of", lambda rows, unit: (
        row_ring.closed_ring_of(rows, unit) if unit > 1 else None) or row_ring.ring_of(rows, unit))
    seen = dict.fromkeys(("closed", "round", "one", "more", "padded late"), 0)
    for plans in equal_to_the_reference(range(2000, 2060), 30):
        for plan in plans:
            if (ring := plan.bands.ring) is not None and ring.closed:
                seen["closed"] += 1
                seen["round"] += any(ring.goes_round(block_rows(tile)) for tile in plan.tiles)
                seen["one" if ring.units == 1 else "more"] += 1
                seen["padded late"] += ring.padded >= 0
    assert all(seen.values()), f"everything about closed rings must occur: {seen}"


def equal_to_the_reference(seeds: range, longest: int) -> Iterator[list[LayerPlan]]:
    """Yield the layers in groups of random networks that have some, and compute what the reference does."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        network, machine = random_chain(rng, longest=longest), random_machine(rng, any_array=True)
        inputs = random_inputs(rng, network)
        try:
            compiled = compile_layers(network, machine)
        except DoesNotFitError:
            continue
        if not (plans := group_of(compiled)):
            continue
        check(commands_of(compiled), machine)
        tensors, expected = execute(compiled, inputs), run_network(network, inputs)
        for info in network.outputs:
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"seed {seed}, {info.name}")
        yield plans


def test_what_lies_between_never_leaves_the_chip():
    network = block()
    banded, apart = compile_layers(network, SMALL), compile_layers(network, SMALL, options=WHOLE)
    group = group_of(banded)
    assert len(group) >= 3
    assert not group_of(apart)
    between = {plan.layer.output for plan in group[:-1] if not plan.chip.stored}
    assert between
    assert not between & banded.memory.tensors.keys()
    check(commands_of(banded), SMALL)
    inputs = random_inputs(np.random.default_rng(0), network)
    expected = run_network(network, inputs)["conv3"]
    assert np.array_equal(execute(banded, inputs)["conv3"], expected)
    reports = [predict_report(job_of_compiled(each, "block")) for each in (banded, apart)]
    moved = [sum(layer.bytes_read + layer.bytes_written for layer in report.layers) for report in reports]
    assert moved[0] < 0.6 * moved[1]
    assert reports[0].cycles < reports[1].cycles


def test_layers_of_a_group_share_what_was_counted():
    compiled = compile_layers(block(), SMALL)
    job = job_of_compiled(compiled, "block")
    report = predict_report(job)
    names = [plan.layer.name for plan in group_of(compiled)]
    assert [layer.name for layer in job.layers if layer.group] == names
    assert {layer.group for layer in job.layers if layer.group} == {names[0]}
    rates = [layer.cycles / entry.predicted_cycles
             for layer, entry in zip(report.layers, job.layers, strict=True) if entry.group]
    assert max(rates) == pytest.approx(min(rates), rel=0.01)
    assert report.cycles >= sum(layer.cycles for layer in report.layers)
    for layer in report.layers:
        assert sum(layer.stalls.values()) + layer.counts["mac_issue"] == layer.cycles


def test_input_and_output_of_a_group_are_there_at_once(monkeypatch):
    """The first layer still reads its input when the last one writes; the group is taken at any price."""
    monkeypatch.setattr(bands, "_PRICES", (1,))
    monkeypatch.setattr(bands, "_TOO_MUCH", 1 / 20)
    stack = Stack((8, 32, 32))
    for outputs, kernel in ((8, 1), (8, 1), (8, 1), (32, 1), (32, 3), (8, 1)):
        stack.conv(outputs, kernel, pad=kernel // 2)
    stack.average()
    compiled = compile_layers(stack.network("in the middle"), SMALL)
    group, places = group_of(compiled), compiled.memory.tensors
    first = next(plan.layer.input for plan in reversed(group) if plan.bands.place == 0)
    last = group[-1].layer.output
    assert first != "input"
    size = {name: int(np.prod(compiled.network.tensors[name].shape)) for name in (first, last)}
    assert places[first] + size[first] <= places[last] or places[last] + size[last] <= places[first]


@pytest.mark.parametrize("flag", ["wait_wgt_ready", "wait_act_ready", "wait_act_free"])
def test_no_wait_of_a_group_can_be_left_out(flag):
    """The proof of order finds each one that is missing."""
    commands, found = commands_of(compile_layers(block(), SMALL)), 0
    for index, command in enumerate(commands):
        if flag not in command.flags or index < len(commands) // 3:
            continue
        bare = replace(command, funct7=command.funct7 & ~command.variant.flag_bits(flag))
        with pytest.raises(RaceError):
            check([*commands[:index], bare, *commands[index + 1:]], SMALL)
        found += 1
        if found == 3:
            break
    assert found


def test_no_group_is_taken_whose_layers_apart_would_load_early():
    """The second layer waits for the bus, but much of its input comes while the first one still computes."""
    stack = Stack((3, 224, 224))
    stack.conv(64, 3, stride=2, pool=(3, 2, 0))
    squeeze = stack.conv(16, 1)
    stack.conv(64, 3, pad=1)
    stack.conv(64, 1, source=squeeze)
    network = replace(stack.network("fire"), outputs=(stack.tensors["conv2"], stack.tensors["conv3"]))
    cycles = [predict_report(job_of_compiled(compile_layers(network, preset("base"), options=options), "fire")).cycles
              for options in (Options(), WHOLE)]
    assert cycles[0] <= cycles[1]


def test_neither_a_batch_nor_what_stores_every_tensor_has_bands():
    assert not group_of(compile_layers(block(), SMALL, options=Options(batch=2)))
    assert not group_of(compile_layers(block(), SMALL, keep_tensors=True))


def test_the_plan_says_that_a_layer_is_one_of_a_group():
    plan = group_of(compile_layers(block(), SMALL))[1]
    assert re.search(r"in \d+ bands of rows, as layer 2 of \d", plan.summary())
