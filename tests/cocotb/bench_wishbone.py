"""The Wishbone bridge behind the AXI master, on a memory that stalls, answers late or at once, and refuses addresses.

The requests, and what they are compared with, are those of the AXI bench. Run by tests/cocotb/test_wishbone.py, which
sets ``AXI_DATA_BYTES``.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

from tests.cocotb.bench_axi import (
    DATA_BYTES,
    HALF,
    MEMORY_BYTES,
    READ_BASE,
    WRITE_BASE,
    get_all,
    put_all,
    random_lengths,
    random_strobe,
    read,
    request_word,
    requests_in,
    until_idle,
    write,
)

STALL = 0.4


@dataclass
class WishboneMemory:
    """A slave in pipelined mode: what it has taken waits in ``answers``; it checks the master's part of the protocol.

    Attributes
    ----------
    stall, late : float
        Probability that it stalls in a cycle, and that the next answer has to wait another one.
    latency : int
        Cycles from a request to its answer, at least; 0 answers in the same cycle and takes a word only then.
    refused : set of int
        Addresses answered with ``err``.
    """

    contents: bytearray
    stall: float = 0.0
    late: float = 0.0
    latency: int = 1
    refused: set[int] = field(default_factory=set)
    taken: list[tuple[int, int, bool]] = field(default_factory=list)  # cycle, address, write
    hold: bool = False

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.contents[address:address + length])

    def write(self, address: int, data: bytes) -> None:
        self.contents[address:address + len(data)] = data

    async def run(self, dut) -> None:
        rng = random.Random(random.random())
        answers: deque[tuple[int, int, bool]] = deque()
        cycle, held = 0, None
        while True:
            await FallingEdge(dut.clk)  # outputs of this cycle stand; the inputs may depend on them
            offered = self._offered(dut)
            assert held is None or offered == held, "a stalled request changed"
            assert offered is None or dut.m_wb__cyc.value
            assert not answers or dut.m_wb__cyc.value, "cyc fell before the last answer"
            stalls = rng.random() < self.stall or self.hold
            at_once = self.latency == 0 and offered is not None and not stalls
            if at_once:
                answers.append((cycle, *offered[:2]))
            answer = None
            if answers and answers[0][0] + self.latency <= cycle and (at_once or rng.random() >= self.late):
                answer = answers.popleft()
            self._reply(dut, answer)
            dut.m_wb__stall.value = stalls
            if offered is not None and not stalls:
                address, is_write, data, select = offered
                self.taken.append((cycle, address, is_write))
                if is_write and address not in self.refused:
                    for lane in range(DATA_BYTES):
                        if select >> lane & 1:
                            self.contents[address + lane] = data >> 8 * lane & 255
                if not at_once:
                    answers.append((cycle, address, is_write))
            held = offered if stalls else None
            await RisingEdge(dut.clk)
            cycle += 1

    @staticmethod
    def _offered(dut):
        if not dut.m_wb__stb.value:
            return None
        is_write = bool(dut.m_wb__we.value)
        address = int(dut.m_wb__adr.value)
        assert address % DATA_BYTES == 0
        if not is_write:
            assert int(dut.m_wb__sel.value) == (1 << DATA_BYTES) - 1
        return address, is_write, int(dut.m_wb__dat_w.value) if is_write else 0, int(dut.m_wb__sel.value)

    def _reply(self, dut, answer) -> None:
        refuses = answer is not None and answer[1] in self.refused
        dut.m_wb__ack.value = answer is not None and not refuses
        dut.m_wb__err.value = refuses
        word = random.getrandbits(8 * DATA_BYTES)  # worthless unless answered
        if answer is not None and not answer[2] and not refuses:
            word = int.from_bytes(self.read(answer[1], DATA_BYTES), "little")
        dut.m_wb__dat_r.value = word


async def start(dut, **options) -> WishboneMemory:
    """Reset; return a memory of random contents on the bus."""
    Clock(dut.clk, 2, unit="ns").start()
    for name in ("read__valid", "write__valid", "write_data__valid", "read_data__ready", "m_wb__ack", "m_wb__err",
                 "m_wb__stall"):
        getattr(dut, name).value = 0
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    memory = WishboneMemory(bytearray(random.randbytes(MEMORY_BYTES)), **options)
    cocotb.start_soon(memory.run(dut))
    await RisingEdge(dut.clk)
    return memory


@cocotb.test(timeout_time=1000, timeout_unit="us")
@cocotb.parametrize(latency=[0, 1, 5], stall=[0.0, STALL])
async def random_requests(dut, latency, stall):
    memory = await start(dut, latency=latency, stall=stall, late=stall)
    reads, writes = requests_in(READ_BASE, random_lengths()), requests_in(WRITE_BASE, random_lengths())
    reading = cocotb.start_soon(read(dut, memory, reads, stall=stall))
    await write(dut, memory, writes, stall=stall, strobes=random_strobe)
    await reading
    for requests, is_write in ((reads, False), (writes, True)):
        asked = [address + k * DATA_BYTES for address, beats in requests for k in range(beats)]
        assert [address for _, address, kind in memory.taken if kind == is_write] == asked
    assert not dut.read_error.value
    assert not dut.write_error.value


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(latency=[1, 20, 29])
async def a_word_per_cycle_without_stalls(dut, latency):
    memory = await start(dut, latency=latency)
    for beats, count in ((1000, 1), (8, 40)):
        for base, transfer in ((READ_BASE, read), (WRITE_BASE, write)):
            memory.taken.clear()
            requests = [(base + k * beats * DATA_BYTES, beats) for k in range(count)]
            await transfer(dut, memory, requests, stall=0.0)
            assert memory.taken[-1][0] - memory.taken[0][0] + 1 == count * beats


@cocotb.test(timeout_time=100, timeout_unit="us")
async def reads_and_writes_take_turns_burst_by_burst(dut):
    memory = await start(dut)
    reading = cocotb.start_soon(read(dut, memory, [(READ_BASE, 640)], stall=0.0))
    await write(dut, memory, [(WRITE_BASE, 640)], stall=0.0)
    await reading
    kinds = [kind for _, _, kind in memory.taken]
    changes = sum(a != b for a, b in pairwise(kinds))
    assert memory.taken[-1][0] - memory.taken[0][0] + 1 <= 1280 + 10
    assert 10 <= changes <= 25  # ten bursts of 64 words each way


@cocotb.test(timeout_time=100, timeout_unit="us")
async def idle_waits_for_the_last_answer(dut):
    memory = await start(dut)
    assert dut.write_idle.value
    memory.hold = True
    writing = cocotb.start_soon(write(dut, memory, [(WRITE_BASE, 3), (WRITE_BASE + 4096, 1)], stall=0.0))
    for _ in range(100):
        await RisingEdge(dut.clk)
    assert not dut.write_idle.value
    memory.hold = False
    await writing


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(latency=[0, 3])
async def refused_words_are_errors_at_the_address_of_their_burst(dut, latency):
    bad = 4096 + 2 * DATA_BYTES
    memory = await start(dut, latency=latency, stall=STALL, refused={READ_BASE + bad, WRITE_BASE + bad})
    untouched = memory.read(WRITE_BASE + bad, DATA_BYTES)
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
    assert memory.read(WRITE_BASE + bad, DATA_BYTES) == untouched
    assert HALF > 2 * 4096 + 16 * DATA_BYTES
