"""Ranges of layers: written as A:B, and chosen so that all take about the same time."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import InputError

__all__ = ["LayerRange", "balance", "parse_range"]


@dataclass(frozen=True, slots=True)
class LayerRange:
    """The layers from ``first`` up to, not including, ``stop``."""

    first: int
    stop: int

    def __str__(self) -> str:
        return f"{self.first}:{self.stop}"


def parse_range(text: str, layers: int) -> LayerRange:
    """Return the range of layers that ``text``, A:B, names in a network of ``layers``; A or B may be left out.

    Raises
    ------
    InputError
        If it names none.
    """
    first, colon, stop = text.partition(":")
    numbers = [word or default for word, default in ((first, "0"), (stop, str(layers)))]
    if colon and all(number.isascii() and number.isdigit() for number in numbers):
        found = LayerRange(*map(int, numbers))
        if found.first < found.stop <= layers:
            return found
    raise InputError(f"Layers must be A:B with 0 <= A < B <= {layers}, the number of layers, not {text!r}")


def balance(chosen: LayerRange, cycles: Sequence[int], most: int) -> list[LayerRange]:
    """Cut ``chosen`` into at most ``most`` ranges, so that the longest takes as few of the predicted cycles as can be.

    Parameters
    ----------
    cycles : sequence of int
        Predicted cycles of every layer of the network.
    """
    own = cycles[chosen.first:chosen.stop]
    low, high = max(own), sum(own)
    while low < high:
        limit = (low + high) // 2
        low, high = (low, limit) if len(_fill(own, limit)) <= most else (limit + 1, high)
    borders = [chosen.first + start for start in _fill(own, low)]
    return [LayerRange(*pair) for pair in zip(borders, [*borders[1:], chosen.stop], strict=True)]


def _fill(cycles: Sequence[int], limit: int) -> list[int]:
    """Return where ranges begin if each takes as many layers as ``limit`` cycles allow."""
    starts, used = [0], 0
    for index, each in enumerate(cycles):
        if used + each > limit and index > starts[-1]:
            starts.append(index)
            used = 0
        used += each
    return starts
