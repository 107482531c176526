"""A ring of rows: the input of a layer of which only the rows still needed lie in the activation buffer.

Rows are kept by *units*: a row of the linear layout, or a row of 4x4 blocks. Unit u lies at place u mod ``units``. A
window that the array reads must lie in one piece, and begins at the place of its first unit; a window that passes the
end of the ring continues in ``margin`` more places behind it. Units that such a window reads there are stored to both
places, or to the margin alone if no other window reads them. So nothing is computed twice and no address wraps.

Rings of 4x4 blocks can also do without places behind them: where a window of two block rows begins in the last one,
the step from a block row to the next is negative, so that the second is the ring's first. Rows come and go by
themselves there, not with their block row, which takes the least room that there is.

Bands of rows are numbered. The layer that writes band k does so after the reader has computed its band k - 1, and the
reader computes its band k after that (compiler/schedule/steps.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["BandRows", "InBands", "RowRing", "closed_ring_of", "ring_of"]

_BLOCK_ROWS_AROUND = 2
"""Block rows of a window that goes round the end of a closed ring: it has one step between block rows."""


@dataclass(frozen=True, slots=True)
class BandRows:
    """Rows of an input that are read and written band by band, as stored rows.

    Attributes
    ----------
    windows : tuple of tuple of range
        The rows that each tile of each band reads.
    written : tuple of range
        The rows that are written for each band.
    padding : range
        Rows of padding behind the image.
    heads : tuple of bool
        Whether the first layer of the group computes anything in each band: only then can padding be written.
    depth : int
        Steps from the group's first layer to the reader.
    """

    windows: tuple[tuple[range, ...], ...]
    written: tuple[range, ...]
    padding: range
    heads: tuple[bool, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class RowRing:
    """Where the rows of an input lie.

    Attributes
    ----------
    rows : int
        Stored rows of a unit: 1, or 4 in the blocked layout.
    units, margin : int
        Units of the ring and behind it.
    inside, behind : frozenset of int
        Stored rows that are read in the ring, and those that are read behind it.
    padded : int
        Band of the group's first layer before which the padding below the image is written; -1: before everything,
        because its places hold nothing else.
    closed : bool
        Windows that go on beyond the end go on at the first place.
    """

    rows: int
    units: int
    margin: int
    inside: frozenset[int]
    behind: frozenset[int]
    padded: int
    closed: bool = False

    @property
    def height(self) -> int:
        """Stored rows for which there is room."""
        return (self.units + self.margin) * self.rows

    @property
    def twice(self) -> float:
        """Part of the rows that are stored to two places."""
        return len(self.inside & self.behind) / len(self.inside | self.behind)

    def place(self, row: int) -> int:
        """Return the row of the buffer at which a window that begins with stored row ``row`` begins."""
        return row // self.rows % self.units * self.rows + row % self.rows

    def goes_round(self, units: range) -> bool:
        """Tell whether a window of ``units`` goes on at the ring's first place."""
        return self.closed and units.start % self.units + len(units) > self.units

    def stride(self, units: range) -> int:
        """Return the units of the buffer from one of a window of ``units`` to the next: 1, or back to the first."""
        return 1 - self.units if self.goes_round(units) else 1

    def pieces(self, rows: range) -> Iterator[tuple[range, int]]:
        """Yield stored rows that follow each other in the buffer, and where there: all places of ``rows``."""
        for there, shift in ((self.inside, 0), (self.behind, self.units * self.rows)):
            first = None
            for row in rows:
                if first is not None and (row not in there or row % (self.units * self.rows) == 0):
                    yield range(first, row), self.place(first) + shift
                    first = None
                if first is None and row in there:
                    first = row
            if first is not None:
                yield range(first, rows.stop), self.place(first) + shift


@dataclass(frozen=True, slots=True)
class InBands:
    """A layer of a group that is computed band by band.

    Attributes
    ----------
    place, layers : int
        Number of the layer in its group, and of the group's layers.
    depth : int
        Steps from the group's first layer to this one: rounds by which its bands come later.
    tiles : tuple of int
        Tiles of each band; a band may have none.
    ring : RowRing or None
        Where the input lies; None for the first layer, which loads it.
    """

    place: int
    layers: int
    depth: int
    tiles: tuple[int, ...]
    ring: RowRing | None

    def band(self, index: int) -> range:
        """Return the numbers of the tiles of a band."""
        first = sum(self.tiles[:index])
        return range(first, first + self.tiles[index])


def ring_of(rows: BandRows, unit: int) -> RowRing:
    """Return the ring of the least room, of units of ``unit`` rows."""
    windows = tuple(tuple(range(each.start // unit, -(-each.stop // unit)) for each in band) for band in rows.windows)
    count = max(each.stop for band in windows for each in band)
    first = _first_units(windows)
    written = [-(-each.stop // unit) if each else 0 for each in rows.written]
    least = max([1, *(stop - first[band] for band, stop in enumerate(written)),
                 *(len(each) for band in windows for each in band)])
    padded = -1
    if rows.padding and least < count:
        padding = range(rows.padding.start // unit, -(-rows.padding.stop // unit))
        padded = _padding_band(rows, padding, written)
        least = max(least, min(padding.stop, count) - first[max(0, padded - rows.depth + 1)])
    least = min(least, count)
    reads = [each for band in windows for each in band]
    sizes = range(least, min(2 * least, count) + 1)
    room = min(size + _margin(reads, size) for size in sizes)
    every = [each for band in rows.windows for each in band]
    rings = [_laid(every, unit, size, _margin(reads, size), padded if size < count else -1)
             for size in sizes if size + _margin(reads, size) == room]
    return min(rings, key=lambda ring: ring.twice)


def closed_ring_of(rows: BandRows, unit: int) -> RowRing | None:
    """Return the closed ring of the least room, of units of ``unit`` rows; None if windows do not allow one.

    Padding below the image is written before any row of its units, as in other rings, but over rows that are done with.
    """
    every = [each for band in rows.windows for each in band]
    count, first = -(-max(each.stop for each in every) // unit), _first_units(rows.windows)
    least = max(*(each.stop - first[band] for band, each in enumerate(rows.written) if each), *map(len, every))
    padded = -1
    if rows.padding:
        padding = range(rows.padding.start // unit, -(-rows.padding.stop // unit))
        padded = _padding_band(rows, padding, [-(-each.stop // unit) if each else 0 for each in rows.written])
        least = max(least, min(rows.padding.stop, unit * count) - first[max(0, padded - rows.depth + 1)])
    reads = [range(each.start // unit, -(-each.stop // unit)) for each in every]
    for units in range(-(-least // unit), count):
        ring = RowRing(unit, units, 0, frozenset(range(unit * count)), frozenset(), padded, closed=True)
        if all(len(each) == _BLOCK_ROWS_AROUND for each in reads if ring.goes_round(each)):
            return ring
    return None


def _laid(windows: Sequence[range], unit: int, units: int, margin: int, padded: int) -> RowRing:
    """Return a ring of ``units`` with the places of the rows that ``windows`` read."""
    inside, behind, lap = set[int](), set[int](), units * unit
    for each in windows:
        wrap = each.start - each.start % lap + lap
        inside |= set(range(each.start, min(each.stop, wrap)))
        behind |= set(range(wrap, each.stop))
    return RowRing(unit, units, margin, frozenset(inside), frozenset(behind), padded)


def _first_units(windows: Sequence[Sequence[range]]) -> list[int]:
    """Return for each band the first unit that it or a later one reads."""
    found, first = [], max(each.stop for band in windows for each in band)
    for band in reversed(windows):
        first = min([first, *(each.start for each in band)])
        found.append(first)
    return found[::-1]


def _margin(reads: Sequence[range], units: int) -> int:
    """Return the units by which windows go on behind a ring of ``units``, at most."""
    return max(0, *(each.start % units + len(each) - units for each in reads))


def _padding_band(rows: BandRows, padding: range, written: Sequence[int]) -> int:
    """Return the latest band of the first layer before which the padding can be written.

    It comes before any row of its units is stored: a load waits only for stores that the array has waited for.
    """
    touching = next((band for band, stop in enumerate(written) if stop > padding.start), len(written) - 1)
    latest = touching if rows.depth == 1 else touching + rows.depth - 2
    return max((band for band, there in enumerate(rows.heads) if there and band <= latest), default=0)
