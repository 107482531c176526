"""Write weights in the code that `isa.coded.weight_code` describes, with the four widths that make it shortest."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.plan.footprint import MOST_DECODED
from tilewright.isa.coded.weight_code import (
    CHOICES,
    GROUP,
    MOST_WIDTH,
    WIDTHS,
    WIDTHS_BITS,
    WeightCode,
    decode_weights,
    fetches,
    needed_widths,
)
from tilewright.isa.machine import Machine

__all__ = ["CodedBlock", "coded_blocks", "encode_weights"]

_Int = NDArray[np.int64]

_BLOCK_CYCLES = 4
"""Beyond those of decoding that a block takes: a command more of the front, and the beginning."""


@dataclass(frozen=True, slots=True)
class CodedBlock:
    """A coded block: its bus words, the bytes that it decodes to, and the cycles of its load."""

    stream: bytes
    decoded: int
    cycles: int


def coded_blocks(data: bytes, machine: Machine) -> tuple[CodedBlock, ...]:
    """Return ``data``, int8 weights, as coded blocks; none where ``machine`` has no decoder, or would gain nothing.

    They are shorter, and their load takes no longer than that of ``data`` as it is.
    """
    code = WeightCode.of(machine)
    if not machine.coded_weights or len(data) % code.step_bytes:
        return ()
    steps = len(data) // code.step_bytes
    each = -(-steps // -(-len(data) // MOST_DECODED)) * code.step_bytes
    found = []
    for first in range(0, len(data), each):
        part = data[first:first + each]
        stream = encode_weights(code, part)
        cycles = decode_weights(code, stream, len(part) // code.step_bytes).cycles + _BLOCK_CYCLES
        found.append(CodedBlock(stream, len(part), cycles))
    size, cycles = sum(len(block.stream) for block in found), sum(block.cycles for block in found)
    return tuple(found) if size < len(data) and cycles <= len(data) // machine.bus_bytes else ()


def encode_weights(code: WeightCode, data: bytes) -> bytes:
    """Return the coded bus words of ``data``, int8 weights, with zeros behind them up to a whole step: one at least."""
    padded = np.frombuffer(data + bytes(-len(data) % code.step_bytes), np.int8).reshape(-1, code.lanes, GROUP)
    needed = needed_widths(padded)
    widths = _best_widths(np.bincount(needed.reshape(-1), minlength=MOST_WIDTH + 1))
    chosen = np.searchsorted(widths, needed)
    taken = np.array(widths)[chosen]
    streams = {lane: _in_words(_planes(padded[:, lane], taken[:, lane]), code) for lane in range(code.lanes)}
    streams[CHOICES] = _choice_words(chosen, widths, code)
    nothing = bytes(code.word_bytes)
    words = [streams[stream].pop(0) if streams[stream] else nothing
             for _, stream in fetches(code, len(padded), taken.tolist().__getitem__)]
    while len(words) > 1 and words[-1] == nothing:
        words.pop()
    return b"".join(words)


def _best_widths(counts: _Int) -> tuple[int, ...]:
    """Return the four widths, in order, with which groups of the least widths ``counts`` take the fewest nibbles."""
    top = int(max(np.flatnonzero(counts), default=0))
    below = range(max(top, WIDTHS - 1))

    def nibbles(widths: tuple[int, ...]) -> int:
        return int(np.array(widths)[np.searchsorted(widths, np.arange(top + 1))] @ counts[:top + 1])

    return min(((*lower, max(top, WIDTHS - 1)) for lower in combinations(below, WIDTHS - 1)), key=nibbles)


def _planes(weights: NDArray[np.int8], widths: _Int) -> NDArray[np.uint8]:
    """Return the nibbles of a lane's groups, (steps, 4), one behind the other."""
    wide = weights.astype(np.int16)
    u = np.where(wide < 0, -2 * wide - 1, 2 * wide)
    bits = u[:, None, :] >> np.arange(MOST_WIDTH)[:, None] & 1
    nibbles = (bits << np.arange(GROUP)).sum(axis=-1).astype(np.uint8)
    return nibbles[np.arange(MOST_WIDTH) < widths[:, None]]


def _in_words(nibbles: NDArray[np.uint8], code: WeightCode) -> list[bytes]:
    padded = np.concatenate([nibbles, np.zeros(-len(nibbles) % code.word_nibbles, np.uint8)])
    data = (padded[::2] | padded[1::2] << 4).astype(np.uint8).tobytes()
    return [data[first:first + code.word_bytes] for first in range(0, len(data), code.word_bytes)]


def _choice_words(chosen: _Int, widths: tuple[int, ...], code: WeightCode) -> list[bytes]:
    """Return the words of choices (steps, lanes); the four widths end the first."""
    words, place = list[int](), 0
    value = sum(width << 4 * k for k, width in enumerate(widths)) << 8 * code.word_bytes - WIDTHS_BITS
    left = code.choices(first=True)
    for row in chosen.tolist():
        if not left:
            words.append(value)
            value, place, left = 0, 0, code.choices(first=False)
        for choice in row:
            value |= choice << place
            place += 2
        left -= 1
    return [each.to_bytes(code.word_bytes, "little") for each in (*words, value)]
