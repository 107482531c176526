"""DRAM parts: their numbers at a clock, and that the simulator takes them in the same order."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tilewright.isa.dram.dram import CONTROLLER_NS, Dram, DramNumbers, DramTiming, dram_named
from tilewright.isa.dram.parts import PARTS, part_named
from tilewright.isa.machine import MemoryTiming

HARNESS = Path(__file__).parents[3] / "sim/verilator/harness/dram.h"
RATES = {"sdr-133x16": 133.3e6 * 2, "lpddr-400x16": 400e6 * 2, "ddr3l-1600x16": 1600e6 * 2}
"""Bytes per second on the pins, by the names of the parts: transfers per second of 16 bits."""


def test_the_simulator_takes_the_numbers_in_the_order_of_the_class():
    struct = re.search(r"struct DramNumbers \{\s*uint64_t (.*?);", HARNESS.read_text(), re.DOTALL)
    assert struct is not None
    assert re.split(r",\s*", struct[1]) == [field.name for field in fields(DramNumbers)]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_moves_what_its_name_says(name):
    part = part_named(name)
    assert part.access_bytes / part.access_ns * 1e9 == pytest.approx(RATES[name], rel=1e-3)
    assert part.name == name


@pytest.mark.parametrize("name", PARTS)
def test_a_longest_burst_of_the_widest_bus_lies_in_one_row(name):
    assert part_named(name).row_bytes % (64 * 16) == 0


def test_times_are_picoseconds_and_the_rest_is_counted():
    numbers = Dram(part_named("ddr3l-1600x16"), 80).numbers()
    assert (numbers.period, numbers.access, numbers.rcd, numbers.refi) == (12_500, 5_000, 13_750, 7_800_000)
    assert (numbers.banks, numbers.row_bytes, numbers.access_bytes) == (8, 2048, 16)


@pytest.mark.parametrize("mhz", [1, 80, 200, 1000])
def test_cycles_follow_the_clock(mhz):
    part = part_named("sdr-133x16")
    memory = DramTiming.of(dram_named(part.name, 50)).at(mhz)
    nanoseconds = CONTROLLER_NS + part.t_rcd + part.t_cl + part.access_ns
    assert (memory.latency_cycles - 1) * 1000 / mhz < nanoseconds <= memory.latency_cycles * 1000 / mhz
    assert memory.dram.mhz == mhz
    assert memory.bytes_per_cycle == max(1, int(266.67 / mhz))


def test_a_fixed_latency_is_the_same_at_every_clock():
    memory = MemoryTiming(latency_cycles=7, stall_percent=3, seed=2)
    assert memory.at(300) == memory


def test_stalls_and_dram_are_stated_only_where_there_are_any():
    assert MemoryTiming().to_json() == {"latency_cycles": 20, "bytes_per_cycle": 8}
    found = DramTiming.of(dram_named("sdr-133x16", 80), stall_percent=5, seed=9).to_json()
    assert found["dram"] == "sdr-133x16"
    assert (found["stall_percent"], found["seed"]) == (5, 9)


@pytest.mark.parametrize("values", [{"stall_percent": -1}, {"stall_percent": 91}, {"stall_percent": 1.5}, {"seed": -1},
                                    {"latency_cycles": 0}])
def test_values_that_no_memory_has_are_refused(values):
    name, value = next(iter(values.items()))
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        MemoryTiming(**values)


def test_other_parts_and_clocks_are_refused():
    with pytest.raises(ValueError, match="ddr9"):
        DramTiming.of(dram_named("ddr9", 80))
    with pytest.raises(ValueError, match="-1"):
        DramTiming.of(dram_named("sdr-133x16", -1))
