"""Schedules are free of races, the proof of it finds races that are put in, and loads run beside the computation."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.support.stacks import Stack, resnet, vgg
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.plan.footprint import REGIONS
from tilewright.compiler.schedule.accesses import Access
from tilewright.compiler.schedule.races import RaceError, check
from tilewright.compiler.schedule.rings import Region, Ring
from tilewright.compiler.schedule.step_commands import Draft
from tilewright.compiler.schedule.synchronisation import ScheduleError, synchronise
from tilewright.isa.assembler import EncodedCommand, command
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.machine import PRESETS, Machine

SMALL = Machine(name="small", lanes=4, activation_bytes=4096, weight_bytes=4096, result_bytes=1024,
                parameter_channels=16)
NETWORKS = {"vgg": vgg(24, ((8, 2), (16, 2), (24, 1)), (20, 10)), "resnet": resnet(24, (8, 16, 24), (2, 1, 1))}


def program(name: str, machine: Machine = SMALL) -> list[EncodedCommand]:
    return [each for _, each in compile_layers(NETWORKS[name], machine).program.commands()]


def without(commands: list[EncodedCommand], index: int, flag: str) -> list[EncodedCommand]:
    """Return the program with one flag of one command cleared."""
    changed = commands[index]
    bit = changed.variant.flag_bits(flag)
    return [*commands[:index], replace(changed, funct7=changed.funct7 & ~bit), *commands[index + 1:]]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_schedule_has_no_race(name):
    commands = program(name)
    assert check(commands, SMALL) == len(commands)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_wait_is_needed_and_every_signal_met(name):
    commands = program(name)
    flags = [(index, flag) for index, each in enumerate(commands) for flag in each.flags]
    used = {flag.partition("_")[2] for _, flag in flags}
    assert used >= {"act_ready", "act_free", "wgt_ready", "out_ready", "out_free", "mem_ready"}
    rng = np.random.default_rng(1)
    for index, flag in (flags[k] for k in rng.choice(len(flags), 60, replace=False)):
        with pytest.raises(RaceError):
            check(without(commands, index, flag), SMALL)


def test_all_semaphores_are_used_between_the_two_networks():
    used = {flag.partition("_")[2] for name in NETWORKS for each in program(name) for flag in each.flags}
    assert used == {semaphore.name for semaphore in SEMAPHORES}


def test_a_moved_load_is_found():
    commands = program("vgg")
    runs = [index for index, each in enumerate(commands) if str(each).startswith("conv23.run")]
    loads = [index for index, each in enumerate(commands) if str(each).startswith("lda.blocked")]
    early, late = loads[5], runs[2]
    assert late < early
    moved = [*commands[:late], commands[early], *commands[late:early], *commands[early + 1:]]
    with pytest.raises(RaceError):
        check(moved, SMALL)


def test_sums_that_nobody_takes_are_found():
    commands = [each for each in program("vgg") if not str(each).startswith("act.run")]
    with pytest.raises(RaceError):
        check(commands, SMALL)


def test_leaving_a_buffer_is_found():
    commands = [command("lda", "set_row", chunk_bytes=64, chunks=1),
                command("lda", "set_step", memory_row_step=64, row_step=64),
                command("lda", "set_layout", chunk_step=64, channels=1),
                command("lda", "linear", address=0x80000000, base=SMALL.activation_bytes - 32, rows=1)]
    sentence = (r"^Command 3, lda\.linear .*, must stay inside the 4096 bytes of activations, not touch 4064\.\.4128$")
    with pytest.raises(RaceError, match=sentence):
        check(commands, SMALL)


def test_a_semaphore_that_overflows_is_found():
    # A hundred tiles are signalled before anyone waits.
    settings = [command("lda", "set_row", chunk_bytes=16, chunks=1),
                command("lda", "set_step", memory_row_step=16, row_step=16),
                command("lda", "set_layout", chunk_step=16, channels=1)]
    loads = [command("lda", "linear", ("signal_act_ready",), address=0x80000000, base=16 * k, rows=1)
             for k in range(100)]
    with pytest.raises(RaceError, match=r"^Semaphore act_ready may pass 63 at command 66, "):
        check(settings + loads, SMALL)


def test_an_order_that_no_semaphore_gives_is_a_mistake_of_the_compiler():
    drafts = [Draft("ldw", "main", {"address": 0x80000000, "words": 1}, (Access("results", 0, 8, write=True),)),
              Draft("act", "run", {}, (Access("results", 0, 8, write=True),))]
    drafts.insert(1, Draft("conv", "run", {"hold": 0}))
    with pytest.raises(ScheduleError, match=re.escape("but no semaphore leads there")):
        synchronise(drafts)


def test_inputs_are_loaded_a_step_ahead():
    """Between two runs of the array lies a load that waits for the tile before last, not for the last."""
    stack = Stack((16, 64, 64))
    stack.conv(16, 3, pad=1)
    base = PRESETS["base"]
    text = [str(each) for _, each in compile_layers(stack.network("conv"), base).program.commands()]
    runs = [index for index, each in enumerate(text) if each.startswith("conv23.run")]
    assert len(runs) >= 3
    for first, second in pairwise(runs):
        assert any(each.startswith("lda.blocked") for each in text[first:second])
    targets = [each.split("base=")[1].split()[0] for each in text if each.startswith("lda.blocked")]
    assert all(one != two for one, two in pairwise(targets))


def test_weights_of_the_next_layer_come_before_its_input():
    compiled = compile_layers(NETWORKS["vgg"], PRESETS["base"])
    first = [str(each) for layer, each in compiled.program.commands() if layer == 0]
    # Everything fits the weight memory, so layer 0 has fetched for others.
    assert sum(each.startswith("ldw.main") for each in first) > 1


def test_a_ring_never_gives_what_is_taken():
    ring = Ring(1000, 16)
    rng = np.random.default_rng(3)
    taken: list[Region] = []
    given = 0
    for _ in range(500):
        region = ring.allocate(int(rng.integers(1, 400)))
        if region is None:
            ring.release(taken.pop(0))
            continue
        given += 1
        assert region.start % 16 == 0
        assert region.stop <= 1000
        assert not any(region.overlaps(other) for other in taken)
        taken.append(region)
    assert given > 100


def test_a_lap_has_few_regions():
    ring = Ring(1 << 17, 16)
    starts = []
    while (region := ring.allocate(8)) is not None:
        starts.append(region.start)
        ring.release(region)
        if len(starts) > 1 and region.start == 0:
            break
    assert REGIONS <= len(starts) <= REGIONS + 2
