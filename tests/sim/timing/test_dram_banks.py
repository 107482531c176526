"""The DRAM of the cycle model against that of the simulator, burst by burst, and against what data sheets demand."""

import subprocess
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from tilewright.isa.dram.dram import Dram, DramNumbers
from tilewright.isa.dram.parts import PARTS, part_named
from tilewright.sim.timing.dram_banks import DramBanks

HARNESS = Path(__file__).parents[3] / "sim/verilator/harness"
BURSTS = 5000


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("dram") / "trace"
    source = Path(__file__).with_name("dram_trace.cpp")
    subprocess.run(["g++", "-std=c++17", "-O1", f"-I{HARNESS}", source, "-o", program], check=True)
    return program


def random_bursts(seed: int) -> list[tuple[int, int, int, int]]:
    """Return write, address, bytes and picoseconds of waiting: runs of neighbours, jumps, pauses longer than tREFI."""
    rng = np.random.default_rng(seed)
    found, address = [], 0
    for _ in range(BURSTS):
        if rng.random() < 0.3:
            address = int(rng.integers(0, 1 << 16)) * 4
        words = int(rng.integers(1, 65))
        words = min(words, 64 - address // 4 % 64)      # as the gateware cuts
        wait = 0 if rng.random() < 0.7 else int(rng.integers(0, 100_000 if rng.random() < 0.97 else 30_000_000))
        found.append((int(rng.random() < 0.4), address, 4 * words, wait))
        address += 4 * words
    return found


def served(numbers: DramNumbers, bursts: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    banks, now, found = DramBanks(numbers), 0, []
    for write, address, size, wait in bursts:
        now = max(now, banks.free_at) + wait
        found.append(banks.serve(bool(write), address, size, now))
    return found


@pytest.mark.parametrize("mhz", [33.3, 80, 200])
@pytest.mark.parametrize("name", PARTS)
def test_every_burst_moves_when_it_does_in_the_simulator(trace, name, mhz):
    numbers = Dram(part_named(name), mhz).numbers()
    bursts = random_bursts(seed=len(name) + int(mhz))
    text = "".join(f"{' '.join(map(str, each))}\n" for each in bursts)
    done = subprocess.run([trace, *map(str, astuple(numbers))], input=text, capture_output=True, text=True, check=True)
    expected = [(int(start), int(end)) for start, end in map(str.split, done.stdout.splitlines())]
    assert len(expected) == BURSTS
    assert served(numbers, bursts) == expected


def numbers_of(name: str) -> DramNumbers:
    return Dram(part_named(name), 100).numbers()


def test_an_open_row_is_quicker_than_a_closed_one_and_that_than_another_open_one():
    t = numbers_of("ddr3l-1600x16")
    banks = DramBanks(t)
    closed, _ = banks.serve(False, 0, 16, 0)
    assert closed == t.rcd + t.cl
    hit, _ = banks.serve(False, 16, 16, 1_000_000)
    assert hit == 1_000_000 + t.cl
    conflict, _ = banks.serve(False, t.row_bytes * t.banks, 16, 2_000_000)
    assert conflict == 2_000_000 + t.rp + t.rcd + t.cl


def test_a_row_stays_open_for_tras_and_written_data_recover():
    t = numbers_of("sdr-133x16")
    banks = DramBanks(t)
    _, end = banks.serve(True, 0, 16, 0)
    start, _ = banks.serve(False, t.row_bytes * t.banks, 16, 0)
    assert start == max(t.ras, end + t.wr) + t.rp + t.rcd + t.cl


def test_the_pins_turn_round():
    t = numbers_of("lpddr-400x16")
    banks = DramBanks(t)
    _, read = banks.serve(False, 0, 16, 0)
    written, end = banks.serve(True, 16, 16, 0)
    assert written == read + t.rtw
    again, _ = banks.serve(False, 32, 16, 0)
    assert again == end + t.wtr + t.cl


def test_no_more_than_four_banks_are_activated_within_tfaw():
    t = numbers_of("ddr3l-1600x16")
    banks = DramBanks(t)
    starts = [banks.serve(False, bank * t.row_bytes, 16, 0)[0] for bank in range(5)]
    assert starts[1] - starts[0] == t.rrd
    assert starts[4] - starts[0] == max(t.faw, 4 * t.rrd)


def test_a_refresh_closes_all_rows_and_takes_trfc():
    t = numbers_of("ddr3l-1600x16")
    banks = DramBanks(t)
    banks.serve(False, 0, 16, 0)
    start, _ = banks.serve(False, 16, 16, t.refi)
    assert start == t.refi + t.rp + t.rfc + t.rcd + t.cl
    later, _ = banks.serve(False, 32, 16, t.refi + t.refi // 2)
    assert later == t.refi + t.refi // 2 + t.cl
