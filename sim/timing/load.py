"""Timing of the load unit: a front that takes commands and requests words, and the data that follow."""

from dataclasses import dataclass

from tilewright.sim.timing.bursts import Strides, bursts_of
from tilewright.sim.timing.command_work import Padding, Runs, TransferWork, load_rows
from tilewright.sim.timing.dram_bus import Request
from tilewright.sim.timing.event_queue import Event, Fifo, Process
from tilewright.sim.timing.latencies import DECODE_GAP, FRONT_TO_BUS, SEGMENTS, WORD_TO_SIGNAL
from tilewright.sim.timing.ledger import Share
from tilewright.sim.timing.shared import DecodedCommand, Shared

__all__ = ["LoadTiming", "RequestedLoad"]


@dataclass(frozen=True, slots=True)
class RequestedLoad:
    """A command whose words have been requested, when its first burst left, and for DRAM the bursts."""

    taken: DecodedCommand
    move: TransferWork
    time: int
    request: Request | None = None


class LoadTiming:
    """Processes of the load unit (rtl/load/load.py)."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._asked: Fifo[RequestedLoad] = Fifo(shared.scheduler, 1 << 30, 0)
        self._ahead = 0                 # segments between front and data
        self._moved = Event()           # there are fewer of them
        self._share: Share | None = None    # of the command whose words cross the bus
        shared.scheduler.at(0, self._front())
        shared.scheduler.at(0, self._data())

    def count(self) -> None:
        """Count the events of the command under way in proportion to its progress."""
        bus, asked = self.shared.bus, self._asked.items[0][1] if self._asked.items else None
        if self._share is not None and asked is not None:
            words, request = asked.move.words, asked.request
            moved = words - bus.left(bus.read) if request is None else request.moved
            self.shared.ledger.count(self._share, moved, words)

    def _front(self) -> Process:
        shared = self.shared
        while True:
            yield from shared.head("load")
            taken = shared.take("load")
            if taken.sets:
                yield from shared.configure(taken)
                continue
            yield from shared.wait(taken, "act_free", "res_free", "wgt_free", "par_free", "mem_ready")
            shared.begin("load", taken)
            start, move = shared.now, self._move(taken)
            self._ahead += move.segments
            request = None
            if shared.dram is not None and move.words:
                request = self._request(taken, move, start + FRONT_TO_BUS)
                yield from shared.dram.read(request)
            yield from self._asked.put(RequestedLoad(taken, move, start + FRONT_TO_BUS, request))
            yield start + 1 + move.segments
            while self._ahead > max(SEGMENTS, move.segments):
                yield self._moved

    def _move(self, taken: DecodedCommand) -> TransferWork:
        bus, operands = self.shared.machine.bus_bytes, taken.operands
        if taken.mnemonic == "ldw":
            if taken.variant.startswith("coded_"):
                words = self.shared.config["ldw"]["words"]
                return TransferWork(words=words, cycles=max(words, taken.cycles) + DECODE_GAP, segments=1, lead=0,
                                    bytes=operands["steps"] * self.shared.machine.decoded_bytes)
            words = operands["words"]
            return TransferWork(words=words, cycles=words, segments=1, lead=0, bytes=words * bus)
        cfg = self.shared.config["lda"]
        padded = taken.variant != "residual"
        runs = Runs(operands.get("address", 0) % bus, operands["rows"], cfg["chunks"], cfg["chunk_bytes"],
                    cfg["memory_row_step"] % bus, cfg["memory_chunk_step"] % bus)
        padding = Padding(cfg["left"] * padded, cfg["right"] * padded, max(1, cfg["channels"]))
        return load_rows(runs, padding, blocked=taken.variant.endswith("blocked"),
                         fill=taken.variant.startswith("fill"), bus_bytes=bus,
                         written_bytes=self.shared.machine.written_bytes if padded else bus)

    def _request(self, taken: DecodedCommand, move: TransferWork, begin: int) -> Request:
        """Return the bursts of a command; its first one leaves at ``begin``."""
        bus, operands, cfg = self.shared.machine.bus_bytes, taken.operands, self.shared.config["lda"]
        address = operands.get("address", 0)
        if taken.mnemonic == "ldw":
            strides = Strides(address - address % bus, 1, 1, move.words * bus, 0, 0)
        else:
            strides = Strides(address, operands["rows"], cfg["chunks"], cfg["chunk_bytes"], cfg["memory_row_step"],
                              cfg["memory_chunk_step"])
        return Request(bursts=bursts_of(strides, bus), words=move.words, cycles=move.cycles,
                       runs=strides.rows * strides.chunks, segments=move.segments, begin=begin)

    def _data(self) -> Process:
        shared = self.shared
        while True:
            yield from self._asked.head()
            asked = self._asked.items[0][1]
            taken, move = asked.taken, asked.move
            target = {"ldw": "weight_written", "residual": "result_written"}.get(
                taken.mnemonic if taken.mnemonic == "ldw" else taken.variant, "activation_written")
            share = Share({"memory_read": move.words * shared.machine.bus_bytes, target: move.bytes})
            if move.words:
                if asked.request is None:
                    yield asked.time + max(move.lead, shared.timing.latency_cycles)
                shared.load_residual(taken.variant == "residual")
                shared.load_writes(move.cycles / move.words if target == "activation_written" else 0.0)
                self._share = share
                if asked.request is None:
                    yield shared.bus.move(shared.bus.read, move.words, self._least_cycles(move))
                else:
                    yield asked.request.done
                self._share = None
                shared.load_writes(0.0)
            else:
                yield asked.time
                yield shared.copies.move(shared.copies.read, move.cycles, move.cycles)
            self._asked.pop()
            self._ahead -= move.segments
            event, self._moved = self._moved, Event()
            shared.scheduler.fire(event, shared.now)
            shared.ledger.count(share, 1, 1)
            done = shared.now - 1 + WORD_TO_SIGNAL
            shared.signal(done, taken, "act_ready", "wgt_ready", "res_ready")
            shared.end("load", done, taken, move.words * shared.machine.bus_bytes)

    def _least_cycles(self, move: TransferWork) -> int:
        """Return the cycles of a command's data if the bus were free.

        A segment is under way for the latency of memory, and there are no more than SEGMENTS and one; padding before
        the first word and behind the last does not wait for memory.
        """
        rounds, last = divmod(move.waiting - 1, SEGMENTS + 1)
        trip = self.shared.timing.latency_cycles + FRONT_TO_BUS - 1
        return max(move.cycles, rounds * trip + move.cycles * (last + 1) // move.waiting)
