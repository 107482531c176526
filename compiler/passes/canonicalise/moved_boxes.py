"""Describe the sources of bytes as boxes: images whose rows and pixels lie in even steps on both sides of a copy.

A movement of whatever kind is a list that tells of each byte of the result which byte it is. Runs of neighbours are
found first; then runs that repeat in even steps, twice, whatever lies between them: that is a box.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.network.layers import ByteSteps, Shape
from tilewright.isa.limits import MAX_ROWS

__all__ = ["MovedBox", "boxes_of"]

_MAX_CHANNELS, _MAX_WIDTH = 256, 1024
"""Of an image, so that a few of its rows fit the buffers of every machine."""
_LANES = 16
_SPLIT = 1.5
_CANDIDATES = 12
"""How many of the runs behind one may be its neighbours, of those that are near."""
_NEAR = 4096


@dataclass(frozen=True, slots=True)
class MovedBox:
    """An image of ``shape`` (channels, height, width) that lies at ``source`` before and at ``target`` afterwards."""

    shape: Shape
    source: ByteSteps
    target: ByteSteps


def boxes_of(origins: np.ndarray, bases: Sequence[int], most: int) -> list[MovedBox] | None:
    """Return boxes that make up a copy, each of one source; None if there were more than ``most``.

    ``origins`` has the place of each byte of the result, in their order: int64 of one dimension. Source number k has
    the places from ``bases[k]`` on, and no two are neighbours.
    """
    state = _Runs(origins, np.asarray(bases))
    if state.starts.size > 1 and state.starts.size * 2 > origins.size and origins.size > 2**21:
        return None
    found: list[MovedBox] = []
    while (box := state.taken()) is not None:
        found += box
        if len(found) > most:
            return None
    return found


class _Runs:
    """Runs of neighbours: where each starts in the result, where it comes from, and which no box has yet."""

    def __init__(self, origins: np.ndarray, bases: np.ndarray) -> None:
        breaks = np.flatnonzero(np.diff(origins) != 1) + 1
        self.starts = np.concatenate([[0], breaks]).astype(np.int64)
        unit = int(np.gcd.reduce([origins.size, *breaks]))
        if origins.size < _SPLIT * unit * self.starts.size:
            # Here and there two runs meet by chance, which hides their even steps.
            self.starts = np.arange(0, origins.size, unit)
        self.sources = origins[self.starts]
        self.owners = np.searchsorted(bases, self.sources, "right")
        self.lengths = np.diff(np.concatenate([self.starts, [origins.size]]))
        self.free = np.ones(self.starts.size, bool)
        self.number = np.full(origins.size, -1, np.int64)
        self.number[self.starts] = np.arange(self.starts.size)
        self.next = 0

    def taken(self) -> list[MovedBox] | None:
        """Take the largest box that begins with the first free run; None if no run is free."""
        while self.next < self.starts.size and not self.free[self.next]:
            self.next += 1
        if self.next == self.starts.size:
            return None
        first = np.array([self.next])
        row, pixel = self._repeated(first)
        rows, step = self._repeated(row)
        self.free[rows] = False
        source = int(self.sources[self.next]), step[0], pixel[0]
        target = int(self.starts[self.next]), step[1], pixel[1]
        return _images(len(rows) // len(row), len(row), int(self.lengths[self.next]), source, target)

    def _repeated(self, runs: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """Return ``runs`` and all that repeat them in even steps, in order, and the steps: in source and result."""
        best, steps = runs, (0, 0)
        first = int(runs[0])
        for each in self._candidates(runs):
            there, here = (int(side[each] - side[first]) for side in (self.sources, self.starts))
            found = self._in_steps(runs, there, here)
            if found.size > best.size:
                best, steps = found, (there, here)
        return best, steps

    def _candidates(self, runs: np.ndarray) -> np.ndarray:
        """Return runs behind ``runs`` that may repeat the first of them: the nearest, first those that go on."""
        first, behind = int(runs[0]), int(runs[-1]) + 1
        near = np.flatnonzero(self.free[behind:behind + _NEAR]) + behind
        length = self.lengths[first]
        there, here = self.sources[near] - self.sources[first], self.starts[near] - self.starts[first]
        fits = (self.lengths[near] == length) & (self.owners[near] == self.owners[first]) & (there >= length)
        near, there, here = near[fits], there[fits], here[fits]
        second = self.starts[near] + here
        numbers = self.number[np.minimum(second, self.number.size - 1)]
        goes_on = (second < self.number.size) & (numbers >= 0) & (self.sources[numbers] == self.sources[near] + there)
        return np.concatenate([near[goes_on], near[~goes_on]])[:_CANDIDATES]

    def _in_steps(self, runs: np.ndarray, there: int, here: int) -> np.ndarray:
        most = (self.number.size - 1 - int(self.starts[runs].max())) // here
        count = 2
        while True:
            count = min(count, most)
            offsets = np.arange(1, count + 1)[:, None]
            numbers = self.number[self.starts[runs] + offsets * here]
            fits = (numbers >= 0) & self.free[numbers] & (self.lengths[numbers] == self.lengths[runs]) \
                & (self.owners[numbers] == self.owners[runs]) \
                & (self.sources[numbers] == self.sources[runs] + offsets * there)
            whole = fits.all(axis=1)
            good = count if whole.all() else int(np.argmin(whole))
            if good < count or count == most:
                return np.concatenate([runs, numbers[:good].ravel()])
            count *= 4


def _images(rows: int, pixels: int, length: int, source: Sequence[int], target: Sequence[int]) -> list[MovedBox]:
    """Return images of that many rows of pixels of ``length`` bytes; both sides as offset, row step, pixel step."""
    if rows > 1 and (pixels == 1 or (source[1] == pixels * source[2] and target[1] == pixels * target[2])):
        # A column is a row; and rows that go on in the same steps are one.
        source, target = ((side[0], 0, side[1] if pixels == 1 else side[2]) for side in (source, target))
        rows, pixels = 1, rows * pixels
    if length > _MAX_CHANNELS or (pixels == 1 and rows == 1):
        if rows > 1:
            return [image for row in range(rows)
                    for image in _images(1, pixels, length, (source[0] + row * source[1], 0, source[2]),
                                         (target[0] + row * target[1], 0, target[2]))]
        return _cut_runs(pixels, length, source, target)
    if rows == 1:
        return _cut_row(pixels, length, source, target)
    return _cut_rows((length, rows, pixels), source, target)


def _cut_runs(count: int, length: int, source: Sequence[int], target: Sequence[int]) -> list[MovedBox]:
    """Return images of ``count`` long runs, one a row, or of one run alone."""
    channels = max((each for each in range(1, _MAX_CHANNELS + 1) if length % each == 0),
                   key=lambda each: (each % _LANES == 0, each))
    width = length // channels
    if count > 1 and width <= _MAX_WIDTH:
        sides = [(side[0], side[2], channels) for side in (source, target)]
        return _cut_rows((channels, count, width), *sides)
    return [image for row in range(count) for image in _cut_row(
        width, channels, *((side[0] + row * side[2], 0, channels) for side in (source, target)))]


def _cut_row(pixels: int, length: int, source: Sequence[int], target: Sequence[int]) -> list[MovedBox]:
    """Return images of one long row of pixels of ``length`` bytes."""
    width = next(w for w in range(min(pixels, _MAX_WIDTH), 0, -1) if pixels % w == 0)
    if width * 8 < min(pixels, _MAX_WIDTH):
        width = min(pixels, _MAX_WIDTH)
    rows, rest = divmod(pixels, width)
    found = _cut_rows((length, rows, width), *((side[0], width * side[2], side[2]) for side in (source, target)))
    if rest:
        done = rows * width
        found += _cut_rows((length, 1, rest), *((side[0] + done * side[2], 0, side[2]) for side in (source, target)))
    return found


def _cut_rows(shape: Shape, source: Sequence[int], target: Sequence[int]) -> list[MovedBox]:
    """Return images of at most as many rows and columns as a layer takes."""
    channels, height, width = shape
    if width > _MAX_WIDTH:
        half = width // 2
        return [image for start, size in ((0, half), (half, width - half)) for image in _cut_rows(
            (channels, height, size), *((side[0] + start * side[2], side[1], side[2]) for side in (source, target)))]
    found = []
    for start in range(0, height, MAX_ROWS):
        size = min(MAX_ROWS, height - start)
        found.append(MovedBox((channels, size, width), *(_steps((channels, size, width), side, start * side[1])
                                                         for side in (source, target))))
    return found


def _steps(shape: Shape, side: Sequence[int], offset: int) -> ByteSteps:
    """Return the steps of an image; where there is but one pixel or row, those of one without gaps."""
    channels, height, width = shape
    pixel = side[2] if width > 1 else channels
    return ByteSteps(side[0] + offset, side[1] if height > 1 else width * pixel, pixel)
