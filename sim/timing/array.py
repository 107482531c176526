"""Array and post-processing together: who waits for whom, tile group by tile group.

The array may be ``ring`` tile groups ahead of post-processing: it begins the last step of group j, in which the
sums leave, only when post-processing is done with group j - ring, or has begun with the very command of group j and
takes its sums as fast as they come. Post-processing begins a group when its sums have come through the array's
pipeline. With m and p the cycles of a group, and ends being the cycles after them:

    end[j]  = max(end[j-1] + m[j] - last[j], min(done[j-ring], begun)) + last[j]
    done[j] = max(done[j-1], end[j] + delay) + p[j]

Without a wait for the ring both are running sums and maxima over whole arrays; with one, a loop.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.sim.timing.event_queue import Event, EventQueue

__all__ = ["CoupledCommand", "Coupling"]

_Cycles = NDArray[np.int64]


@dataclass(slots=True)
class CoupledCommand:
    """A command's part in it: cycles of each group, of the array's last step in it; when it may begin.

    ``scheduled`` is called when its end becomes known, ahead of the end. ``drained`` is when the array knows that the
    sums leave as fast as they come, of a mac command that is not issued by then.
    """

    start: int
    cycles: _Cycles
    last: _Cycles | None = None
    scheduled: Callable[[], None] | None = None
    drained: int | None = None
    done: Event = field(default_factory=Event)
    position: int = 0
    integers: tuple[list[int], list[int]] | None = None

    def listed(self) -> tuple[list[int], list[int]]:
        """Return the cycles, and those of the last steps, as integers of Python, which are faster one by one."""
        if self.integers is None:
            self.integers = self.cycles.tolist(), [] if self.last is None else self.last.tolist()
        return self.integers


class Coupling:
    """Schedules the groups of mac commands and of the act commands that drain them, as far as both are known."""

    def __init__(self, scheduler: EventQueue, ring: int, delay: int) -> None:
        self.scheduler = scheduler
        self.ring = ring
        self.delay = delay
        self.macs: deque[CoupledCommand] = deque()
        self.posts: deque[CoupledCommand] = deque()
        self.ends: deque[int] = deque()       # of groups that are not drained yet
        self.released: deque[int] = deque([0] * ring, ring)  # when post-processing was done with the last groups
        self.mac_time = 0
        self.post_time = 0
        self._ahead = 0                       # commands begun by the array, less those begun by post-processing
        self._steady: int | None = None       # the array knows of its last command that its sums leave as they come

    def issue(self, start: int, cycles: _Cycles, last: _Cycles) -> Event:
        """Begin a mac command at ``start``; the event is the cycle after its last slot."""
        self._ahead += 1
        return self._add(self.macs, CoupledCommand(start, cycles, last, drained=None if self._ahead else self._steady))

    def hold(self, start: int, cycles: int) -> Event:
        """Begin one that keeps its sums in the array."""
        self.mac_time = max(self.mac_time, start) + cycles
        event = Event()
        self.scheduler.fire(event, self.mac_time)
        return event

    def drain(self, start: int, cycles: _Cycles, scheduled: Callable[[], None], steady: int | None = None) -> Event:
        """Begin an act command; the event is the cycle after its last request.

        From ``steady`` on the array knows that it takes sums as fast as they come.
        """
        self._ahead -= 1
        self._steady = steady
        if self._ahead == 0 and self.macs:
            self.macs[-1].drained = steady
        return self._add(self.posts, CoupledCommand(start, cycles, scheduled=scheduled))

    def _add(self, queue: deque[CoupledCommand], job: CoupledCommand) -> Event:
        queue.append(job)
        while self._whole() or self._groups():
            pass
        return job.done

    def _finish(self, queue: deque[CoupledCommand], time: int) -> None:
        job = queue.popleft()
        self.scheduler.fire(job.done, time)
        if job.scheduled is not None:
            self.scheduler.at(self.scheduler.now, job.scheduled)

    def _whole(self) -> bool:
        """Schedule a pair of commands at once if the array never waits for it; return whether that was so."""
        if self.ends or not (self.macs and self.posts) or self.macs[0].position or self.posts[0].position:
            return False
        mac, post = self.macs[0], self.posts[0]
        assert mac.last is not None
        if len(mac.cycles) < 2 * self.ring:
            return False
        ends = max(self.mac_time, mac.start) + np.cumsum(mac.cycles)
        drained = np.cumsum(post.cycles)
        ready = np.maximum(ends + self.delay - (drained - post.cycles), max(self.post_time, post.start))
        done = drained + np.maximum.accumulate(ready)
        freed = np.concatenate([np.array(self.released, np.int64), done[:-self.ring]])
        if (ends - mac.last < (freed if mac.drained is None else np.minimum(freed, mac.drained))).any():
            return False
        self.mac_time, self.post_time = int(ends[-1]), int(done[-1])
        self.released.extend(done[-self.ring:].tolist())
        self._finish(self.macs, self.mac_time)
        self._finish(self.posts, self.post_time)
        return True

    def _groups(self) -> bool:
        """Schedule group by group as far as possible; return whether that was any."""
        macs, posts, ends, ring = self.macs, self.posts, self.ends, self.ring
        moved = False
        while True:
            mac = macs[0] if macs else None
            count = len(ends)
            if mac is not None and (count < ring or mac.drained is not None):
                cycles, lasts = mac.listed()
                last = lasts[mac.position]
                begin = max(self.mac_time, mac.start) + cycles[mac.position] - last
                # The group that must be gone is the ring-th before this one; the oldest undrained are in `ends`.
                gone, drained = self.released[count] if count < ring else None, mac.drained
                if gone is None or (drained is not None and drained < gone):
                    gone = drained
                assert gone is not None
                self.mac_time = (begin if begin > gone else gone) + last
                ends.append(self.mac_time)
                mac.position += 1
                if mac.position == len(mac.cycles):
                    self._finish(macs, self.mac_time)
            elif posts and ends:
                post = posts[0]
                ready = max(self.post_time, post.start, ends.popleft() + self.delay)
                self.post_time = ready + post.listed()[0][post.position]
                self.released.append(self.post_time)
                post.position += 1
                if post.position == len(post.cycles):
                    self._finish(posts, self.post_time)
            else:
                return moved
            moved = True
