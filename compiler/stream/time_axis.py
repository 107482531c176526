"""The time axis of a tensor: how the elements of a stream relate to those of a window; and why there is none."""

from dataclasses import dataclass

from tilewright.errors import Error, InputError

__all__ = ["CoarserFrames", "StreamError", "TimeAxis"]


class StreamError(InputError):
    """A network cannot be computed frame by frame; the message names the node and says why."""

    def __init__(self, node: str, reason: str, way_out: str = "") -> None:
        super().__init__(f"Option --stream needs a network that reads no frame before it is there, and node {node!r} "
                         f"{reason}{'; ' + way_out if way_out else ''}")
        self.node = node


class CoarserFrames(Error):
    """A stride needs so many times as many new frames in each call."""

    def __init__(self, factor: int) -> None:
        super().__init__(factor)
        self.factor = factor


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The axis of a tensor along which its elements arrive.

    Attributes
    ----------
    axis : int
    length : int
        Elements in a window.
    hop : int
        New elements in each call of the stream.
    lead : int
        Elements of the stream before the first of the window: what layers make of the start of the state. Less than 0:
        so many zeros begin the window, and the stream has them only as the start of its state.
    """

    axis: int
    length: int
    hop: int
    lead: int = 0
