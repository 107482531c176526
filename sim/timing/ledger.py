"""The coprocessor's counters in the cycle model: cycles by cause as time passes, and events as they are reported."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.counters import COUNTERS, CYCLES_HIGH_WORD, RECORD_WORDS
from tilewright.sim.timing.event_queue import EventQueue

__all__ = ["IDLE", "Ledger", "Share"]

IDLE = "idle"
_ACTIVE = "mac_issue"
_UNITS = ("load", "post", "store")


@dataclass(slots=True)
class Share:
    """Events of a command under way, counted in proportion to its progress."""

    totals: Mapping[str, int]
    counted: dict[str, int] = field(default_factory=dict)


class Ledger:
    """Counts cycles by the state of the array and of the units; every change of a state is told when it happens."""

    def __init__(self, scheduler: EventQueue) -> None:
        self.scheduler = scheduler
        self.counts: Counter[str] = Counter()
        self.state = IDLE
        self.busy = dict.fromkeys(_UNITS, 0)
        self._since = 0
        self._first = self._begun = 0   # of the command that issues: its first cycle, and the first not counted yet
        self._slots = 0                 # of its slots, those in all and those counted
        self._counted = 0
        self._events = Share({})

    def count(self, share: Share, part: int, whole: int) -> None:
        """Count the events of a command of which ``part`` of ``whole`` is done."""
        for name, total in share.totals.items():
            here = total * part // whole
            self.counts[name] += here - share.counted.get(name, 0)
            share.counted[name] = here

    def pass_time(self) -> None:
        """Count the cycles since the last change."""
        now = self.scheduler.now
        passed, self._since = now - self._since, now
        for unit in _UNITS:
            if self.busy[unit]:
                self.counts[f"{unit}_busy"] += passed
        if self.state == IDLE:
            behind = self.busy["post"] or self.busy["store"]
            cause = "mac_idle_post" if behind else "mac_idle_load" if self.busy["load"] else "mac_idle_host"
            self.counts[cause] += passed
        elif self.state != _ACTIVE:
            self.counts[self.state] += passed

    def enter(self, state: str) -> None:
        """Let the array be in ``state``: a ``mac_*`` counter, or idle."""
        self.pass_time()
        self.state = state

    def work(self, unit: str, change: int) -> None:
        """Let ``unit`` have one command more or less under way."""
        self.pass_time()
        self.busy[unit] += change

    def begin(self, slots: int, events: Mapping[str, int]) -> None:
        """Let a command of ``slots`` slots, with ``events`` in all, begin to issue."""
        self.enter(_ACTIVE)
        self._events = Share(events)
        self._first = self._begun = self.scheduler.now
        self._slots, self._counted = slots, 0

    def end(self, state: str) -> None:
        """Let it have issued its last slot."""
        self._split(self._slots)
        self.enter(state)

    def _split(self, slots: int) -> None:
        """Count ``slots`` of the running command's slots so far, its other cycles so far as waiting."""
        now = self.scheduler.now
        issued = min(slots - self._counted, now - self._begun)
        self.counts[_ACTIVE] += issued
        self.counts["mac_wait_post"] += now - self._begun - issued
        self._counted += issued
        self._begun = now
        self.count(self._events, self._counted, self._slots)

    def record(self, end: int | None) -> NDArray[np.uint32]:
        """Return the words that sta.status stores now.

        ``end`` is when the command that issues will have issued its last slot, if that is known.
        """
        self.pass_time()
        now = self.scheduler.now
        if self.state == _ACTIVE:
            whole = max(now + 1, end if end is not None else now + 1) - self._first
            self._split(max(self._counted, self._slots * (now - self._first) // whole))
        words = np.zeros(RECORD_WORDS, np.uint32)
        for index, counter in enumerate(COUNTERS):
            count = now if counter.name == "cycles" else self.counts[counter.name]
            words[index] = count & 0xFFFF_FFFF
        words[CYCLES_HIGH_WORD] = now >> 32
        return words
