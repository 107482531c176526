"""The board's main memory against cocotbext-axi's master and a core at its other port: data, strobes, no cycle lost.

Run by tests/cocotb/test_board_memory.py, which sets ``AXI_DATA_BYTES`` and ``MEMORY_BYTES``.
"""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiMaster

DATA_BYTES = int(os.environ["AXI_DATA_BYTES"])
MEMORY_BYTES = int(os.environ["MEMORY_BYTES"])
BASE = 0x8000_0000
# The memory, like its only master, has one ID: 0. It orders nothing between its two sides, nor reads after writes: each
# has a part of it for itself.
READ, WRITE, CORE = (BASE + i * (MEMORY_BYTES // 4) for i in range(3))
PART = MEMORY_BYTES // 4


async def start(dut) -> AxiMaster:
    Clock(dut.clk, 2, unit="ns").start()
    dut.core_use.value = 0
    dut.rst.value = 1
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi_"), dut.clk, max_burst_len=64)
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return master


def coin(seed: float, stall: float):
    rng = random.Random(seed)
    while True:
        yield rng.random() < stall


async def core_traffic(dut, accesses: int, pauses: float) -> None:
    """Read and write words as a core does, at once and without waiting; compare every word read."""
    image = bytearray(PART)
    for _ in range(accesses):
        while random.random() < pauses:
            await RisingEdge(dut.clk)
        word, strobe, data = 4 * random.randrange(64), random.getrandbits(4), random.getrandbits(32)
        write = random.random() < 0.5
        dut.core_use.value = 1
        dut.core_write.value = write
        dut.core_address.value = CORE + word
        dut.core_strobe.value = strobe
        dut.core_wdata.value = data
        await RisingEdge(dut.clk)                                # the memory takes it at this edge
        dut.core_use.value = 0
        await RisingEdge(dut.clk)
        if write:
            for lane in range(4):
                if strobe >> lane & 1:
                    image[word + lane] = data >> 8 * lane & 0xFF
        else:
            assert int(dut.core_data.value) == int.from_bytes(image[word:word + 4], "little")


async def bus_traffic(master: AxiMaster, base: int, rounds: int) -> None:
    """Write and read back pieces of any length and alignment, several at a time."""
    image = bytearray(PART)
    for _ in range(rounds):
        pieces = []
        for i in range(4):
            start = i * PART // 4 + random.randrange(PART // 8)
            data = random.randbytes(random.choice((1, 3, DATA_BYTES, random.randrange(1, PART // 8))))
            image[start:start + len(data)] = data
            pieces.append(cocotb.start_soon(write(master, base + start, data)))
        for piece in pieces:
            await piece
        start = random.randrange(PART // 2)
        size = random.randrange(1, PART - start)
        assert (await master.read(base + start, size, arid=0)).data == bytes(image[start:start + size])


async def write(master: AxiMaster, address: int, data: bytes) -> None:
    await master.write(address, data, awid=0)


async def zeros(master: AxiMaster, base: int) -> None:
    await master.write(base, bytes(PART), awid=0)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def traffic_from_both_sides_under_stalls(dut):
    master = await start(dut)
    await zeros(master, WRITE)
    await zeros(master, CORE)
    for i, channel in enumerate((master.write_if.aw_channel, master.write_if.w_channel, master.write_if.b_channel,
                                 master.read_if.ar_channel, master.read_if.r_channel)):
        channel.set_pause_generator(coin(random.random() + i, 0.4))
    core = cocotb.start_soon(core_traffic(dut, 1500, 0.3))
    await bus_traffic(master, WRITE, 12)
    await core


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_every_cycle(dut):
    """Across bursts too, in both directions at once; a core that writes takes a cycle each from the bus's writes."""
    master = await start(dut)
    await zeros(master, READ)
    taken = {"r": [], "w": []}

    async def watch():
        cycle = 0
        while True:
            await RisingEdge(dut.clk)
            cycle += 1
            for name, cycles in taken.items():
                if getattr(dut, f"s_axi__{name}valid").value and getattr(dut, f"s_axi__{name}ready").value:
                    cycles.append(cycle)

    watching = cocotb.start_soon(watch())
    words = PART // DATA_BYTES
    reading = cocotb.start_soon(read(master, READ, PART))
    await master.write(WRITE, random.randbytes(PART), awid=0)
    await reading
    watching.cancel()
    assert len(taken["r"]) == len(taken["w"]) == words
    assert taken["r"][-1] - taken["r"][0] == words - 1
    assert taken["w"][-1] - taken["w"][0] == words - 1


async def read(master: AxiMaster, address: int, size: int) -> None:
    await master.read(address, size, arid=0)
