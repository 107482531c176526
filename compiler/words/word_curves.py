"""Any function of one tensor of 16-bit words as a curve behind a layer: a parabola on each of 128 pieces of the words.

A parabola cannot follow a corner; HardSwish has two. So the layer first maps its words by a line, ``t = a x + b``,
which puts corners at ends of pieces. The line spends no piece on words at either end of the range for which the
function is constant. `curve_of` computes all 65,536 words: a function has a curve if no result differs by more than
`MOST_OFF` levels from that of the operators.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.layers import Layer, Requantisation
from tilewright.isa.words.curve_fields import CURVATURE, PIECE, PIECES, SLOPE, UNITS, VALUE
from tilewright.isa.words.word_curve import curve_bytes, follow_curve
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["MOST_OFF", "Curve", "bent", "curve_of"]

MOST_OFF = 2
"""Levels by which a result may differ from that of the operators."""

_WORDS = 1 << 16
_LEAST = -(_WORDS >> 1)
_FINEST = 16.0
"""Words that a piece stands for, at least."""

_REACH = 64
"""Words on either side of a place that tell whether the function has a corner there."""

_CORNER = 2.0
"""Levels, at least, between the word `_REACH` behind a corner and the straight line through those before it."""

_NEAREST = 4 * _REACH


@dataclass(frozen=True, slots=True)
class Curve:
    """A ``table``, int8 (1024,), behind the line ``(x - start) * scale + zero``, and the levels that it is ``off``."""

    table: np.ndarray
    start: int
    scale: np.float32
    zero: int
    off: int


def curve_of(values: np.ndarray) -> Curve | None:
    """Return the curve of a function whose results are ``values``, int16 by ascending word; None if there is none."""
    known = values.astype(np.float64)
    changes = np.flatnonzero(np.diff(values))
    if not changes.size:
        return None
    first, last = int(changes[0]), int(changes[-1]) + 1
    found = [curve for line in _lines(known, first, last) if (curve := _fitted(values, known, line)) is not None]
    best = min(found, key=lambda each: each.off, default=None)
    return None if best is None or best.off > MOST_OFF else best


def bent(layer: Layer, curve: Curve) -> Layer:
    """Return ``layer``, which passes words on, with ``curve`` behind it, so that it gives their results."""
    channels = len(layer.bias)
    return replace(
        layer, bias=np.full(channels, LOWER_OFFSET - curve.start, np.int32), table=curve.table, exact=False,
        requantisation=Requantisation(scale=np.full(channels, curve.scale, np.float32), zero_point=curve.zero,
                                      low=_LEAST, high=-_LEAST - 1))


@dataclass(frozen=True, slots=True)
class _Line:
    """Pieces of ``length`` words, a real number; one begins at word ``start``, and ``before`` pieces lie below it."""

    start: float
    length: float
    before: int


def _lines(known: np.ndarray, first: int, last: int) -> Iterator[_Line]:
    """Yield lines that spread the pieces over places ``first`` to ``last`` of ``known``, with corners at ends."""
    least = max((last - first) / PIECES, _FINEST)
    yield _Line(first, _whole(least), 0)
    corners = _corners(known, first, last)
    for corner in corners:
        length = _whole(max((last - first) / (PIECES - 1), _FINEST))
        yield _Line(corner, length, int(np.ceil((corner - first) / length)))
    for one in (first, *corners):
        for other in (*corners, last):
            pieces = int((other - one) / least)
            for count in range(pieces, max(pieces - 3, 0), -1):
                length = (other - one) / count
                before = int(np.ceil((one - first) / length - 1e-9))
                if before + np.ceil((last - one) / length - 1e-9) <= PIECES:
                    yield _Line(one, length, before)


def _whole(length: float) -> float:
    """Return the least length of pieces, from ``length`` on, whose line has a whole factor; ``length`` if none has."""
    return PIECE / int(PIECE / length) if length <= PIECE else length


def _corners(known: np.ndarray, first: int, last: int) -> list[int]:
    """Return the places of the two sharpest corners, ascending."""
    wide = np.pad(known, _REACH, mode="reflect", reflect_type="odd")
    turn = np.abs(wide[2 * _REACH:] - 2 * known + wide[:-2 * _REACH])
    turn -= np.minimum(np.roll(turn, 2 * _REACH), np.roll(turn, -2 * _REACH))   # What bends all along is no corner.
    found: list[int] = []
    for _ in range(2):
        place = int(turn[first:last + 1].argmax()) + first
        if turn[place] < _CORNER:
            break
        found.append(place)
        turn[max(0, place - _NEAREST):place + _NEAREST] = 0
    return sorted(found)


def _fitted(values: np.ndarray, known: np.ndarray, line: _Line) -> Curve | None:
    """Return the curve of a function over a line's pieces, tried with all words; None if its numbers do not fit."""
    scale, start, zero = np.float32(PIECE / line.length), round(line.start), PIECE * line.before + _LEAST
    along = np.arange(PIECE) - PIECE // 2
    places = start + (np.arange(_WORDS) + _LEAST - zero) / np.float64(scale)
    targets = np.interp(places, *_extended(known)).reshape(PIECES, PIECE)
    terms = (targets @ _projection(along).T).T
    value, slope, curvature = (np.rint(np.ldexp(term, digits)) for term, digits in zip(terms, UNITS, strict=True))
    edge = np.abs(slope) + np.ldexp(np.abs(curvature) * (PIECE // 2), UNITS[1] - UNITS[2]) + 1
    if max(np.abs(value).max() / 2**VALUE, edge.max() / 2**SLOPE, np.abs(curvature).max() / 2**CURVATURE) >= 0.5:
        return None
    table = curve_bytes(value.astype(np.int64), slope.astype(np.int64), curvature.astype(np.int64))
    words = np.rint((np.arange(_WORDS) - start).astype(np.float32) * scale) + zero
    result = follow_curve(np.clip(words, _LEAST, -_LEAST - 1).astype(np.int16), table.view("<u8"))
    off = int(np.abs(result.astype(np.int32) - values).max())
    return Curve(table, start + _LEAST, scale, zero, off)


def _extended(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places and results, extended at both ends by straight lines."""
    rises = (known[0] - known[_REACH]) / _REACH, (known[-1] - known[-1 - _REACH]) / _REACH
    places = np.concatenate(([-_WORDS], np.arange(_WORDS), [2 * _WORDS - 1]))
    return places, np.concatenate(([known[0] + _WORDS * rises[0]], known, [known[-1] + _WORDS * rises[1]]))


def _projection(along: np.ndarray) -> np.ndarray:
    """Return the matrix from values at ``along`` to value, slope and curvature, of nearly the least maximum error."""
    inside = along / (along.size / 2 + 1)
    weights = 1 / np.sqrt(1 - inside**2)
    basis = np.stack([np.ones(along.size), along, along**2], 1).astype(np.float64)
    return np.linalg.solve(basis.T @ (weights[:, None] * basis), basis.T * weights)
