"""The memory bus as a fluid: one stream of words read and one of words written share its rate.

While both want words, each gets half of the rate, and what one does not want goes to the other: words alternate
(sim/verilator/harness/axi.h). Between changes of the streams their rates are constant, so a transfer of any length
costs two events.

The same serves for the copies from the result buffer to the activation buffer, which have no bus to share, but a port
with what loads write: padding, which is its other stream, and words, whose share of the port `Shared` takes off the
limit of the copies. Both go first (rtl/buffers/activation_port.py).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.sim.timing.event_queue import Event, EventQueue

__all__ = ["Bus", "Stream", "Transfer"]


def _ignored() -> None:
    pass


@dataclass(slots=True)
class Transfer:
    """``words`` to be moved, no faster than ``demand`` words a cycle."""

    words: float
    demand: float
    done: Event


class Stream:
    """Transfers of one direction, one after the other.

    ``limit`` is the most words a cycle that the other end of the stream can give or take.
    """

    def __init__(self, limit: float) -> None:
        self.waiting: deque[Transfer] = deque()
        self.rate = 0.0
        self.limit = limit

    @property
    def wanted(self) -> float:
        """Words a cycle that would move if the stream were alone."""
        return min(self.waiting[0].demand, self.limit) if self.waiting else 0.0


class Bus:
    """``rate`` words a cycle for reads and writes together, at most ``flow`` of each; or writes have what is left.

    ``read_rate_changed`` is called when reads move faster or slower than before.
    """

    def __init__(self, scheduler: EventQueue, rate: float, flow: float = 1.0, *, reads_first: bool = False) -> None:
        self.scheduler = scheduler
        self.rate = rate
        self.flow = flow
        self.reads_first = reads_first
        self.read, self.write = Stream(flow), Stream(flow)
        self.read_rate_changed: Callable[[], None] = _ignored
        self._settled = 0
        self._version = 0

    def move(self, stream: Stream, words: int, cycles: int) -> Event:
        """Move ``words`` in at least ``cycles`` cycles, behind the stream's earlier ones.

        Returns the event of the cycle after the last word.
        """
        self._settle()
        transfer = Transfer(float(words), min(1.0, words / cycles), Event())
        stream.waiting.append(transfer)
        self._share()
        return transfer.done

    def left(self, stream: Stream) -> int:
        """Return the words of the stream's oldest transfer that have not moved yet."""
        self._settle()
        self._share()
        return round(stream.waiting[0].words) if stream.waiting else 0

    def limit(self, stream: Stream, limit: float) -> None:
        """Let ``stream`` move at most ``limit`` words a cycle from now on, and no more than ``flow``."""
        limit = min(limit, self.flow)
        if limit != stream.limit:
            self._settle()
            stream.limit = limit
            self._share()

    def _settle(self) -> None:
        """Bring the transfers up to now."""
        now = self.scheduler.now
        passed, self._settled = now - self._settled, now
        for stream in (self.read, self.write):
            if stream.waiting:
                stream.waiting[0].words -= passed * stream.rate
                if stream.waiting[0].words < 1e-6:
                    self.scheduler.fire(stream.waiting.popleft().done, now)

    def _share(self) -> None:
        """Share the rate among the streams, and come back when the first of them is through."""
        read, write, half = self.read.wanted, self.write.wanted, self.rate / 2
        if self.reads_first:
            half, write = 0.0, min(write, self.rate - read)
        before, self.read.rate = self.read.rate, min(read, max(half, self.rate - write))
        self.write.rate = min(write, max(half, self.rate - read))
        self._version += 1
        version = self._version
        left = [stream.waiting[0].words / stream.rate for stream in (self.read, self.write)
                if stream.waiting and stream.rate]
        if left:
            self.scheduler.at(self.scheduler.now + max(1, -int(-min(left) // 1)), lambda: self._tick(version))
        if self.read.rate != before:
            self.read_rate_changed()

    def _tick(self, version: int) -> None:
        if version == self._version:
            self._settle()
            self._share()
