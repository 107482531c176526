"""Times of single commands: when each was requested, queued, taken, started and ended, predicted or measured."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["CallTime", "CommandTimes", "Traffic"]


@dataclass(frozen=True, slots=True)
class CallTime:
    """An operator that the host core computed itself: the function it belongs to, its kernel, its first cycle, its end.

    ``before`` is the number of the command that the core sent next.
    """

    function: int
    kernel: str
    begin: int
    end: int
    before: int = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that have crossed the bus of main memory in each ``interval`` of cycles: read, and written."""

    interval: int
    read: NDArray[np.int64]
    written: NDArray[np.int64]


@dataclass(slots=True)
class CommandTimes:
    """Cycles of the commands of a run, each list by a command's number in the order in which the core sends them.

    Attributes
    ----------
    functions : list of int
        Function of the program that each command belongs to.
    asked, sent, taken : list of int
        When the core offered it, when its unit's queue had room for it, when the unit took it from there. A fence is
        sent when it is passed.
    begun, ended : list of int
        When the unit began to work on it, its semaphores being there, and when its result was there. Both are equal
        for commands that only set something.
    moved : list of int
        Bytes that it moved over the bus of main memory; empty if the times are measured.
    calls : list of CallTime
        Calls that the host core computed itself.
    measured : bool
        Whether these are the cycles of the hardware in RTL, not those of the cycle model.
    traffic : Traffic or None
        Bytes on the bus over time, if the times are measured.
    """

    functions: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    calls: list[CallTime] = field(default_factory=list)
    measured: bool = False
    traffic: Traffic | None = None

    def ask(self, time: int) -> int:
        """Note that the core offers a command; return its number."""
        for each in (self.asked, self.sent, self.taken, self.begun, self.ended):
            each.append(time)
        self.moved.append(0)
        return len(self.asked) - 1

    def send(self, number: int, time: int) -> None:
        """Note that it is in its unit's queue."""
        self.sent[number] = time

    def take(self, number: int, time: int) -> None:
        """Note that its unit has taken it; a command that only sets something is done by that."""
        self.taken[number] = self.begun[number] = self.ended[number] = time

    def begin(self, number: int, time: int) -> None:
        """Note that its unit begins to work on it."""
        self.begun[number] = time

    def end(self, number: int, time: int, moved: int = 0) -> None:
        """Note that its result is there, and the bytes that crossed the bus for it."""
        self.ended[number] = time
        self.moved[number] = moved
