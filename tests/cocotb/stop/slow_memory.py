"""Main memory of any latency and rate behind the AXI4 port, as each cycle's inputs."""

import random
from collections import deque
from dataclasses import dataclass, field

from tilewright.isa.memory import MAIN_BASE

OKAY, DECERR = 0, 3


@dataclass
class SlowMemory:
    """Bursts wait side by side: the first word of one comes ``latency`` cycles after its address, as does a response
    after a burst's last word; each channel moves in one of ``period`` cycles, in which one is drawn.
    """

    size: int
    bus_bytes: int
    rng: random.Random
    latency: int
    period: int
    bytes: bytearray = field(init=False)
    reads: deque = field(default_factory=deque)
    writes: deque = field(default_factory=deque)
    responses: deque = field(default_factory=deque)
    read_offered: bool = False
    cycle: int = 0
    driven: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bytes = bytearray(b"\x55" * self.size)

    def burst_cycles(self, words: int = 64) -> int:
        """Return the cycles that a burst may take: address, latency, words, the response."""
        return self.latency + 4 * self.period * (words + 4)

    def drive(self, dut) -> None:
        """Set the inputs of the next cycle."""
        moves = [self.period == 1 or self.rng.randrange(self.period) == 0 for _ in range(5)]
        self._set(dut, "arready", moves[0] and len(self.reads) < 32)
        self._set(dut, "awready", moves[1] and len(self.writes) < 32)
        if not self.read_offered and self.reads and self.reads[0][2] <= self.cycle and moves[2]:
            address, left, _ = self.reads[0]
            place = address - MAIN_BASE
            inside = 0 <= place < self.size
            data = int.from_bytes(self.bytes[place:place + self.bus_bytes], "little") if inside else 0
            self._set(dut, "rdata", data)
            self._set(dut, "rresp", OKAY if inside else DECERR)
            self._set(dut, "rlast", left == 1)
            self.read_offered = True
        self._set(dut, "rvalid", self.read_offered)
        self._set(dut, "wready", bool(self.writes) and moves[3])
        self._set(dut, "bvalid", bool(self.responses) and self.responses[0] <= self.cycle)

    def _set(self, dut, name: str, value: int) -> None:
        """Set an input, if it changes: to set one takes longer than the simulator does for a cycle."""
        if self.driven.get(name) != value:
            self.driven[name] = value
            getattr(dut, f"m_axi__{name}").value = value

    def sample(self, dut) -> None:
        """Take what moves at the end of this cycle."""
        self.cycle += 1
        driven = self.driven
        if self.read_offered and dut.m_axi__rready.value:
            self.read_offered = False
            address, left, due = self.reads.popleft()
            if left > 1:
                self.reads.appendleft((address + self.bus_bytes, left - 1, due))
        if driven["wready"] and dut.m_axi__wvalid.value:
            self._write(dut)
        if driven["bvalid"] and dut.m_axi__bready.value:
            self.responses.popleft()
        if driven["arready"] and dut.m_axi__arvalid.value:
            self.reads.append((int(dut.m_axi__araddr.value), int(dut.m_axi__arlen.value) + 1,
                               self.cycle + self.latency))
        if driven["awready"] and dut.m_axi__awvalid.value:
            self.writes.append((int(dut.m_axi__awaddr.value), int(dut.m_axi__awlen.value) + 1))

    def _write(self, dut) -> None:
        address, left = self.writes.popleft()
        strobe = int(dut.m_axi__wstrb.value)
        if strobe:
            data, place = int(dut.m_axi__wdata.value).to_bytes(self.bus_bytes, "little"), address - MAIN_BASE
            for lane in range(self.bus_bytes):
                if strobe >> lane & 1:
                    self.bytes[place + lane] = data[lane]
        assert bool(dut.m_axi__wlast.value) == (left == 1)
        if left > 1:
            self.writes.appendleft((address + self.bus_bytes, left - 1))
        else:
            self.responses.append(self.cycle + self.latency)
