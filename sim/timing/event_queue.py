"""A small event-driven simulator: processes are generators that yield what they wait for.

A process yields a cycle (an ``int``: go on then) or an :class:`Event` (go on when it has happened). Time never goes
back; what happens in one cycle happens in the order in which it was asked for.
"""

import heapq
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["CountingSemaphore", "Event", "EventQueue", "Fifo", "Item", "Process"]

Process = Generator["int | Event", None, None]
Item = TypeVar("Item")


class Event:
    """Something that happens once, at a cycle that may be known ahead."""

    __slots__ = ("time", "waiting")

    def __init__(self) -> None:
        self.time: int | None = None
        self.waiting: list[Process] = []


class EventQueue:
    """Runs processes and callbacks in order of time; ``now`` is the cycle it has come to."""

    def __init__(self) -> None:
        self.now = 0
        self._queue: list[tuple[int, int, Callable[[], None] | Process]] = []
        self._count = 0

    def at(self, time: int, action: "Callable[[], None] | Process") -> None:
        """Call ``action``, or go on with it if it is a process, at ``time``."""
        self._count += 1
        heapq.heappush(self._queue, (max(time, self.now), self._count, action))

    def fire(self, event: Event, time: int) -> None:
        """Let ``event`` happen at ``time``, which may lie ahead."""
        event.time = time
        for process in event.waiting:
            self.at(time, process)
        event.waiting.clear()

    def run(self) -> None:
        """Run until nothing is left to do."""
        while self._queue:
            self.now, _, action = heapq.heappop(self._queue)
            if callable(action):
                action()
            else:
                self._resume(action)

    def _resume(self, process: Process) -> None:
        for wish in process:
            if isinstance(wish, Event):
                if wish.time is None:
                    wish.waiting.append(process)
                    return
                wish = wish.time
            if wish > self.now:
                self.at(wish, process)
                return


@dataclass
class CountingSemaphore:
    """Counts events; ``take`` returns an event that happens when there was one to take."""

    scheduler: EventQueue
    count: int = 0
    waiting: deque[Event] = field(default_factory=deque)

    def signal(self) -> None:
        """Add one."""
        if self.waiting:
            self.scheduler.fire(self.waiting.popleft(), self.scheduler.now)
        else:
            self.count += 1

    def take(self) -> Event:
        """Take one as soon as there is one."""
        event = Event()
        if self.count:
            self.count -= 1
            event.time = self.scheduler.now
        else:
            self.waiting.append(event)
        return event


class Fifo(Generic[Item]):
    """A bounded queue between processes; an item shows at the output ``latency`` cycles after it was put.

    ``yield from`` its methods: they wait.
    """

    def __init__(self, scheduler: EventQueue, depth: int, latency: int) -> None:
        self.scheduler = scheduler
        self.depth = depth
        self.latency = latency
        self.items: deque[tuple[int, Item]] = deque()
        self._changed = Event()

    def put(self, item: Item) -> Process:
        """Wait for room and add ``item``."""
        while len(self.items) >= self.depth:
            yield self._changed
        self.items.append((self.scheduler.now + self.latency, item))
        self._notify()

    def head(self) -> Process:
        """Wait until the oldest item shows at the output."""
        while not self.items:
            yield self._changed
        yield self.items[0][0]

    def pop(self) -> Item:
        """Remove the oldest item and return it; only after :meth:`head`."""
        item = self.items.popleft()[1]
        self._notify()
        return item

    def _notify(self) -> None:
        event, self._changed = self._changed, Event()
        self.scheduler.fire(event, self.scheduler.now)
