# amaranth: UnusedElaboratable=no
"""Rates and latencies of the load unit, behind a memory of 20 cycles; tests/cocotb/test_load_store.py has the
volume."""

import random
from dataclasses import replace

import pytest

from tests.support.load_store import random_load_commands
from tests.support.load_store_dut import carry_out
from tilewright.isa.assembler import command
from tilewright.isa.machine import PRESETS, Machine

BASE = PRESETS["base"]
WIDE = {f"bus {bus}": Machine(name=f"bus_{bus}", lanes=4, clusters=4, tiles=2, post_lanes=2, bus_bytes=bus)
        for bus in (32, 64)}
MACHINES = {**PRESETS, **WIDE}


def rows(variant, *, count=12, chunk_bytes=64, address=0, chunks=1, channels=1, left=0, right=0, row_step=4096):
    """Return commands that load ``count`` rows."""
    place = {} if variant.startswith("fill") else {"address": address}
    return [
        command("lda", "set_row", chunk_bytes=chunk_bytes, chunks=chunks, memory_chunk_step=chunk_bytes + 32),
        command("lda", "set_step", memory_row_step=1024, row_step=row_step),
        command("lda", "set_layout", chunk_step=chunk_bytes, channels=channels, left=left, right=right, value=-3),
        command("lda", variant, ["signal_act_ready"], base=0, rows=count, **place),
    ]


def span(cycles):
    return cycles[-1] - cycles[0] + 1


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_random_commands(machine, stall):
    carry_out(machine, loads=random_load_commands(random.Random(3), 3, machine.bus_bytes), stall=stall)


@pytest.mark.parametrize(("name", "stall"), [("nano", 0.0), ("base", 0.4), ("large", 0.0)])
def test_random_commands_with_coded_weights_between(name, stall):
    machine = replace(PRESETS[name], coded_weights=True)
    carry_out(machine, loads=random_load_commands(random.Random(4), 1, machine.bus_bytes, coded=True), stall=stall)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("words", [2, 3, 16])
def test_weights_come_without_a_gap_between_commands(machine, words):
    size = words * machine.bus_bytes
    loads = [command("ldw", "main", address=i * size, base=i * words, words=words) for i in range(12)]
    load, _ = carry_out(machine, loads=loads)
    assert span(load.beats) == len(load.beats) == 12 * words
    assert load.writes == [cycle + 1 for cycle in load.beats]


def test_commands_of_one_word_come_every_other_cycle():
    loads = [command("ldw", "main", address=8 * i, base=i, words=1) for i in range(10)]
    load, _ = carry_out(BASE, loads=loads)
    assert span(load.beats) == 2 * 10 - 1


def test_first_request_leaves_three_cycles_after_the_command():
    load, _ = carry_out(BASE, loads=[command("ldw", "main", address=0, base=0, words=1)])
    assert load.first_request - 1 == 3  # offered for the edge at the end of cycle 1


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("address", [0, 3])
@pytest.mark.parametrize("chunks", [1, 3])
def test_rows_of_64_bytes_saturate_the_bus(machine, address, chunks):
    load, _ = carry_out(machine, loads=rows("linear", address=address, chunks=chunks))
    words = 64 // machine.bus_bytes + (address != 0)
    assert len(load.beats) == 12 * chunks * words
    assert span(load.beats) == len(load.beats)


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize(("channels", "left", "right"), [(3, 1, 1), (16, 1, 2), (5, 0, 3)])
def test_linear_padding_takes_a_cycle_per_bus_word(machine, channels, left, right):
    load, _ = carry_out(machine, loads=rows("linear", channels=channels, left=left, right=right))
    before, data, behind = (-(-size // machine.bus_bytes) for size in (left * channels, 64, right * channels))
    writes = load.writes[before:]  # the first padding is there before memory has answered
    assert span(writes) == len(writes) == 12 * (before + data + behind) - before


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_fill_writes_a_bus_word_per_cycle(machine):
    load, _ = carry_out(machine, loads=rows("fill_linear", channels=16, left=1, right=1))
    assert not load.beats
    assert span(load.writes) == len(load.writes) == 12 * 96 // machine.bus_bytes


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("channels", [1, 3, 16, 20])
def test_blocked_rows_take_a_cycle_per_bus_word_and_pixel(machine, channels):
    pixels = max(4, 64 // channels)
    bus = machine.bus_bytes
    parts = len({(k // bus, k // channels) for k in range(channels * pixels)})
    padding = -(-channels // bus)
    shape = {"channels": channels, "chunk_bytes": channels * pixels, "left": 1}
    load, _ = carry_out(machine, loads=rows("blocked", **shape))
    writes = load.writes[padding:]  # the first padding is there before memory has answered
    assert span(writes) == len(writes) == 12 * (parts + padding) - padding
    fill, _ = carry_out(machine, loads=rows("fill_blocked", **shape))
    assert span(fill.writes) == len(fill.writes) == 12 * (parts + padding)


def test_blocked_rows_of_whole_words_saturate_the_bus():
    load, _ = carry_out(BASE, loads=rows("blocked", channels=16, chunk_bytes=64))
    assert span(load.beats) == len(load.beats) == 12 * 8
