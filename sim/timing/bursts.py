"""The bursts of a strided request on the bus: each run from bus word to bus word, cut as rtl/bus/axi.py cuts it."""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["MAX_BURST", "OUTSTANDING", "Burst", "Strides", "bursts_of"]

MAX_BURST = 64
"""rtl.bus.axi.MAX_BURST: words of the longest burst, which crosses no multiple of it."""

OUTSTANDING = 16
"""rtl.bus.axi.OUTSTANDING."""

_MASK = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Strides:
    """Runs of ``chunk_bytes`` bytes: ``chunks`` of them in each of ``rows`` rows, from ``address`` on."""

    address: int
    rows: int
    chunks: int
    chunk_bytes: int
    row_step: int
    chunk_step: int


@dataclass(frozen=True, slots=True)
class Burst:
    """``words`` bus words from ``address``, part of run ``run`` of its command."""

    address: int
    words: int
    run: int


def bursts_of(strides: Strides, bus_bytes: int) -> Iterator[Burst]:
    """Yield the bursts of a request in order; addresses are byte addresses of 32 bits."""
    block = MAX_BURST * bus_bytes
    for run in range(strides.rows * strides.chunks):
        row, chunk = divmod(run, strides.chunks)
        start = (strides.address + row * strides.row_step + chunk * strides.chunk_step) & _MASK
        place = start - start % bus_bytes
        end = start + strides.chunk_bytes
        while place < end:
            stop = min(place - place % block + block, end)
            words = -(-(stop - place) // bus_bytes)
            yield Burst(place, words, run)
            place += words * bus_bytes
