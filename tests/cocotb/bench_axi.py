"""AxiMaster against cocotbext-axi's memory: data, strobes, order, burst rules, idle, errors, throughput.

Run by tests/cocotb/test_axi.py, which sets ``AXI_DATA_BYTES``.
"""

import os
import random
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiRam

DATA_BYTES = int(os.environ["AXI_DATA_BYTES"])
MEMORY_BYTES = 1 << 20
READ_BASE, WRITE_BASE, HALF = 0, MEMORY_BYTES // 2, MEMORY_BYTES // 2
MAX_BURST = 64
INCR = 1
STALL = 0.4


@dataclass
class Burst:
    """One address handshake, and the cycle it was seen in."""

    address: int
    beats: int
    cycle: int


@dataclass
class BusMonitor:
    """Watches the bus in every cycle: bursts seen, beats and responses counted, AXI rules asserted."""

    reads: list[Burst] = field(default_factory=list)
    writes: list[Burst] = field(default_factory=list)
    write_beats: list[int] = field(default_factory=list)  # the cycle of each
    read_beats: list[int] = field(default_factory=list)
    responses: int = 0
    cycle: int = 0

    async def run(self, dut) -> None:
        held: dict[str, tuple[int, ...]] = {}
        while True:
            await RisingEdge(dut.clk)
            for prefix, bursts in (("ar", self.reads), ("aw", self.writes)):
                self._watch_address(dut, prefix, bursts, held)
            offered = (int(dut.m_axi__wdata.value), int(dut.m_axi__wstrb.value), int(dut.m_axi__wlast.value))
            self._watch_stable("w", bool(dut.m_axi__wvalid.value), bool(dut.m_axi__wready.value), offered, held)
            if dut.m_axi__wvalid.value and dut.m_axi__wready.value:
                self.write_beats.append(self.cycle)
            if dut.m_axi__rvalid.value and dut.m_axi__rready.value:
                self.read_beats.append(self.cycle)
            if dut.write_idle.value:
                asked = sum(burst.beats for burst in self.writes)
                assert (len(self.write_beats), self.responses) == (asked, len(self.writes)), "idle too early"
            self.responses += bool(dut.m_axi__bvalid.value and dut.m_axi__bready.value)
            self.cycle += 1

    def _watch_address(self, dut, prefix: str, bursts: list[Burst], held: dict) -> None:
        def field(name: str) -> int:
            return int(getattr(dut, f"m_axi__{prefix}{name}").value)

        valid, ready = bool(field("valid")), bool(field("ready"))
        self._watch_stable(prefix, valid, ready, (field("addr"), field("len")), held)
        if not (valid and ready):
            return
        burst = Burst(field("addr"), field("len") + 1, self.cycle)
        assert burst.address // 4096 == (burst.address + burst.beats * DATA_BYTES - 1) // 4096, f"{burst} crosses"
        assert burst.address % DATA_BYTES == 0
        assert burst.beats <= MAX_BURST
        assert (1 << field("size"), field("burst")) == (DATA_BYTES, INCR)
        bursts.append(burst)

    @staticmethod
    def _watch_stable(channel: str, valid: bool, ready: bool, payload: tuple[int, ...], held: dict) -> None:
        """Once valid, a channel must stay valid and unchanged until it is taken."""
        if channel in held:
            assert valid, f"{channel}valid fell before {channel}ready"
            assert payload == held[channel], f"{channel} changed before {channel}ready"
        held.pop(channel, None)
        if valid and not ready:
            held[channel] = payload


async def start(dut) -> tuple[AxiRam, BusMonitor]:
    """Reset; return a memory of random contents and a monitor on the bus."""
    Clock(dut.clk, 2, unit="ns").start()
    for name in ("read__valid", "write__valid", "write_data__valid", "read_data__ready"):
        getattr(dut, name).value = 0
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    memory = AxiRam(AxiBus.from_prefix(dut, "m_axi_"), dut.clk, size=MEMORY_BYTES)
    memory.write(READ_BASE, random.randbytes(HALF))
    memory.write(WRITE_BASE, random.randbytes(HALF))
    await RisingEdge(dut.clk)
    monitor = BusMonitor()
    cocotb.start_soon(monitor.run(dut))
    return memory, monitor


def pause_every_channel(memory: AxiRam) -> None:
    for channel in (memory.write_if.aw_channel, memory.write_if.w_channel, memory.write_if.b_channel,
                    memory.read_if.ar_channel, memory.read_if.r_channel):
        channel.set_pause_generator(coin(random.random()))


def coin(seed: float):
    rng = random.Random(seed)
    while True:
        yield rng.random() < STALL


async def put_all(dut, stream: str, payloads, *, stall: float = 0.0) -> None:
    """Offer ``payloads`` on ``stream``, pausing at random."""
    valid, ready = getattr(dut, f"{stream}__valid"), getattr(dut, f"{stream}__ready")
    payload_port = getattr(dut, f"{stream}__payload")
    rng = random.Random(random.random())
    for payload in payloads:
        while rng.random() < stall:
            await RisingEdge(dut.clk)
        payload_port.value = payload
        valid.value = 1
        while True:
            await RisingEdge(dut.clk)
            if ready.value:
                break
        valid.value = 0


async def get_all(dut, stream: str, count: int, *, stall: float = 0.0) -> list[int]:
    """Take ``count`` payloads from ``stream``, refusing at random."""
    valid, ready = getattr(dut, f"{stream}__valid"), getattr(dut, f"{stream}__ready")
    payload_port = getattr(dut, f"{stream}__payload")
    rng = random.Random(random.random())
    payloads: list[int] = []
    willing = rng.random() >= stall
    ready.value = willing
    while len(payloads) < count:
        await RisingEdge(dut.clk)
        if willing and valid.value:
            payloads.append(int(payload_port.value))
        willing = len(payloads) < count and rng.random() >= stall
        ready.value = willing
    return payloads


async def until_idle(dut) -> None:
    while True:
        await RisingEdge(dut.clk)
        if dut.write_idle.value:
            return


def requests_in(base: int, lengths: list[int]) -> list[tuple[int, int]]:
    """Return (address, beats) for each length, most of them just below a 4 KiB border, none overlapping."""
    requests = []
    address = base
    for beats in lengths:
        if random.random() < 0.7:
            border = (address + 8191) // 4096 * 4096
            address = max(address, border - random.randint(0, min(beats, 16)) * DATA_BYTES)
        requests.append((address, beats))
        address += beats * DATA_BYTES
    assert address <= base + HALF
    return requests


def random_lengths() -> list[int]:
    lengths = [1, 1, 2, 1000, 64, 65, *(random.randint(1, 24) for _ in range(20)), random.randint(200, 999)]
    random.shuffle(lengths)
    return lengths


def request_word(address: int, beats: int) -> int:
    return address | beats << 32


async def read(dut, memory: AxiRam, requests, *, stall: float) -> None:
    """Read ``requests`` and compare data and ``last`` with the memory."""
    words = cocotb.start_soon(put_all(dut, "read", [request_word(*each) for each in requests], stall=stall))
    received = await get_all(dut, "read_data", sum(beats for _, beats in requests), stall=stall)
    await words
    expected = []
    for address, beats in requests:
        for k in range(beats):
            word = int.from_bytes(memory.read(address + k * DATA_BYTES, DATA_BYTES), "little")
            expected.append(word | (k == beats - 1) << 8 * DATA_BYTES)
    assert received == expected


async def write(dut, memory: AxiRam, requests, *, stall: float, strobes=lambda: (1 << DATA_BYTES) - 1) -> None:
    """Write random words to ``requests``; wait until idle; compare the whole written half of the memory."""
    image = bytearray(memory.read(WRITE_BASE, HALF))
    words = []
    for address, beats in requests:
        for k in range(beats):
            data, strobe = random.randbytes(DATA_BYTES), strobes()
            words.append(int.from_bytes(data, "little") | strobe << 8 * DATA_BYTES)
            for lane in range(DATA_BYTES):
                if strobe >> lane & 1:
                    image[address + k * DATA_BYTES + lane - WRITE_BASE] = data[lane]
    asking = cocotb.start_soon(put_all(dut, "write", [request_word(*each) for each in requests], stall=stall))
    await put_all(dut, "write_data", words, stall=stall)
    await asking
    await until_idle(dut)
    assert bytes(memory.read(WRITE_BASE, HALF)) == bytes(image)


def random_strobe() -> int:
    return random.choice((0, (1 << DATA_BYTES) - 1, random.getrandbits(DATA_BYTES)))


@cocotb.test(timeout_time=400, timeout_unit="us")
async def random_requests_under_stalls_on_every_channel(dut):
    memory, monitor = await start(dut)
    pause_every_channel(memory)
    reads, writes = requests_in(READ_BASE, random_lengths()), requests_in(WRITE_BASE, random_lengths())
    reading = cocotb.start_soon(read(dut, memory, reads, stall=STALL))
    await write(dut, memory, writes, stall=STALL, strobes=random_strobe)
    await reading
    for requests, bursts in ((reads, monitor.reads), (writes, monitor.writes)):
        asked = [address + k * DATA_BYTES for address, beats in requests for k in range(beats)]
        seen = [burst.address + k * DATA_BYTES for burst in bursts for k in range(burst.beats)]
        assert seen == asked
        assert any(address // 4096 != (address + (beats - 1) * DATA_BYTES) // 4096 for address, beats in requests)
    assert not dut.read_error.value
    assert not dut.write_error.value


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_word_per_cycle_without_stalls(dut):
    memory, monitor = await start(dut)
    for beats, count in ((1000, 1), (8, 40)):
        monitor.read_beats.clear()
        monitor.write_beats.clear()
        monitor.writes.clear()
        monitor.responses = 0
        reads = [(READ_BASE + k * beats * DATA_BYTES, beats) for k in range(count)]
        writes = [(WRITE_BASE + k * beats * DATA_BYTES, beats) for k in range(count)]
        await read(dut, memory, reads, stall=0.0)
        await write(dut, memory, writes, stall=0.0)
        for name, cycles in (("read", monitor.read_beats), ("write", monitor.write_beats)):
            taken = cycles[-1] - cycles[0] + 1
            dut._log.info("%s: %d words in %d cycles", name, len(cycles), taken)
            assert taken == count * beats


@cocotb.test(timeout_time=100, timeout_unit="us")
async def idle_waits_for_the_last_response(dut):
    memory, monitor = await start(dut)
    assert dut.write_idle.value
    memory.write_if.b_channel.pause = True
    writing = cocotb.start_soon(write(dut, memory, [(WRITE_BASE, 3), (WRITE_BASE + 4096, 1)], stall=0.0))
    for _ in range(100):
        await RisingEdge(dut.clk)
    assert len(monitor.write_beats) == 4
    assert not dut.write_idle.value
    memory.write_if.b_channel.pause = False
    await writing
    assert monitor.responses == 2


@cocotb.test(timeout_time=100, timeout_unit="us")
async def error_responses_stick_with_the_address_of_their_burst(dut):
    memory, _ = await start(dut)
    bad = 4096 + 2 * DATA_BYTES

    async def refuse_read(address: int, length: int) -> bytes:
        if address == READ_BASE + bad:
            raise OSError("no memory here")
        return memory.read(address, length)

    async def refuse_write(address: int, data: bytes) -> None:
        if address == WRITE_BASE + bad:
            raise OSError("no memory here")
        memory.write(address, data)

    memory.read_if._read = refuse_read
    memory.write_if._write = refuse_write
    for base, stream in ((READ_BASE, "read"), (WRITE_BASE, "write")):
        # The first request ends in a burst of four words behind the border, the third of them refused.
        requests = [(base + 4096 - 4 * DATA_BYTES, 8), (base + 2 * 4096, 8)]
        assert not getattr(dut, f"{stream}_error").value
        asking = cocotb.start_soon(put_all(dut, stream, [request_word(*each) for each in requests]))
        if stream == "read":
            await get_all(dut, "read_data", 16)
        else:
            await put_all(dut, "write_data", [(1 << 9 * DATA_BYTES) - 1] * 16)
            await until_idle(dut)
        await asking
        await RisingEdge(dut.clk)
        assert getattr(dut, f"{stream}_error").value
        assert int(getattr(dut, f"{stream}_error_address").value) == base + 4096
