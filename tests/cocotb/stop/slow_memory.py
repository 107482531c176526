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

    def __post_init__(self) -> None:
        self.bytes = bytearray(b"\x55" * self.size)

    def burst_cycles(self, words: int = 64) -> int:
        """Return the cycles that a burst may take: address, latency, words, the response."""
        return self.latency + 4 * self.period * (words + 4)

    def drive(self, dut) -> None:
        """Set the inputs of the next cycle."""
        moves = [self.period == 1 or self.rng.randrange(self.period) == 0 for _ in range(5)]
        dut.m_axi__arready.value = moves[0] and len(self.reads) < 32
        dut.m_axi__awready.value = moves[1] and len(self.writes) < 32
        if not self.read_offered and self.reads and self.reads[0][2] <= self.cycle and moves[2]:
            address, left, _ = self.reads[0]
            place = address - MAIN_BASE
            inside = 0 <= place < self.size
            dut.m_axi__rdata.value = int.from_bytes(self.bytes[place:place + self.bus_bytes], "little") if inside else 0
            dut.m_axi__rresp.value = OKAY if inside else DECERR
            dut.m_axi__rlast.value = left == 1
            self.read_offered = True
        dut.m_axi__rvalid.value = self.read_offered
        dut.m_axi__wready.value = bool(self.writes) and moves[3]
        dut.m_axi__bvalid.value = bool(self.responses) and self.responses[0] <= self.cycle

    def sample(self, dut) -> None:
        """Take what moves at the end of this cycle."""
        self.cycle += 1
        if self.read_offered and dut.m_axi__rready.value:
            self.read_offered = False
            address, left, due = self.reads.popleft()
            if left > 1:
                self.reads.appendleft((address + self.bus_bytes, left - 1, due))
        if dut.m_axi__wready.value and dut.m_axi__wvalid.value:
            self._write(dut)
        if dut.m_axi__bvalid.value and dut.m_axi__bready.value:
            self.responses.popleft()
        if dut.m_axi__arready.value and dut.m_axi__arvalid.value:
            self.reads.append((int(dut.m_axi__araddr.value), int(dut.m_axi__arlen.value) + 1,
                               self.cycle + self.latency))
        if dut.m_axi__awready.value and dut.m_axi__awvalid.value:
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
