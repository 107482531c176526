"""Timing of the store unit: words from the result buffer to memory or the activation buffer, and status records."""

from collections.abc import Callable

from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.sim.timing.bursts import OUTSTANDING, Strides, bursts_of
from tilewright.sim.timing.bus import Bus
from tilewright.sim.timing.command_work import Runs, TransferWork, store_rows
from tilewright.sim.timing.dram_bus import Request
from tilewright.sim.timing.event_queue import Event, Process
from tilewright.sim.timing.latencies import (
    BURST_TO_ROOM,
    READ_TO_BUS,
    READ_TO_LOCAL,
    READ_TO_SIGNAL,
    RECORD_MARGIN,
    RECORD_TO_WALK,
    RUNS_AHEAD,
    STORE_TO_BUS,
    STORE_WORDS,
    WALK_CYCLES,
    WALK_INTERVAL,
    WALK_TO_BUS,
)
from tilewright.sim.timing.shared import DecodedCommand, Shared

__all__ = ["StoreTiming"]


class StoreTiming:
    """Processes of the store unit (rtl/store/store.py).

    ``record`` is called with the address when the snapshot for a status record is taken.
    """

    def __init__(self, shared: Shared, record: Callable[[int], None]) -> None:
        self.shared = shared
        self.record = record
        self.words_written = 0
        self.settles = 0                # when memory has acknowledged all words, and the buffer has them
        self._last = Event()            # the words of the last store are all sent
        self._last.time = 0
        self._walk = 0                  # when the counters began a walk
        self._ahead = 0                 # runs between the front and the reader
        self._read_on = Event()         # there are fewer of them
        self._target = "memory"         # of those words
        self._read = self._other_read = self._last  # they, and the last before them for elsewhere, have left the queue
        shared.scheduler.at(0, self._commands())

    def _commands(self) -> Process:
        shared = self.shared
        while True:
            yield from shared.head("store")
            taken = shared.take("store")
            if taken.sets:
                yield from shared.configure(taken)
                continue
            yield from shared.wait(taken, "out_ready")
            shared.begin("store", taken)
            if taken.variant == "status":
                yield from self._status(taken)
                continue
            start, move, self._last = shared.now, self._move(taken), Event()
            self._ahead += move.segments
            words = self._to_memory if taken.variant == "memory" else self._to_buffer
            # All words pass one queue: those for another place come behind.
            target = "memory" if taken.variant == "memory" else "buffer"
            if target != self._target:
                self._target, self._other_read = target, self._read
            self._read = Event()
            shared.scheduler.at(start, words(taken, move, start, self._last, self._other_read, self._read))
            yield start + 1 + move.segments
            while self._ahead > RUNS_AHEAD:
                yield self._read_on
            if "signal_mem_ready" in taken.flags:
                yield from self._settled()
                shared.signal(shared.now + 1, taken, "mem_ready")
                yield shared.now + 1

    def _move(self, taken: DecodedCommand) -> TransferWork:
        bus, cfg = self.shared.machine.bus_bytes, self.shared.config["sta"]
        runs = Runs(taken.operands.get("address", 0) % bus, taken.operands["rows"], cfg["chunks"], cfg["chunk_bytes"],
                    cfg["target_row_step"] % bus, cfg["target_chunk_step"] % bus)
        return store_rows(runs, to_memory=taken.variant == "memory", bus_bytes=bus,
                          written_bytes=self.shared.machine.written_bytes)

    def _to_memory(self, taken: DecodedCommand, move: TransferWork, start: int, done: Event, before: Event,
                   gone: Event) -> Process:
        shared = self.shared
        yield start + STORE_TO_BUS
        yield before
        start = max(start, shared.now - STORE_TO_BUS)
        least = self._least_cycles(move)
        if shared.dram is None:
            yield from self._pass(shared.bus, move, least)
        else:
            yield from self._cross(self._strides(taken), move.words, least)
            self._have_read(move.segments)
        shared.ledger.counts["result_read"] += move.words * shared.machine.bus_bytes
        # If the bus held them up, the reads were ahead of it by what the queue holds.
        read = max(start + STORE_TO_BUS - READ_TO_BUS + move.words, shared.now - STORE_WORDS)
        shared.signal(read - 1 + READ_TO_SIGNAL, taken, "out_free", "res_free")
        shared.scheduler.fire(gone, shared.now)
        self._sent(taken, move, done)

    def _pass(self, port: Bus, move: TransferWork, cycles: int) -> Process:
        """Send a command's words through ``port``, in ``cycles`` cycles at least; go on in the cycle after the last.

        Its reader is ahead by the words of the queue, its front by some runs more: from then on the front is free.
        """
        runs = max(0, move.segments - RUNS_AHEAD) or move.segments
        first = max(0, move.words * runs // move.segments - STORE_WORDS)
        ahead = port.move(port.write, first, -(-cycles * first // move.words)) if first else None
        done = port.move(port.write, move.words - first, cycles - cycles * first // move.words)
        if ahead is not None:
            yield ahead
        self._have_read(move.segments)
        yield done

    def _have_read(self, runs: int) -> None:
        self._ahead -= runs
        event, self._read_on = self._read_on, Event()
        self.shared.scheduler.fire(event, self.shared.now)

    def _least_cycles(self, move: TransferWork) -> int:
        """Return the cycles of a command's words if the bus were free.

        Each run is a burst of its own, which is under way until its response, and there are no more than OUTSTANDING.
        """
        rounds, last = divmod(move.segments - 1, OUTSTANDING)
        trip = self.shared.timing.latency_cycles + BURST_TO_ROOM
        return max(move.cycles, rounds * trip + move.cycles * (last + 1) // move.segments)

    def _strides(self, taken: DecodedCommand) -> Strides:
        cfg = self.shared.config["sta"]
        return Strides(taken.operands.get("address", 0), taken.operands["rows"], cfg["chunks"], cfg["chunk_bytes"],
                       cfg["target_row_step"], cfg["target_chunk_step"])

    def _cross(self, strides: Strides, words: int, cycles: int) -> Process:
        """Send ``words`` words over the bus, in ``cycles`` cycles at least; go on in the cycle after the last."""
        shared = self.shared
        if shared.dram is None:
            yield shared.bus.move(shared.bus.write, words, cycles)
            return
        request = Request(bursts=bursts_of(strides, shared.machine.bus_bytes), words=words, cycles=cycles)
        yield from shared.dram.write(request)
        yield request.done

    def _to_buffer(self, taken: DecodedCommand, move: TransferWork, start: int, done: Event, before: Event,
                   gone: Event) -> Process:
        shared, counts = self.shared, self.shared.ledger.counts
        yield start + STORE_TO_BUS - READ_TO_BUS
        yield before
        yield from self._pass(shared.copies, move, move.cycles)
        counts["activation_written"] += move.bytes
        counts["result_read"] += move.words * shared.machine.bus_bytes
        shared.scheduler.fire(gone, shared.now)
        written = shared.now - 1 + READ_TO_LOCAL
        shared.signal(shared.now - 1 + READ_TO_SIGNAL, taken, "out_free", "res_free")
        shared.signal(written, taken, "act_ready")
        self.settles = max(self.settles, written)
        shared.scheduler.fire(done, written)
        shared.end("store", written, taken)

    def _sent(self, taken: DecodedCommand, move: TransferWork, done: Event) -> None:
        """Note that the words of a command have crossed the bus."""
        shared = self.shared
        shared.ledger.counts["memory_written"] += move.bytes
        self.words_written += move.words
        self.settles = max(self.settles, shared.now + shared.response_cycles)
        shared.scheduler.fire(done, shared.now)
        shared.end("store", shared.now, taken, move.bytes)

    def _settled(self) -> Process:
        """Wait until every store is complete and acknowledged."""
        yield self._last
        yield max(self.settles, self.shared.now + 1)

    def _status(self, taken: DecodedCommand) -> Process:
        yield from self._settled()
        yield self._walk_begins(self.shared.now + RECORD_TO_WALK)
        self.record(taken.operands["address"])
        self._last = Event()
        self.shared.scheduler.at(self.shared.now, self._record_words(taken, self.shared.now, self._last))
        yield self.shared.now + 1

    def _walk_begins(self, asked: int) -> int:
        """Return when the walk begins that is asked for in cycle ``asked``: behind one that is under way."""
        since = (asked - self._walk) % WALK_INTERVAL
        self._walk = asked if since == 0 or since >= WALK_CYCLES else asked - since + WALK_CYCLES
        return self._walk

    def _record_words(self, taken: DecodedCommand, start: int, done: Event) -> Process:
        size = 4 * RECORD_WORDS
        each = self.shared.machine.bus_bytes // 4       # counters per word; they come one per cycle
        words, counted = size // (4 * each), -(-len(COUNTERS) // each)
        yield start + WALK_TO_BUS + RECORD_MARGIN + each
        strides = Strides(taken.operands["address"], 1, 1, size, 0, 0)
        yield from self._cross(strides, words, each * (counted - 1) + 1 + words - counted)
        self._sent(taken, TransferWork(words=words, cycles=words, segments=1, lead=0, bytes=size), done)
