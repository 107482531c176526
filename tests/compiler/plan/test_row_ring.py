"""A ring of rows keeps every row until it has been read for the last time, at each place where a window reads it."""

import numpy as np
import pytest

from tilewright.compiler.plan.row_ring import BandRows, RowRing, closed_ring_of, ring_of


def rows_of_reader(rng: np.random.Generator, unit: int) -> BandRows:
    """Return bands of a reader of kernel, stride and padding at random, whose writer is just ahead of it."""
    kernel, stride = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    before, after = (int(each) for each in rng.integers(0, kernel, 2))
    height, tile, depth = int(rng.integers(8, 60)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    outputs = (height + before + after - kernel) // stride + 1
    windows, written, done = [], [], 0
    step = tile * int(rng.integers(1, 4))
    for first in range(0, outputs, step):
        tiles = [range(start * stride, (min(start + tile, first + step, outputs) - 1) * stride + kernel)
                 for start in range(first, min(first + step, outputs), tile)]
        windows.append(tuple(tiles))
        stop = height if first + step >= outputs else max(done, min(height, tiles[-1].stop - before))
        written.append(range(done + before, stop + before))
        done = stop
    heads = tuple(bool(each) for each in written)
    return BandRows(tuple(windows), tuple(written), range(before + height, before + height + after), heads, depth)


def play(rows: BandRows, ring: RowRing) -> None:
    """Write and read band after band; every window must find its rows, one behind the other."""
    buffer: dict[int, int] = {}

    def write(part: range) -> None:
        for piece, place in ring.pieces(part):
            for distance, row in enumerate(piece):
                assert place + distance < ring.height
                buffer[place + distance] = row

    image = rows.written[0].start
    write(range(image))
    if ring.padded < 0:
        write(rows.padding)
    for turn in range(len(rows.windows) + rows.depth):
        # The reader is ``depth`` rounds behind the first layer, the writer one less; before that one the padding comes.
        for place in (rows.depth, rows.depth - 1, 0):
            band = turn - place
            if place == 0 and band == ring.padded:
                write(rows.padding)
            if not 0 <= band < len(rows.windows):
                continue
            if place == rows.depth:
                for window in rows.windows[band]:
                    assert [buffer.get(place) for place in places_of(window, ring)] == list(window)
            elif place == rows.depth - 1:
                write(rows.written[band])


def places_of(window: range, ring: RowRing) -> list[int]:
    """Return where the array looks for a window's rows: units follow each other by one step, which may lead back."""
    units = range(window.start // ring.rows, -(-window.stop // ring.rows))
    step, first = ring.stride(units) * ring.rows, ring.place(units.start * ring.rows)
    assert len(units) == 2 or not ring.goes_round(units)
    return [first + row // ring.rows % len(units) * step + row % ring.rows
            for row in range(window.start - units.start * ring.rows, window.stop - units.start * ring.rows)]


@pytest.mark.parametrize("unit", [1, 4])
def test_every_window_finds_its_rows(unit):
    seen = dict.fromkeys(("wraps", "whole", "padded late", "stored twice", "deep"), 0)
    for seed in range(400):
        rows = rows_of_reader(np.random.default_rng(seed), unit)
        ring = ring_of(rows, unit)
        play(rows, ring)
        seen["wraps"] += bool(ring.behind)
        seen["whole"] += not ring.behind and ring.margin == 0
        seen["padded late"] += ring.padded >= 0 and bool(rows.padding)
        seen["stored twice"] += ring.twice > 0
        seen["deep"] += ring.padded >= 0 and rows.depth > 1
    assert all(seen.values()), seen


def test_a_ring_takes_the_rows_of_a_band_and_those_that_it_shares_with_the_next():
    windows = tuple((range(2 * band, 2 * band + 4),) for band in range(20))
    written = (range(1, 4), *(range(2 * band + 2, 2 * band + 4) for band in range(1, 20)))
    ring = ring_of(BandRows(windows, written, range(41, 42), (True,) * 20, 1), 1)
    assert (ring.units, ring.height) == (4, 6)
    assert [(list(part), place) for part, place in ring.pieces(range(4, 6))] == [([4, 5], 0), ([4, 5], 4)]


def test_every_window_of_a_closed_ring_finds_its_rows():
    seen = dict.fromkeys(("one", "two", "more", "none", "padded late", "smaller"), 0)
    for seed in range(600):
        rows = rows_of_reader(np.random.default_rng(seed), 4)
        ring = closed_ring_of(rows, 4)
        if ring is None:
            seen["none"] += 1
            continue
        play(rows, ring)
        seen[{1: "one", 2: "two"}.get(ring.units, "more")] += 1
        seen["padded late"] += ring.padded >= 0
        seen["smaller"] += ring.height < ring_of(rows, 4).height
    assert all(seen.values()), seen


def test_a_closed_ring_of_a_stride_of_two_holds_two_rows_of_blocks_instead_of_three():
    windows = tuple((range(4 * band, 4 * band + 6),) for band in range(10))
    written = (range(1, 6), *(range(4 * band + 2, 4 * band + 6) for band in range(1, 10)))
    rows = BandRows(windows, written, range(0), (True,) * 10, 1)
    closed = closed_ring_of(rows, 4)
    assert (closed.units, closed.margin, ring_of(rows, 4).height) == (2, 0, 12)
    assert closed.goes_round(range(1, 3))
    assert not closed.goes_round(range(2, 4))
