"""Models of what the load and the store unit are joined to: memory, semaphores, buffers; and checks of both.

A driver acts once per clock cycle. It keeps to the cycle before what it sees, and to the next what it sets, so that
it serves both simulators: that of Amaranth and cocotb's.
"""

import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from tests.support.load_store import BUFFER_BYTES, MEMORY_BYTES, LoadReference, StoreReference, pack, write_places
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.coded.weight_code import WeightCode
from tilewright.isa.counters import COUNTERS, FAULT_WORD
from tilewright.rtl.buffers.result_buffer import ResultBuffer

MEMORY_LATENCY = 20
STORE_HALF = BUFFER_BYTES // 2  # the units write different halves of the activation buffer


class Wires(Protocol):
    """The ports of the simulated component, by their names in Verilog."""

    def get(self, name: str) -> int:
        """Return what ``name`` was just before the clock edge."""

    def set(self, name: str, value: int) -> None:
        """Drive ``name`` from now on."""


class Ports:
    """The ports of one unit by name; keeps what was driven, so that nothing is set twice."""

    def __init__(self, wires: Wires, prefix: str) -> None:
        self.wires, self.prefix = wires, prefix
        self.driven: dict[str, int] = {}

    def set(self, name: str, value: int) -> None:
        if self.driven.get(name) != value:
            self.wires.set(f"{self.prefix}__{name}", value)
            self.driven[name] = value

    def get(self, name: str) -> int:
        return self.wires.get(f"{self.prefix}__{name}")

    def passes(self, stream: str, *, into: bool) -> bool:
        """Whether a payload passed at the clock edge; ``into`` the unit, or out of it."""
        ours, theirs = ("valid", "ready") if into else ("ready", "valid")
        return bool(self.driven.get(f"{stream}__{ours}", 0) and self.get(f"{stream}__{theirs}"))


class Semaphores:
    """Those a unit waits for: one more comes up at random, and is taken only when it is there."""

    def __init__(self, ports: Ports, names: tuple[str, ...], rng: random.Random, stall: float) -> None:
        self.ports, self.names, self.rng, self.stall = ports, names, rng, stall
        self.counts = Counter()
        self.taken = Counter()

    def cycle(self) -> None:
        for name in self.names:
            if self.ports.get(f"{name}_take"):
                assert self.counts[name] > 0, f"{name} was taken without being available"
                self.counts[name] -= 1
                self.taken[name] += 1
            if self.rng.random() >= self.stall:
                self.counts[name] += 1
            self.ports.set(f"{name}_available", self.counts[name] > 0)


class Driver:
    """Common part of both units: commands in order, random stalls, checks of signals against progress."""

    def __init__(self, wires: Wires, prefix: str, commands: list[EncodedCommand], waits: tuple[str, ...],
                 signals: tuple[str, ...], stall: float, seed: int) -> None:
        self.rng = random.Random(seed)
        self.stall = stall
        self.ports = Ports(wires, prefix)
        self.activation_write = Ports(wires, "activation_write")
        self.commands = commands
        self.sent = 0
        self.semaphores = Semaphores(self.ports, waits, self.rng, stall)
        self.expected_signals = {name: [] for name in signals}
        self.expected_taken = Counter()
        for index, each in enumerate(commands):
            for flag in each.flags:
                action, _, name = flag.partition("_")
                if action == "wait":
                    self.expected_taken[name] += 1
                else:
                    self.expected_signals[name].append(index)
        self.seen_signals = Counter()
        self.cycles = 0
        self.is_halted = False
        self.ports.set("halt", 0)
        self.ports.set("commands__valid", 0)

    def willing(self, stall: float | None = None) -> bool:
        return self.rng.random() >= (self.stall if stall is None else stall)

    def offer_commands(self) -> None:
        if self.ports.passes("commands", into=True):
            self.sent += 1
            self.ports.set("commands__valid", 0)
        if self.sent < len(self.commands) and (self.ports.driven["commands__valid"] or self.willing()):
            self.ports.set("commands__payload", pack(self.commands[self.sent]))
            self.ports.set("commands__valid", 1)

    def watch_signals(self, done: Callable[[str, int], bool]) -> None:
        """Assert that ``done(semaphore, index of the command)`` holds for every signal seen."""
        for name, indices in self.expected_signals.items():
            if self.ports.get(f"{name}_signal"):
                assert self.seen_signals[name] < len(indices), f"{name} was signalled too often"
                index = indices[self.seen_signals[name]]
                assert done(name, index), f"{name} was signalled before {self.commands[index]} was complete"
                self.seen_signals[name] += 1

    def halt(self) -> None:
        """Raise ``halt``; from then on requests stay where they are, as in `tilewright.rtl.port.window_check`."""
        self.is_halted = True
        self.ports.set("halt", 1)

    def takes_requests(self) -> bool:
        return not self.is_halted and self.willing()

    def finished(self) -> bool:
        return self.sent == len(self.commands) and not self.ports.get("busy")

    def check_end(self) -> None:
        assert {name: self.seen_signals[name] for name in self.expected_signals} == \
            {name: len(indices) for name, indices in self.expected_signals.items()}
        assert self.semaphores.taken == self.expected_taken


class LoadDriver(Driver):
    """Memory and buffers round the load unit, and what they should hold in the end."""

    WAITS = ("act_free", "res_free", "wgt_free", "par_free", "mem_ready")
    SIGNALS = ("act_ready", "res_ready", "wgt_ready")

    def __init__(self, wires: Wires, bus_bytes: int, commands: list[EncodedCommand], activations: bytearray, *,
                 stall: float = 0.0, seed: int = 0, code: WeightCode | None = None) -> None:
        super().__init__(wires, "load", commands, self.WAITS, self.SIGNALS, stall, seed)
        self.bus_bytes = bus_bytes
        self.memory = self.rng.randbytes(MEMORY_BYTES)
        self.activations = activations  # written by both units
        self.residuals = bytearray(BUFFER_BYTES)
        self.words: dict[tuple[str, int], bytes] = {}
        self.code = code    # of a load unit that decodes weights
        self.reference = LoadReference(bus_bytes, self.memory, code)
        self.requests: deque[tuple[int, int, int]] = deque()  # and the command each belongs to
        # What has been written when each command is complete, and of it to the result buffer, by a queue of its own.
        self.total_written: list[int] = []
        self.total_residuals: list[int] = []
        written = residuals = 0
        for each in commands:
            self.reference.execute(each)
            self.requests += [(*asked, len(self.total_written)) for asked in self.reference.requests]
            written += self.reference.written
            residuals += self.reference.written * (each.variant.name == "residual")
            self.total_written.append(written)
            self.total_residuals.append(residuals)
        self.words_due: deque[tuple[int, int]] = deque()  # (cycle, payload)
        self.written = self.counted = self.residual_bytes = 0
        self.beats: list[int] = []   # the cycle of each word of memory
        self.writes: list[int] = []  # the cycle of each write
        self.first_request: int | None = None
        for name in ("read_data__valid", "read_request__ready", "residual_write__ready"):
            self.ports.set(name, 0)

    def cycle(self) -> None:
        """Look at the clock edge that was, and drive the ports up to the next."""
        self.watch_signals(self._is_done)
        self._take_writes()
        self.offer_commands()
        self._answer_requests()
        self.semaphores.cycle()
        self.ports.set("residual_write__ready", self.willing())
        self.cycles += 1

    def _is_done(self, semaphore: str, index: int) -> bool:
        """Residuals may come after what was loaded behind them, never the other way round."""
        elsewhere = self.written - self.residual_bytes >= self.total_written[index] - self.total_residuals[index]
        return elsewhere and (semaphore != "res_ready" or self.residual_bytes >= self.total_residuals[index])

    def _answer_requests(self) -> None:
        if self.ports.passes("read_request", into=False):
            payload = self.ports.get("read_request__payload")
            address, beats = payload & 0xFFFFFFFF, payload >> 32
            self.first_request = self.cycles if self.first_request is None else self.first_request
            expected_address, expected_beats, index = self.requests.popleft()
            assert (address, beats) == (expected_address, expected_beats), f"request of {self.commands[index]}"
            assert index <= self.sent, "a request before its command"
            for i in range(beats):
                start = address + i * self.bus_bytes
                word = int.from_bytes(self.memory[start:start + self.bus_bytes], "little")
                self.words_due.append((self.cycles + MEMORY_LATENCY, word | (i == beats - 1) << (8 * self.bus_bytes)))
        if self.ports.passes("read_data", into=True):
            self.words_due.popleft()
            self.beats.append(self.cycles)
            self.ports.set("read_data__valid", 0)
        if self.words_due and self.words_due[0][0] <= self.cycles \
                and (self.ports.driven["read_data__valid"] or self.willing()):
            self.ports.set("read_data__payload", self.words_due[0][1])
            self.ports.set("read_data__valid", 1)
        self.ports.set("read_request__ready", self.takes_requests())

    def _take_writes(self) -> None:
        self.counted += self.ports.get("activation_written_bytes") + self.ports.get("weight_written_bytes")
        if self.ports.passes("residual_write", into=False):
            payload = self.ports.get("residual_write__payload")
            bits = max(5, self.bus_bytes.bit_length())
            address, count, data = payload & 0xFFFFF, (payload >> 20) % (1 << bits), payload >> (20 + bits)
            self._put(self.residuals, 0, address, count, data)
            self.counted += count
            self.residual_bytes += count
        if self.ports.get("weight_write__valid"):
            variant = "ninths" if self.ports.get("weight_write__ninth") else "main"
            self._put_weights(variant, self.ports.get("weight_write__index"), self.ports.get("weight_write__data"))
        for variant, port in (("parameters", "parameter_write"), ("table", "table_write")):
            if self.ports.get(f"{port}__valid"):
                payload = self.ports.get(f"{port}__payload")
                self._put_word(variant, payload & 0xFFFF, payload >> 16)
        get = self.activation_write.get
        if get("valid") and get("address") < STORE_HALF:
            self._put(self.activations, *(get(name) for name in ("blocked", "address", "count", "data")))

    def _put_weights(self, variant: str, index: int, data: int) -> None:
        """Keep a bus word, or two of weights that were decoded, or one that comes twice."""
        words = 1 if self.code is None else self.code.step_bytes // self.bus_bytes
        if words == 2 and not self.ports.get("weight_write__both"):
            assert data % (1 << 8 * self.bus_bytes) == data >> 8 * self.bus_bytes
            words = 1
        for i in range(words):
            self._put_word(variant, index + i, data >> 8 * self.bus_bytes * i & (1 << 8 * self.bus_bytes) - 1)
        del self.writes[len(self.writes) - words + 1:]

    def _put_word(self, variant: str, index: int, data: int) -> None:
        self.words[variant, index] = data.to_bytes(self.bus_bytes, "little")
        self.written += self.bus_bytes
        self.writes.append(self.cycles)

    def _put(self, buffer: bytearray, blocked: int, address: int, count: int, data: int) -> None:
        for place in write_places(blocked, address, count):
            buffer[place] = data & 255
            data >>= 8
        self.written += count
        self.writes.append(self.cycles)

    def finished(self) -> bool:
        return super().finished() and not self.words_due

    def check_end(self) -> None:
        super().check_end()
        assert not self.requests
        assert self.written == self.counted == sum(self.total_written[-1:])
        assert self.words == self.reference.words
        assert self.activations[:STORE_HALF] == self.reference.activations[:STORE_HALF]
        assert self.residuals == self.reference.residuals


class StoreDriver(Driver):
    """The result buffer and memory round the store unit, and what they should hold in the end."""

    WAITS = ("out_ready",)
    SIGNALS = ("out_free", "res_free", "act_ready", "mem_ready")

    def __init__(self, wires: Wires, bus_bytes: int, commands: list[EncodedCommand], activations: bytearray, *,
                 stall: float = 0.0, seed: int = 0) -> None:
        super().__init__(wires, "store", commands, self.WAITS, self.SIGNALS, stall, seed)
        self.bus_bytes = bus_bytes
        self.results = self.rng.randbytes(BUFFER_BYTES)
        self.activations = activations  # written by both units
        self.memory = bytearray(MEMORY_BYTES)
        self.counters = [self.rng.getrandbits(32) for _ in COUNTERS]
        self.walk: deque[tuple[int, int]] = deque()  # of the counters: index and count
        self.walk_begins = False
        for name in ("counters__begins", "counters__sums__valid"):
            self.ports.set(name, 0)
        self.ports.set("fault", 0)
        self.ports.set("fault_address", 0xCAFE_F00D)
        record = (*self.counters, *[0] * (FAULT_WORD + 1 - len(COUNTERS)), 0xCAFE_F00D)
        self.reference = StoreReference(bus_bytes, self.results, record=record)
        self.requests: deque[tuple[int, int]] = deque()
        # What has been done when each command is complete: bytes to memory, bytes to the activation buffer, and
        # words that came out of the result buffer.
        self.totals: list[tuple[int, int, int]] = []
        to_memory = to_activations = words = 0
        for each in commands:
            self.reference.execute(each)
            self.requests += self.reference.bursts
            local = each.variant.name in ("linear", "blocked")
            to_activations += self.reference.written * local
            to_memory += self.reference.written * (not local)
            words += self._words_read(each)
            self.totals.append((to_memory, to_activations, words))
        self.to_memory = self.to_activations = self.words = 0
        self.counted_memory = self.counted_activations = 0
        self.beats: list[int] = []   # the cycle of each word to memory
        self.writes: list[int] = []  # the cycle of each write to the activation buffer
        self.reads: deque[tuple[int, int]] = deque()  # (cycle, address)
        self.bursts: deque[list[int]] = deque()       # begun: address and beats left
        self.acknowledgements: deque[int] = deque()   # the cycle of each
        self.memory_stall = stall
        self.idle = True
        self.held: int | None = None  # a word offered and not yet taken
        self.ports.set("writer_idle", 1)
        for name in ("store_read__ready", "store_data__valid", "write_request__ready", "write_data__ready"):
            self.ports.set(name, 0)

    def _words_read(self, each: EncodedCommand) -> int:
        if each.variant.name == "memory":
            return sum(beats for _, beats in self.reference.bursts)
        if each.variant.name in ("linear", "blocked"):
            s = self.reference.settings
            return each.operands["rows"] * s["chunks"] * -(-s["chunk_bytes"] // self.bus_bytes)
        return 0

    def cycle(self) -> None:
        """Look at the clock edge that was, and drive the ports up to the next."""
        self.watch_signals(self._is_done)
        self._take_activation_writes()
        self.offer_commands()
        self._answer_reads()
        self._take_memory_writes()
        self._walk_counters()
        self.semaphores.cycle()
        self.cycles += 1

    def _walk_counters(self) -> None:
        """Send the counts on request, as `Counters` would; now and then others that nobody has asked for."""
        requested = self.ports.get("counters__request")
        counts = bool(self.walk)
        if self.walk_begins:
            others = [self.rng.getrandbits(32) for _ in COUNTERS]
            self.walk.extend(enumerate(self.counters if requested else others))
        elif counts:
            index, count = self.walk.popleft()
            self.ports.set("counters__sums__payload", count << (len(COUNTERS) - 1).bit_length() | index)
        self.ports.set("counters__sums__valid", counts)
        self.walk_begins = not self.walk and bool(requested or self.rng.random() < 0.05)
        self.ports.set("counters__begins", self.walk_begins)

    def _is_done(self, semaphore: str, index: int) -> bool:
        to_memory, to_activations, words = self.totals[index]
        if semaphore == "mem_ready":
            return self.to_memory == to_memory and self.idle
        return self.to_activations >= to_activations if semaphore == "act_ready" else self.words >= words

    def _take_activation_writes(self) -> None:
        self.counted_activations += self.ports.get("activation_written_bytes")
        get = self.activation_write.get
        address = get("address") if get("valid") else 0
        if address >= STORE_HALF:
            count, data = get("count"), get("data")
            for place in write_places(get("blocked"), address, count):
                self.activations[place] = data & 255
                data >>= 8
            self.to_activations += count
            self.writes.append(self.cycles)

    def _answer_reads(self) -> None:
        if self.ports.driven["store_data__valid"]:
            self.words += 1
        if self.ports.passes("store_read", into=False):
            self.reads.append((self.cycles + ResultBuffer.READ_LATENCY - 1, self.ports.get("store_read__payload")))
        due = bool(self.reads) and self.reads[0][0] <= self.cycles
        if due:
            address = self.reads.popleft()[1]
            data = (self.results + self.results[:self.bus_bytes])[address:address + self.bus_bytes]
            self.ports.set("store_data__payload", int.from_bytes(data, "little"))
        self.ports.set("store_data__valid", due)
        self.ports.set("store_read__ready", self.willing())

    def _take_memory_writes(self) -> None:
        self.counted_memory += self.ports.get("memory_written_bytes")
        if self.ports.passes("write_request", into=False):
            payload = self.ports.get("write_request__payload")
            address, beats = payload & 0xFFFFFFFF, payload >> 32
            assert (address, beats) == self.requests.popleft()
            self.bursts.append([address, beats])
        offered = self.ports.get("write_data__payload") if self.ports.get("write_data__valid") else None
        assert self.held is None or offered == self.held, "a word changed before it was taken"
        self.held = None if self.ports.driven["write_data__ready"] else offered
        if self.ports.passes("write_data", into=False):
            payload, burst = offered, self.bursts[0]
            for k in range(self.bus_bytes):
                if payload >> (8 * self.bus_bytes + k) & 1:
                    self.memory[burst[0] + k] = payload >> (8 * k) & 255
                    self.to_memory += 1
            self.beats.append(self.cycles)
            burst[0] += self.bus_bytes
            burst[1] -= 1
            if not burst[1]:
                self.bursts.popleft()
                self.acknowledgements.append(self.cycles + MEMORY_LATENCY)
        if self.acknowledgements and self.acknowledgements[0] <= self.cycles:
            self.acknowledgements.popleft()
        self.idle = not self.bursts and not self.acknowledgements
        self.ports.set("writer_idle", self.idle)
        self.ports.set("write_request__ready", self.takes_requests())
        self.ports.set("write_data__ready", bool(self.bursts) and self.willing(self.memory_stall))

    def finished(self) -> bool:
        return super().finished() and not self.bursts

    def check_end(self) -> None:
        super().check_end()
        assert not self.requests
        totals = self.totals[-1] if self.totals else (0, 0, 0)
        assert (self.to_memory, self.to_activations, self.words) == totals
        assert (self.counted_memory, self.counted_activations) == totals[:2]
        assert self.memory == self.reference.memory
        assert self.activations[STORE_HALF:] == self.reference.activations[STORE_HALF:]
