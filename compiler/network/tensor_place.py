"""A tensor's place in a larger one, among plain bytes, and among the channels that it has in the model."""

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["AbsentChannels", "ByteSteps", "Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A tensor's place inside a larger one: element (c, y, x) at ``offset + y * row_step + x * pixel_step + c``.

    Bytes from the first of ``parent``, which itself lies in no other. So concatenation, splitting and interleaving of
    tensors are a matter of addresses. Of several images each lies ``image_step`` bytes behind the one before; 0 where
    that is the step of their rows too.
    """

    parent: str
    offset: int
    row_step: int
    pixel_step: int
    image_step: int = 0


@dataclass(frozen=True, slots=True)
class ByteSteps:
    """An image's place among a tensor's bytes without gaps: its first byte, and steps of rows and pixels."""

    offset: int
    row: int
    pixel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentChannels:
    """Channels of the model's tensor that are not in memory: constant, or read by nothing (`compiler.channels`).

    The tensor has ``channels``, of which those in memory are ``kept``, and would lie at ``place``. ``values`` are the
    levels of the others in order; None if some of these vary. Of a part of a larger tensor all may be in memory.
    """

    channels: int
    kept: tuple[int, ...]
    values: tuple[int, ...] | None
    place: Place | None = None

    def filled_in(self, stored: np.ndarray) -> np.ndarray:
        """Return int8 (channels, height, width) of what is in memory, (len(kept), height, width), and the constants."""
        if self.values is None:
            raise ValueError("Absent channels must be constant to be filled in, and some vary")
        found = np.empty((self.channels, *stored.shape[1:]), stored.dtype)
        kept = np.isin(np.arange(self.channels), self.kept)
        found[kept] = stored
        found[~kept] = np.array(self.values, stored.dtype).reshape(-1, 1, 1)
        return found

    def part(self, first: int, stop: int, place: Place) -> "AbsentChannels":
        """Return those of a part with the channels from ``first`` to before ``stop`` of what is in memory.

        In the model the part begins at the first of these and ends at the last; ``place`` is that of the whole there.
        """
        kept = self.kept[first:stop]
        start, end = kept[0], kept[-1] + 1
        gone = sorted(set(range(self.channels)) - set(self.kept))
        values = None if self.values is None else tuple(
            value for channel, value in zip(gone, self.values, strict=True) if start <= channel < end)
        return AbsentChannels(channels=end - start, kept=tuple(each - start for each in kept), values=values,
                              place=replace(place, offset=place.offset + start))
