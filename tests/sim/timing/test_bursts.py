"""Bursts of a request: those that the AXI master makes of it."""

import numpy as np
import pytest

from tilewright.rtl.bus import axi
from tilewright.sim.timing import bursts
from tilewright.sim.timing.bursts import Strides, bursts_of


def test_limits_are_those_of_the_master():
    assert (bursts.MAX_BURST, bursts.OUTSTANDING) == (axi.MAX_BURST, axi.OUTSTANDING)


@pytest.mark.parametrize("bus_bytes", [4, 8, 16])
def test_bursts_cover_each_run_once_and_cross_no_block(bus_bytes):
    rng = np.random.default_rng(bus_bytes)
    for _ in range(300):
        strides = Strides(*(int(rng.integers(low, high)) for low, high in (
            (1 << 31, (1 << 31) + 9999), (1, 5), (1, 5), (1, 3000), (0, 1 << 32), (0, 1 << 32))))
        found = list(bursts_of(strides, bus_bytes))
        for run in range(strides.rows * strides.chunks):
            row, chunk = divmod(run, strides.chunks)
            start = (strides.address + row * strides.row_step + chunk * strides.chunk_step) % (1 << 32)
            words = [each.address // bus_bytes + word for each in found if each.run == run
                     for word in range(each.words)]
            assert words == list(range(start // bus_bytes, -(-(start + strides.chunk_bytes) // bus_bytes)))
        assert all(each.address // bus_bytes // 64 == (each.address // bus_bytes + each.words - 1) // 64
                   for each in found)
