"""Exchange the contents of block RAM in a routed ECP5 design, in nextpnr's text, so that a program needs no routing.

A design is synthesised and routed with random contents, and those tell where each bit has gone: a slice, one bit of 512
words in a row, lies in one block RAM, in one of the shapes that the block has, and random slices are all different. So
does Project Trellis' ``ecpbram``, but it does not tell whether it found everything; here each slice must be there once.
In the text a block is 2,048 words of 9 bits, three hexadecimal digits each.
"""

import random
import re
from collections.abc import Iterator

import numpy as np

from tilewright.errors import Error

__all__ = ["ContentsError", "exchange", "random_contents"]

_SLICE_WORDS = 512

_BLOCK = re.compile(r"^(\.bram_init \d+\n)((?:[0-9a-f]{3}[ \n])+)", re.MULTILINE)

_USED_BITS = {1: 8, 2: 8, 4: 8, 9: 9, 18: 9, 36: 9}
"""Width of the words that a block is used with: bits that this uses of each of its 2,048 words of 9."""


class ContentsError(Error, ValueError):
    """The design has not the block RAM that was looked for."""


def random_contents(size: int, seed: int) -> bytes:
    """Return ``size`` bytes by which a memory can be found; the same ones for the same seed."""
    return random.Random(seed).randbytes(size)


def exchange(config: str, old: bytes, new: bytes, word_bytes: int) -> str:
    """Return a routed design with other contents in one memory.

    Parameters
    ----------
    config : str
        Text written by nextpnr-ecp5 (``--textcfg``).
    old : bytes
        Contents at synthesis, from `random_contents`: a multiple of 512 little-endian words.
    new : bytes
        As many others.
    word_bytes : int
        Width of a word.

    Raises
    ------
    ContentsError
        If a slice of ``old`` is not there exactly once.
    """
    if len(old) != len(new) or len(old) % (_SLICE_WORDS * word_bytes):
        raise ContentsError(f"Contents must be as many bytes, a multiple of {_SLICE_WORDS} words of {word_bytes}, "
                            f"not {len(old)} and {len(new)}")
    replacements = dict(zip(_slices_of_words(old, word_bytes), _slices_of_words(new, word_bytes), strict=True))
    found = dict.fromkeys(replacements, 0)

    def exchanged(match: re.Match[str]) -> str:
        block = np.array([int(word, 16) for word in match[2].split()])
        for width, used in _USED_BITS.items():
            slices = _slices_of_block(block, width, used)
            hits = [(row, key) for row in slices if (key := row.tobytes()) in replacements]
            for row, key in hits:
                row[:] = np.frombuffer(replacements[key], np.uint8)
                found[key] += 1
            if hits:
                return match[1] + _text(_block_of_slices(block, slices, width, used))
        return match[0]

    text = _BLOCK.sub(exchanged, config)
    if wrong := sum(times != 1 for times in found.values()):
        raise ContentsError(f"Routed design must have each of the {len(found)} slices of a memory once, and has not "
                            f"{wrong} of them")
    return text


def _slices_of_words(data: bytes, word_bytes: int) -> Iterator[bytes]:
    """Yield the slices of a memory, each 512 bytes of 0 or 1."""
    words = np.frombuffer(data, np.uint8).reshape(-1, word_bytes)
    bits = np.unpackbits(words, axis=1, bitorder="little")                            # (words, bits)
    for column in bits.T:
        for start in range(0, len(column), _SLICE_WORDS):
            yield column[start:start + _SLICE_WORDS].tobytes()


def _slices_of_block(block: np.ndarray, width: int, used: int) -> np.ndarray:
    """Return the slices, uint8 of shape (slices, 512), of a block that is used with words of ``width`` bits."""
    bits = (block[:, np.newaxis] >> np.arange(used) & 1).astype(np.uint8)             # (2048, used)
    return bits.reshape(-1, _SLICE_WORDS, width).transpose(0, 2, 1).reshape(-1, _SLICE_WORDS)


def _block_of_slices(block: np.ndarray, slices: np.ndarray, width: int, used: int) -> np.ndarray:
    """Return ``block`` with other slices; bits that are not used stay."""
    bits = slices.reshape(-1, width, _SLICE_WORDS).transpose(0, 2, 1).reshape(-1, used)
    return block >> used << used | bits.astype(np.int64) @ (1 << np.arange(used))


def _text(block: np.ndarray) -> str:
    """Return the words of a block as nextpnr writes them, eight a line."""
    return "".join(" ".join(f"{word:03x}" for word in line) + "\n" for line in block.reshape(-1, 8))
