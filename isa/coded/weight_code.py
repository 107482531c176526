"""The code of weights in memory: groups of four weights in planes of bits, as many as the greatest of them needs.

A weight w stands as u = 0, 1, 2, 3 ... for w = 0, -1, 1, -2 ..., in 8 bits. A *step* is what the decoder writes in a
cycle: ``lanes`` groups of four weights, in the order of memory. A group has one of four widths, 0 to 8, none less than
the bits of its largest u, and is as many nibbles: bit f of nibble p is bit p of the group's weight f.

The nibbles of each lane, step after step, are a stream of their own, in bus words, the low nibble first. So are the
*choices*, ``lanes`` times 2 bits for each step, which say with which of the widths. The four widths are the last 16
bits of the first word of choices, 4 bits each, the low ones first; one above 8 counts as 8. Below them and in every
other word of choices are those of as many whole steps as there is room for, low bits first; bits left over mean
nothing.

The words of all streams are one sequence, in the order in which the decoder, which holds two words of each lane, takes
them. For each step from -1 to the last, -1 being one without nibbles:

1. a word of choices, if there is a step behind this one and its choices have not come;
2. for each lane, lane 0 first, a word of its nibbles, if fewer are left than this step takes;
3. if that was none, a word for the first lane that has room for it, holding no more than another: so a step that needs
   none takes what later ones need.

A sequence that ends early goes on in zeros, and what it has beyond the last step means nothing. So any bytes at all
decode to something, in a time that the number of steps and words bounds. weight_code.c decodes it in C.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.machine import Machine

__all__ = ["CHOICES", "GROUP", "MOST_WIDTH", "WIDTHS", "WIDTHS_BITS", "Decoded", "WeightCode", "decode_weights",
           "fetches", "needed_widths", "plane_values"]

GROUP = 4
"""Weights of a group."""

MOST_WIDTH = 8
"""Bits of a weight."""

WIDTHS = 4
"""Widths among which a block's groups choose."""

WIDTHS_BITS = 16
"""Of the first word of choices, behind the choices: 4 for each width."""

CHOICES = -1
"""Stands for the stream of choices, beside the numbers of the lanes."""

_Int8 = NDArray[np.int8]
_CHOICE_BITS = 2


@dataclass(frozen=True, slots=True)
class WeightCode:
    """Sizes of the code of a machine.

    Attributes
    ----------
    lanes : int
        Groups of a step.
    word_bytes : int
        Of a bus word.
    """

    lanes: int
    word_bytes: int

    @classmethod
    def of(cls, machine: Machine) -> "WeightCode":
        """Return the code that ``machine`` decodes."""
        return cls(machine.decoded_bytes // GROUP, machine.bus_bytes)

    @property
    def step_bytes(self) -> int:
        """Weights of a step."""
        return GROUP * self.lanes

    @property
    def word_nibbles(self) -> int:
        """Nibbles of a bus word."""
        return 2 * self.word_bytes

    @property
    def choice_bits(self) -> int:
        """Bits of the choices of a step."""
        return _CHOICE_BITS * self.lanes

    def choices(self, *, first: bool) -> int:
        """Return the steps whose choices a word holds."""
        return (8 * self.word_bytes - (WIDTHS_BITS if first else 0)) // self.choice_bits


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded block: ``data``, int8, and the least ``cycles`` that the decoder takes for it."""

    data: _Int8
    cycles: int


def needed_widths(weights: _Int8) -> _Int8:
    """Return the least width of each group of ``weights``, (groups, 4) int8."""
    wide = weights.astype(np.int16)
    most = np.where(wide < 0, -2 * wide - 1, 2 * wide).max(axis=-1)
    return np.searchsorted(1 << np.arange(MOST_WIDTH), most, side="right").astype(np.int8)


def plane_values(nibbles: NDArray[np.uint8]) -> _Int8:
    """Return the weights (groups, 4) of their nibbles, (groups, 8): the bits of each plane, the lowest first."""
    bits = nibbles[:, None, :] >> np.arange(GROUP, dtype=np.uint8)[:, None] & 1
    u = (bits << np.arange(MOST_WIDTH)).sum(axis=-1)
    return (u >> 1 ^ -(u & 1)).astype(np.int8)


def fetches(code: WeightCode, steps: int, widths_at: Callable[[int], Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Yield (step, stream) for each word in order; a stream is a lane or ``CHOICES``.

    Parameters
    ----------
    widths_at
        Returns the widths of the lanes at a step, and is asked once all its words of choices have been yielded.
    """
    held, choices, first = [0] * code.lanes, 0, True
    for step in range(-1, steps):
        if asked := step + 1 < steps and not choices:
            yield step, CHOICES
            choices, first = code.choices(first=first), False
        choices -= 1
        if step < 0:
            continue
        widths = widths_at(step)
        lacking = [lane for lane, width in enumerate(widths) if held[lane] < width]
        if not lacking and not asked:
            lacking = [lane for lane in range(code.lanes) if held[lane] <= code.word_nibbles][:1]
        for lane in lacking:
            yield step, lane
            held[lane] += code.word_nibbles
        for lane, width in enumerate(widths):
            held[lane] -= width


def decode_weights(code: WeightCode, stream: bytes, steps: int) -> Decoded:
    """Return the weights of ``steps`` steps, int8, ``steps * code.step_bytes`` of them in the order of memory.

    The cycles are those with a bus word ready in each: a step takes one, and another for each word beyond the first
    that comes between it and the step before.
    """
    return _decoded(code, stream, steps)


@lru_cache(maxsize=256)
def _decoded(code: WeightCode, stream: bytes, steps: int) -> Decoded:
    size, count = code.word_bytes, len(stream) // code.word_bytes
    words = np.zeros((count + 1, size), np.uint8)     # the last stands for all behind the end
    words[:count] = np.frombuffer(stream, np.uint8, count * size).reshape(count, size)
    widths, chosen = [0] * WIDTHS, list[list[int]]()

    def take_choices(number: int) -> None:
        value, first = int.from_bytes(words[number].tobytes(), "little"), not chosen
        if first:
            given = value >> 8 * size - WIDTHS_BITS
            widths[:] = [min(given >> 4 * k & 15, MOST_WIDTH) for k in range(WIDTHS)]
        for _ in range(code.choices(first=first)):
            chosen.append([widths[value >> _CHOICE_BITS * lane & WIDTHS - 1] for lane in range(code.lanes)])
            value >>= code.choice_bits

    lanes: list[list[int]] = [[] for _ in range(code.lanes)]
    taken = np.zeros(steps + 1, np.int64)
    for number, (step, lane) in enumerate(fetches(code, steps, chosen.__getitem__)):
        taken[step + 1] += 1
        if lane == CHOICES:
            take_choices(min(number, count))
        else:
            lanes[lane].append(min(number, count))
    data = np.zeros((steps, code.lanes, GROUP), np.int8)
    for lane, numbers in enumerate(lanes):
        data[:, lane] = _lane_values(words[np.array(numbers, np.int64)].reshape(-1),
                                     np.array([each[lane] for each in chosen[:steps]]))
    data.flags.writeable = False
    return Decoded(data.reshape(-1), int(np.maximum(taken, 1).sum()))


def _lane_values(stream: NDArray[np.uint8], widths: NDArray[np.int64]) -> _Int8:
    """Return the weights (steps, 4) of a lane, whose nibbles are in ``stream``, two to a byte."""
    nibbles = np.zeros(2 * len(stream) + MOST_WIDTH, np.uint8)
    nibbles[:2 * len(stream):2], nibbles[1:2 * len(stream):2] = stream & 15, stream >> 4
    places = np.arange(MOST_WIDTH)
    found = nibbles[np.minimum((np.cumsum(widths) - widths)[:, None] + places, len(nibbles) - 1)]
    return plane_values(np.where(places < widths[:, None], found, 0).astype(np.uint8))
