"""The crossing between two unrelated clocks, in front of a memory that pauses: bursts, words and responses as sent."""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from amaranth import ClockDomain, ClockSignal, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from amaranth.sim import Simulator

from tilewright.rtl.bus.clock_crossing import ClockCrossing

BYTES = 4
BURSTS = 10
CLOCKS = ((10.0, 10.0), (10.0, 7.3), (10.0, 31.7), (10.0, 2.9))  # periods of core and bus, ns
SLVERR = 2


class Bench(wiring.Component):
    """A crossing whose bus clock is the domain ``outside``."""

    def __init__(self):
        self.inner = ClockCrossing(BYTES)
        super().__init__({name: member for name, member in self.inner.signature.members.items() if name != "bus_clk"})

    def elaborate(self, platform):
        m = Module()
        m.domains.outside = ClockDomain(reset_less=True)
        m.submodules.inner = self.inner
        m.d.comb += self.inner.bus_clk.eq(ClockSignal("outside"))
        connect(m, flipped(self.s_axi), self.inner.s_axi)
        connect(m, self.inner.m_axi, flipped(self.m_axi))
        return m


@dataclass
class Memory:
    """Answers bursts in order, with pauses; checks what a master must keep. Word at address a is a hash of a."""

    rng: random.Random
    pause: float
    reads: deque = field(default_factory=deque)
    writes: deque = field(default_factory=deque)
    responses: deque = field(default_factory=deque)
    stored: dict = field(default_factory=dict)
    wants_data_first: bool = False
    standing: dict = field(default_factory=dict)

    async def run(self, ctx, axi):
        offered = None
        while True:
            moves = [self.rng.random() >= self.pause for _ in range(5)]
            # A slave may wait for data before it takes an address.
            put(ctx, axi, arready=moves[0], wready=moves[2] and bool(self.writes),
                awready=moves[1] and (not self.wants_data_first or ctx.get(axi.wvalid)))
            if offered is None and self.reads and moves[3]:
                address, left = self.reads[0]
                offered = (word_at(address), SLVERR if address % 256 == 0 else 0, left == 0)
            put(ctx, axi, rvalid=offered is not None, bvalid=bool(self.responses),
                bresp=self.responses[0] if self.responses else 0,
                **dict(zip(("rdata", "rresp", "rlast"), offered or (0, 0, 0), strict=True)))
            _, _, *seen = await ctx.tick("outside").sample(*(getattr(axi, name) for name in NAMES))
            offered = self.take(dict(zip(NAMES, seen, strict=True)), offered, bool(self.responses))

    def take(self, now, offered, responds):
        """Take what has moved in a cycle; return what is still offered on R."""
        for channel, names in (("ar", ("araddr", "arlen")), ("aw", ("awaddr", "awlen")), ("w", ("wdata", "wlast"))):
            value = tuple(now[name] for name in names)
            if self.standing.get(channel) is not None:
                assert now[f"{channel}valid"], f"{channel} was withdrawn"
                assert value == self.standing[channel], f"{channel} changed while it waited"
            stands = now[f"{channel}valid"] and not now[f"{channel}ready"]
            self.standing[channel] = value if stands else None
        assert not now["wvalid"] or self.writes or now["awvalid"], "a word before its address"
        if offered is not None and now["rready"]:
            address, left = self.reads.popleft()
            if left:
                self.reads.appendleft((address + BYTES, left - 1))
            offered = None
        if responds and now["bready"]:
            self.responses.popleft()
        if now["wvalid"] and now["wready"]:
            address, left = self.writes.popleft()
            self.stored[address] = now["wdata"]
            assert now["wlast"] == (left == 0)
            if left:
                self.writes.appendleft((address + BYTES, left - 1))
            else:
                self.responses.append(SLVERR if address % 256 == 0 else 0)
        if now["arvalid"] and now["arready"]:
            assert (now["arsize"], now["arburst"]) == (2, 1)
            self.reads.append((now["araddr"], now["arlen"]))
        if now["awvalid"] and now["awready"]:
            self.writes.append((now["awaddr"], now["awlen"]))
        return offered


NAMES = ("arvalid", "arready", "araddr", "arlen", "arsize", "arburst", "awvalid", "awready", "awaddr", "awlen",
         "wvalid", "wready", "wdata", "wlast", "rready", "bready")


def word_at(address):
    return address * 2654435761 % (1 << 32)


def simulate(bench, periods, memory, *masters):
    simulator = Simulator(bench)
    core, bus = (1e-9 * period for period in periods)
    simulator.add_clock(core)
    simulator.add_clock(bus, phase=0.37 * bus, domain="outside")
    for each in masters:
        simulator.add_testbench(each)

    async def runs(ctx):
        await memory.run(ctx, bench.m_axi)

    simulator.add_testbench(runs, background=True)
    simulator.run()


def put(ctx, axi, **values):
    for name, value in values.items():
        ctx.set(getattr(axi, name), value)


async def until(ctx, signal):
    """Wait for the end of a cycle in which ``signal`` is high."""
    while not ctx.get(signal):
        await ctx.tick()
    await ctx.tick()


@pytest.mark.parametrize("periods", CLOCKS)
@pytest.mark.parametrize("pause", [0.0, 0.6])
def test_bursts_cross_in_order_whatever_the_clocks(periods, pause):
    rng = random.Random(f"{periods} {pause}")
    bench = Bench()
    memory = Memory(rng, pause, wants_data_first=pause > 0)
    axi = bench.s_axi
    bursts = [(rng.randrange(1 << 16) * BYTES, rng.choice((0, 1, 7, 63))) for _ in range(BURSTS)]
    written = [(1 << 20 | rng.randrange(1 << 12) * BYTES, rng.choice((0, 1, 7, 15))) for _ in range(BURSTS)]
    answered, read = [], []

    async def addresses(ctx):
        put(ctx, axi, arsize=2, arburst=1)
        for address, length in bursts:
            put(ctx, axi, araddr=address, arlen=length, arvalid=1)
            await until(ctx, axi.arready)
            put(ctx, axi, arvalid=0)

    async def words(ctx):
        for _ in range(sum(length + 1 for _, length in bursts)):
            while rng.random() < pause:
                await ctx.tick()
            put(ctx, axi, rready=1)
            while not ctx.get(axi.rvalid):
                await ctx.tick()
            read.append((ctx.get(axi.rdata), ctx.get(axi.rresp), ctx.get(axi.rlast)))
            await ctx.tick()
            put(ctx, axi, rready=0)

    async def writes(ctx):
        for address, length in written:
            put(ctx, axi, awaddr=address, awlen=length, awvalid=1)
            await until(ctx, axi.awready)
            put(ctx, axi, awvalid=0)
            for place in range(length + 1):
                put(ctx, axi, wdata=word_at(address + BYTES * place), wlast=place == length, wvalid=1)
                await until(ctx, axi.wready)
                put(ctx, axi, wvalid=0)

    async def responses(ctx):
        put(ctx, axi, bready=1)
        for _ in written:
            while not ctx.get(axi.bvalid):
                await ctx.tick()
            answered.append(ctx.get(axi.bresp))
            await ctx.tick()

    simulate(bench, periods, memory, addresses, words, writes, responses)
    last = [address + BYTES * length for address, length in written]
    assert answered == [SLVERR if address % 256 == 0 else 0 for address in last]
    assert read == [(word_at(place), SLVERR if place % 256 == 0 else 0, place == address + BYTES * length)
                    for address, length in bursts for place in range(address, address + BYTES * (length + 1), BYTES)]
    assert memory.stored == {place: word_at(place) for address, length in written
                             for place in range(address, address + BYTES * (length + 1), BYTES)}


@pytest.mark.parametrize("periods", CLOCKS)
def test_a_read_takes_as_much_longer_as_is_said(periods):
    memory, bench = Memory(random.Random(0), 0.0), Bench()
    took = []

    async def reads(ctx):
        put(ctx, bench.s_axi, arsize=2, arburst=1, rready=1)
        for number in range(8):
            put(ctx, bench.s_axi, araddr=BYTES * number, arvalid=1)
            cycles = 0
            while not ctx.get(bench.s_axi.rvalid):
                await ctx.tick()
                put(ctx, bench.s_axi, arvalid=0)
                cycles += 1
            took.append(cycles)
            await ctx.tick()

    simulate(bench, periods, memory, reads)
    core_mhz, bus_mhz = (1000 / period for period in periods)
    # The memory answers in the cycle after the address.
    assert max(took) <= ClockCrossing.read_cycles(core_mhz, bus_mhz) + core_mhz / bus_mhz
    assert min(took) >= 3


@pytest.mark.parametrize("periods", CLOCKS)
def test_words_come_in_each_cycle_of_the_slower_clock(periods):
    memory, bench = Memory(random.Random(0), 0.0), Bench()
    memory.reads.extend((256 * number + BYTES, 62) for number in range(2))
    times = []

    async def reads(ctx):
        put(ctx, bench.s_axi, rready=1)
        for cycle in range(2000):
            if ctx.get(bench.s_axi.rvalid):
                times.append(cycle)
            if len(times) == 2 * 63:
                return
            await ctx.tick()

    simulate(bench, periods, memory, reads)
    core, bus = periods
    assert times[-1] - times[0] <= 2 * 63 * max(core, bus) / core + 2
