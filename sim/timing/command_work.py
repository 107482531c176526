"""The work of a command: bus words, writes, slots and requests, in closed form from its operands.

Everything depends on few numbers that recur from command to command, so results are cached.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.machine import PATCHES, SUM_BYTES, TILE_BYTES, Machine
from tilewright.sim.timing.latencies import NORM_GRANT, NORM_LATENCY, ROW_GRANT, ROW_LATENCY, ROW_SETTLING

__all__ = [
    "MacWork", "Padding", "PostWork", "Runs", "TransferWork", "Windows", "load_rows", "mac_work", "post_work",
    "residual_interval", "row_cycles", "row_work", "store_rows",
]

_Cycles = NDArray[np.int64]

_ONE_PIXEL = 1 << 20
"""Bytes of a pixel where pixels do not matter: more than a row has."""


def _spanned(start: int, size: int, bus_bytes: int) -> int:
    """Return the bus words that ``size`` bytes from ``start`` touch."""
    return -(-(start % bus_bytes + size) // bus_bytes)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a strided request, ``chunks`` of ``chunk_bytes`` bytes in each of ``rows`` rows.

    ``lane`` is the byte of a bus word at which the first begins; of steps too only the remainder by the bus width
    matters.
    """

    lane: int
    rows: int
    chunks: int
    chunk_bytes: int
    row_step: int
    chunk_step: int

    def lanes(self, bus_bytes: int) -> dict[int, int]:
        """Return how many runs start at each lane of a bus word."""
        counts: dict[int, int] = {}
        for row in range(min(self.rows, bus_bytes)):      # lanes recur with this period
            times_row = -(-(self.rows - row) // bus_bytes)
            for chunk in range(min(self.chunks, bus_bytes)):
                lane = (self.lane + row * self.row_step + chunk * self.chunk_step) % bus_bytes
                counts[lane] = counts.get(lane, 0) + times_row * -(-(self.chunks - chunk) // bus_bytes)
        return counts


@dataclass(frozen=True, slots=True)
class Padding:
    """Pixels of ``pixel`` bytes that lda writes to the left and the right of a row."""

    left: int
    right: int
    pixel: int


def _parts(start: int, size: int, pixel: int, bus_bytes: int) -> int:
    """Return the writes of ``size`` bytes that start at lane ``start``: a write is bytes of one word and one pixel."""
    borders = start + pixel * np.arange(1, -(-size // pixel))
    return _spanned(start, size, bus_bytes) + int(np.count_nonzero(borders % bus_bytes))


@dataclass(frozen=True, slots=True)
class TransferWork:
    """A command of the load or the store unit.

    Attributes
    ----------
    words : int
        Bus words that cross the bus; of a copy within the coprocessor, words all the same.
    cycles : int
        Least cycles of the unit for them and for the padding.
    segments : int
        Runs, and paddings beside them.
    lead : int
        Cycles of the padding before the first word.
    bytes : int
        Bytes written at the destination.
    outside : int
        Paddings before the first word and behind the last.
    """

    words: int
    cycles: int
    segments: int
    lead: int
    bytes: int
    outside: int = 0

    @property
    def waiting(self) -> int:
        """Segments from the first that waits for a word to the last."""
        return self.segments - self.outside


@lru_cache(maxsize=4096)
def load_rows(runs: Runs, padding: Padding, *, blocked: bool, fill: bool, bus_bytes: int, written_bytes: int
              ) -> TransferWork:
    """Return the work of an lda command; a ``fill`` reads nothing. ``written_bytes``: of aligned lanes, as a write."""
    pixel, size = padding.pixel, runs.chunk_bytes
    unit = pixel if blocked else _ONE_PIXEL
    sides = [(side * pixel, _parts(0, side * pixel, unit, written_bytes))
             for side in (padding.left, padding.right) if side]
    if fill:
        words, parts = 0, runs.rows * runs.chunks * _parts(0, size, unit, written_bytes)
    else:
        lanes = runs.lanes(bus_bytes)
        words = sum(count * _spanned(lane, size, bus_bytes) for lane, count in lanes.items())
        parts = sum(count * _parts(lane, size, unit, written_bytes) for lane, count in lanes.items())
    return TransferWork(
        words=words,
        cycles=parts + runs.rows * sum(each for _, each in sides),
        segments=runs.rows * (runs.chunks + len(sides)),
        lead=sides[0][1] if padding.left else 0,
        bytes=runs.rows * (runs.chunks * size + sum(size for size, _ in sides)),
        outside=len(sides),
    )


@lru_cache(maxsize=4096)
def store_rows(runs: Runs, *, to_memory: bool, bus_bytes: int, written_bytes: int) -> TransferWork:
    """Return the work of a sta command; ``runs`` are those at the target. A copy writes ``written_bytes`` a cycle."""
    count, size = runs.rows * runs.chunks, runs.chunk_bytes
    if to_memory:
        words = cycles = sum(times * _spanned(lane, size, bus_bytes) for lane, times in runs.lanes(bus_bytes).items())
    else:
        words, cycles = count * _spanned(0, size, bus_bytes), count * _spanned(0, size, written_bytes)
    return TransferWork(words=words, cycles=cycles, segments=count, lead=0, bytes=count * size)


@dataclass(frozen=True, slots=True, eq=False)
class MacWork:
    """A command of the array: cycles of each tile group and of its last step, and its counts."""

    cycles: _Cycles
    last: _Cycles
    total: int
    tiles: int
    tile_slots: int
    activation_read: int
    weight_read: int


@lru_cache(maxsize=1024)
def mac_work(machine: Machine, kind: str, tiles_x: int, tiles_y: int, groups: int, steps: int, *,
             reuse: bool, by_channel: int = 0) -> MacWork:
    """Return the work of a mac command; ``kind`` is its mnemonic, ``steps`` the turns of its inner loops.

    ``by_channel``: channels of a step, if each has a kernel of its own: one, in arrays that take them in turn; four,
    with a patch for each of four lanes; 0 where all lanes see all channels.
    """
    tiles, count, lanes = machine.tiles, tiles_x * tiles_y, machine.lanes_per_cluster
    sizes = np.full(-(-count // tiles), tiles, np.int64)
    sizes[-1] = count - tiles * (len(sizes) - 1)
    slots = np.maximum(sizes, machine.fetch_slots)
    behind = last = np.tile(slots, groups)
    pairs = machine.pairs_channels and kind == "conv23" and by_channel < PATCHES
    if pairs:
        # The last products of a tile group, those for second channels, are made while the next one begins, which takes
        # as many slots at least, or behind the command.
        steps += steps % 2
        behind = np.append(np.maximum(last[1:], last[:-1]), last[-1])
    cycles = last * (steps - 1) + behind
    if pairs:
        cycles[0] += last[0]
        last = last + behind
    elif by_channel == PATCHES:     # sums of a lane's two channels are finished one after the other
        last = last * machine.lanes_per_fetch
    index = np.arange(count)
    reused = int(np.count_nonzero((index % tiles != 0) & (index % tiles_x != 0))) if reuse else 0
    fetch = {"conv23": 9, "conv": TILE_BYTES, "pool": 0}[kind] * (
        machine.lanes_per_fetch * by_channel or machine.clusters * lanes)
    return MacWork(
        cycles=cycles,
        last=last,
        total=int(cycles.sum()),
        tiles=count,
        tile_slots=count * steps * groups,
        activation_read=max(1, by_channel) * (TILE_BYTES * count - TILE_BYTES // 2 * reused) * steps * groups,
        weight_read=len(sizes) * steps * groups * fetch,
    )


@dataclass(frozen=True, slots=True)
class Windows:
    """Pooling along one axis: as the operands of pool.window, for one of the two directions."""

    kernel: int = 1
    stride: int = 1
    padding: int = 0
    count: int = 0

    def over(self, size: int) -> _Cycles:
        """Return for each of ``size`` pixels how many windows cover it."""
        first = np.arange(self.count) * self.stride - self.padding
        return np.array([np.count_nonzero((first <= pixel) & (pixel < first + self.kernel)) for pixel in range(size)],
                        np.int64)

    @property
    def drops(self) -> bool:
        """Whether windows of one pixel take every second pixel, beginning with the first."""
        return (self.kernel, self.stride, self.padding) == (1, 2, 0)

    def touched(self, size: int) -> int:
        """Return how many windows cover a pixel at all."""
        first = np.arange(self.count) * self.stride - self.padding
        return int(np.count_nonzero((first < size) & (first + self.kernel > 0)))


@dataclass(frozen=True, slots=True, eq=False)
class PostWork:
    """An act command: cycles of each tile group, its counts, and cycles in which it uses the result buffer's ports.

    ``read`` and ``written`` are bytes of the result buffer.
    """

    cycles: _Cycles
    requantized: int
    read: int
    written: int
    read_cycles: int
    write_cycles: int


def residual_interval(machine: Machine) -> int:
    """Return the cycles between vectors with residual: one adder for four lanes (rtl/post/residual_stage.py)."""
    return machine.post_lanes // max(1, machine.post_lanes // 4)


@lru_cache(maxsize=1024)
def post_work(machine: Machine, rows: int, width: int, channels: int, windows: tuple[Windows, Windows] | None, *,
              winograd: bool, residual: bool, form: str = "byte") -> PostWork:
    """Return the work of an act.run; ``windows`` along y and x if it pools.

    ``form`` is what each sum leaves: a ``byte``, itself ``whole``, each of whose bytes is a value, or a ``wide`` word,
    of which vectors of upper and of lower bytes take turns.
    """
    each_sum = SUM_BYTES if form == "whole" else 1
    lanes, vector, channels = each_sum * machine.lanes, machine.post_lanes, each_sum * channels
    steps = np.ones((rows, width), np.int64)
    if windows is not None and winograd and machine.takes_four_patches:
        for axis, along in enumerate(windows):
            if along.drops:     # the other pixels of a tile take no step
                kept = np.arange(steps.shape[axis]) % 2 == 0
                steps *= kept if axis else kept[:, None]
    pixels = int(steps.sum())
    read, written = pixels if residual else 0, pixels
    if windows is not None:
        over_y, over_x = windows[0].over(rows), windows[1].over(width)
        covering = over_y[:, None] * over_x
        steps *= np.maximum(covering, 1)
        written = int(covering.sum())
        read = written - windows[0].touched(rows) * windows[1].touched(width)
    if winograd:
        padded = np.zeros((rows + rows % 2, width + width % 2), np.int64)
        padded[:rows, :width] = steps
        steps = padded[0::2, 0::2] + padded[0::2, 1::2] + padded[1::2, 0::2] + padded[1::2, 1::2]
    by_group = np.zeros(-(-steps.size // machine.tiles) * machine.tiles, np.int64)
    by_group[:steps.size] = steps.ravel()
    by_group = by_group.reshape(-1, machine.tiles).sum(axis=1)
    interval = residual_interval(machine) if residual else 1
    groups = -(-channels // lanes)
    tail = channels - lanes * (groups - 1)
    planes = 2 if form == "wide" else 1
    slices = [planes * (lanes // vector)] * (groups - 1) + [planes * -(-tail // vector)]
    channels *= planes
    return PostWork(
        cycles=np.concatenate([by_group * each * interval for each in slices]),
        requantized=pixels * channels,
        read=read * channels,
        written=written * channels,
        read_cycles=read * sum(slices),
        write_cycles=written * sum(slices),
    )


@lru_cache(maxsize=1024)
def row_cycles(machine: Machine, rows: int, length: int, *, norm: bool = False) -> int:
    """Return the cycles from the start of an act.rows to the cycle of its last results.

    These enter requantisation then. In a round the first pass takes a row, and adds up the one before; the second gives
    the results of the row before that.
    """
    depth, vectors = machine.post_lanes.bit_length() - 1, -(-length // machine.post_lanes)
    grant = depth + ROW_GRANT + NORM_GRANT * norm
    now, found, granted, last = 1, 0, 0, 0     # granted: when results by the newest factor may begin
    for number in range(rows + 2):
        finds, adds, gives = number < rows, 1 <= number <= rows, number >= 2
        ready = granted
        if finds or adds:
            if adds:
                now = max(now, found + ROW_SETTLING)
            last = now + vectors - 1
            if adds:
                last = max(last, ready)
                granted = last + grant
            if finds:
                found = last
            now = last + 1
        if gives:
            last = max(now, ready) + vectors - 1
            now = last + 1
    return last + depth + ROW_LATENCY + NORM_LATENCY * norm


@lru_cache(maxsize=1024)
def row_work(machine: Machine, rows: int, length: int, *, norm: bool = False) -> PostWork:
    """Return the work of an act.rows: each row is read twice, and written."""
    vectors, values = rows * -(-length // machine.post_lanes), rows * length
    return PostWork(cycles=np.array([row_cycles(machine, rows, length, norm=norm)], np.int64), requantized=values,
                    read=2 * values, written=values, read_cycles=2 * vectors, write_cycles=vectors)
