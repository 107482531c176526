"""Rows of bands: each row once, in time for its readers, and of 3x3 by twos."""

from itertools import chain

from tests.support.stacks import Stack
from tilewright.compiler.plan.band_graph import BandGraph, rows_of_bands
from tilewright.compiler.plan.problem import Feed


def _branched() -> tuple[tuple[range, ...], ...]:
    """Return rows of a 3x3 whose results a 1x1 and another 3x3 read, which end the group, in bands of three rows."""
    stack = Stack((4, 20, 20))
    first = stack.conv(8, 3, pad=1)
    stack.conv(8, 1)
    stack.conv(8, 3, pad=1, source=first)
    graph = BandGraph.of([[Feed(ahead=1), Feed(ahead=2)], [], []])
    assert graph is not None
    return rows_of_bands(stack.layers, graph, 3)


def test_every_row_is_computed_once_and_before_it_is_read():
    rows = _branched()
    for bands in rows:
        assert list(chain.from_iterable(bands)) == list(range(20))
    for first, pointwise, around in zip(*rows, strict=True):
        assert first.stop >= max(pointwise.stop, min(20, around.stop + 1))


def test_rows_of_3x3_that_others_read_end_evenly():
    first, _, _ = _branched()
    assert all(band.stop % 2 == 0 for band in first)


def test_ways_of_different_length_are_no_group():
    assert BandGraph.of([[Feed(ahead=1), Feed(ahead=2)], [Feed(ahead=1)], []]) is None
    assert BandGraph.of([[Feed(ahead=1), Feed(ahead=2)], [Feed(ahead=2)], [], []]) is None
