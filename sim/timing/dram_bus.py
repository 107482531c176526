"""DRAM as main memory in the cycle model: bursts from the coprocessor, the controller's choice, words back.

What the controller does is sim/verilator/harness/controller.h, burst by burst. Words still cross the bus as a fluid
(sim/timing/bus.py), one each way and cycle at most, as fast as the units give and take them.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.isa.dram.dram import Dram
from tilewright.sim.timing.bursts import OUTSTANDING, Burst
from tilewright.sim.timing.bus import Bus
from tilewright.sim.timing.dram_banks import DramBanks
from tilewright.sim.timing.event_queue import Event, EventQueue, Fifo, Process
from tilewright.sim.timing.latencies import SEGMENTS

__all__ = ["DramBus", "Request"]


@dataclass(slots=True)
class Request:
    """The bursts of a command.

    Attributes
    ----------
    bursts : iterable of Burst
    words, cycles : int
        Of all of them; least cycles that the unit takes for them.
    runs, segments : int
        How many there are; of a load, with the paddings that its front makes segments of too.
    begin : int
        When its first burst can leave, that of the next segment a cycle later.
    done : Event
        The cycle after its last word has crossed the bus.
    moved : int
        Words that have.
    """

    bursts: Iterable[Burst]
    words: int
    cycles: int
    runs: int = 1
    segments: int = 1
    begin: int = 0
    done: Event = field(default_factory=Event)
    moved: int = 0


@dataclass(slots=True)
class _Read:
    """A burst on its way: its request, the segments before its end, and when its words are there."""

    request: Request
    burst: Burst
    segment: int
    first: int = 0
    last: int = 0


class DramBus:
    """Reads and writes of bursts through a DRAM controller; ``bus`` carries the words."""

    def __init__(self, scheduler: EventQueue, dram: Dram, bus: Bus, bus_bytes: int) -> None:
        self.scheduler, self.bus, self.bus_bytes = scheduler, bus, bus_bytes
        self._numbers, self._response = dram.numbers(), dram.response_cycles
        self._banks = DramBanks(self._numbers)
        self._loads: Fifo[Request] = Fifo(scheduler, 1 << 30, 0)
        self._stores: Fifo[Request] = Fifo(scheduler, 1 << 30, 0)
        self._waiting_reads: deque[_Read] = deque()     # the controller has not served them
        self._waiting_writes: deque[Burst] = deque()
        self._served: Fifo[_Read] = Fifo(scheduler, 1 << 30, 0)
        self._read_out = self._write_out = 0            # bursts outstanding
        self._consumed = 0                              # segments whose data the load unit has
        self._buffered = 0                              # bytes in the controller's buffer
        self._draining = False
        self._deciding = -1                             # when the controller decides next, if later
        self._changed = Event()                         # a burst is through, or there is room
        scheduler.at(0, self._ask())
        scheduler.at(0, self._deliver())
        scheduler.at(0, self._send())

    def read(self, request: Request) -> Process:
        """Ask for the words of a load, behind those of earlier ones."""
        yield from self._loads.put(request)

    def write(self, request: Request) -> Process:
        """Send the words of a store, behind those of earlier ones."""
        yield from self._stores.put(request)

    # ---- the coprocessor's side

    def _ask(self) -> Process:
        """Play the load unit's front and the reader: a burst per cycle, while those outstanding allow."""
        scheduler, segments = self.scheduler, 0     # segments before this request
        while True:
            yield from self._loads.head()
            request = self._loads.pop()
            for burst in request.bursts:
                own = burst.run * request.segments // request.runs
                yield max(scheduler.now + 1, request.begin + own)
                while self._read_out >= OUTSTANDING or segments + own - self._consumed > SEGMENTS:
                    yield self._changed
                self._read_out += 1
                self._waiting_reads.append(_Read(request, burst, segments + own + 1))
                scheduler.at(scheduler.now + 1, self._decide)
            segments += request.segments

    def _deliver(self) -> Process:
        """Pass words from the controller to the load unit, in order."""
        while True:
            yield from self._served.head()
            read = self._served.pop()
            yield read.first
            request, before = read.request, read.request.moved
            yield self.bus.move(self.bus.read, read.burst.words, _share(request, before, read.burst.words))
            yield read.last + 1
            request.moved += read.burst.words
            self._read_out -= 1
            self._consumed = read.segment
            self._notify()
            if request.moved == request.words:
                self.scheduler.fire(request.done, self.scheduler.now)

    def _send(self) -> Process:
        """Pass words of stores into the controller's buffer, in order."""
        scheduler = self.scheduler
        while True:
            yield from self._stores.head()
            request = self._stores.pop()
            for burst in request.bursts:
                size = burst.words * self.bus_bytes
                while self._write_out >= OUTSTANDING or self._buffered + size > self._numbers.write_buffer_bytes:
                    yield self._changed
                self._write_out += 1
                self._buffered += size
                yield self.bus.move(self.bus.write, burst.words, _share(request, request.moved, burst.words))
                request.moved += burst.words
                self._waiting_writes.append(burst)
                scheduler.at(scheduler.now - 1 + self._response, self._respond)
                scheduler.at(scheduler.now, self._decide)
            scheduler.fire(request.done, scheduler.now)

    def _respond(self) -> None:
        self._write_out -= 1
        self._notify()

    def _notify(self) -> None:
        event, self._changed = self._changed, Event()
        self.scheduler.fire(event, self.scheduler.now)

    # ---- the controller

    def _decide(self) -> None:
        """Serve what can be decided upon now, and come back when the next can."""
        t, scheduler = self._numbers, self.scheduler
        while self._waiting_reads or self._waiting_writes:
            if self._banks.free_at > scheduler.now * t.period:
                when = -(-self._banks.free_at // t.period)
                if when != self._deciding:
                    self._deciding = when
                    scheduler.at(when, self._decide)
                return
            self._serve()

    def _serve(self) -> None:
        t, scheduler = self._numbers, self.scheduler
        now = scheduler.now * t.period
        full = 2 * self._buffered >= t.write_buffer_bytes
        self._draining = bool(self._waiting_writes) and (self._draining or full)
        if self._draining or not self._waiting_reads:
            burst = self._waiting_writes.popleft()
            size = burst.words * self.bus_bytes
            _, end = self._banks.serve(True, burst.address, size, now)
            scheduler.at(-(-end // t.period), lambda: self._leave(size))
            return
        read = self._waiting_reads.popleft()
        start, end = self._banks.serve(False, read.burst.address, read.burst.words * self.bus_bytes, now)
        read.first = -(-(start + t.access + t.controller) // t.period)
        read.last = -(-(end + t.controller) // t.period)
        scheduler.at(scheduler.now, self._served.put(read))

    def _leave(self, size: int) -> None:
        self._buffered -= size
        self._notify()


def _share(request: Request, before: int, words: int) -> int:
    """Return the cycles of ``words`` words behind ``before`` others: all together take those of the request."""
    cycles = max(request.cycles, request.words)
    return max(words, (before + words) * cycles // request.words - before * cycles // request.words)
