"""The counts of a record are those that a loop in Python has in the cycle they name, under any back-pressure."""

import random
from functools import cache

import pytest
from amaranth import Module
from amaranth.lib import stream
from amaranth.lib.wiring import Component, Out, connect, flipped
from amaranth.sim import Simulator

from tests.support.streams import simulate
from tilewright.isa.counters import COUNTERS, CYCLES_HIGH_WORD, FAULT_ADDRESS_WORD, FAULT_WORD, RECORD_WORDS
from tilewright.isa.machine import PRESETS, Machine
from tilewright.rtl.array.sequencer.sequencer import MacState
from tilewright.rtl.port.performance_counters import BUSY, EVENTS, INTERVAL, STATES, Counters, event_steps
from tilewright.rtl.store.status_record import StatusRecord

NAMES = [counter.name for counter in COUNTERS]
CAUSES = [name for name in NAMES if name.startswith("mac_")]
FAULT, FAULT_ADDRESS = 3, 0x1234_5678
MOST = 1 << 32

FIRST_CYCLE = {4: 3, 8: 4, 16: 6, 32: 10, 64: 18}
RECORD_CYCLES = {4: 35, 8: 31, 16: 29, 32: 28, 64: 28}
"""From the cycle in which the walk begins: until the first word is there; with that cycle, until the last is taken."""


class Recorder(Component):
    """The counters and a status record of them."""

    def __init__(self, machine):
        self.counters = Counters(machine)
        self.record = StatusRecord(machine.bus_bytes)
        super().__init__({"o": Out(stream.Signature(8 * machine.bus_bytes))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.counters = self.counters
        m.submodules.record = self.record
        connect(m, self.record.counters, self.counters.walk)
        connect(m, self.record.o, flipped(self.o))
        m.d.comb += [self.record.fault.eq(FAULT), self.record.fault_address.eq(FAULT_ADDRESS)]
        return m


class Driver:
    """Events to a `Recorder`, the same to a loop that counts, and the records that come.

    ``history`` holds the counts after each cycle; before the first, a cycle has been idle. ``records`` are the words
    of each record, ``starts`` the number of the cycle after which each was asked for, ``taken`` that of each bus word.
    """

    def __init__(self, ctx, machine, seed, *, stall=0.0):
        self.ctx = ctx
        self.dut = None
        self.machine = machine
        self.stall = stall
        self.rng = random.Random(seed)
        self.steps = event_steps(machine)
        self.history = [dict.fromkeys(NAMES, 0) | {"cycles": 1, "mac_idle_host": 1}]
        self.records, self.starts, self.taken = [], [], []
        self.bytes = bytearray()

    def of(self, dut):
        """Return itself, for ``dut``, whose memories hold anything at reset."""
        self.dut = dut
        for memory in (dut.counters.totals, *dut.record.banks):
            for index in range(memory.depth):
                self.ctx.set(memory.data[index], self.rng.getrandbits(32))
        return self

    def _events(self, kind):
        """Return state, who is busy, and events of a cycle."""
        rng = self.rng
        state = rng.choice(list(MacState))
        if kind == "most":
            return state, dict.fromkeys(BUSY, 1), {name: steps[-1] for name, steps in self.steps.items()}
        return (state, {name: rng.getrandbits(1) for name in BUSY},
                {name: rng.choice(steps) for name, steps in self.steps.items()})

    def _count(self, state, busy, events):
        now = dict(self.history[-1])
        for name, value in (busy | events).items():
            now[name] += value
        now["cycles"] += 1
        if state != MacState.IDLE:
            now[f"mac_{state.name.lower()}"] += 1
        elif busy["post_busy"] or busy["store_busy"]:
            now["mac_idle_post"] += 1
        else:
            now["mac_idle_load" if busy["load_busy"] else "mac_idle_host"] += 1
        self.history.append(now)

    async def cycle(self, *, start=False, kind="random"):
        """Pass a cycle; if ``start``, ask for a record unless one is under way."""
        ctx, counters, record = self.ctx, self.dut.counters, self.dut.record
        state, busy, events = self._events(kind)
        ctx.set(counters.state, state)
        for name, value in (busy | events).items():
            ctx.set(getattr(counters, name), value)
        starts = start and not ctx.get(record.busy)
        ready = self.rng.random() >= self.stall
        ctx.set(record.start, starts)
        ctx.set(self.dut.o.ready, ready)
        if starts:
            self.starts.append(len(self.history))
        if ready and ctx.get(self.dut.o.valid):
            self.taken.append(len(self.history))
            self.bytes += ctx.get(self.dut.o.payload).to_bytes(self.machine.bus_bytes, "little")
            if len(self.bytes) == 4 * RECORD_WORDS:
                self.records.append([int.from_bytes(self.bytes[i:i + 4], "little") for i in range(0, 128, 4)])
                self.bytes.clear()
        await ctx.tick()
        self._count(state, busy, events)

    async def finish(self):
        """Wait for the record under way."""
        while len(self.records) < len(self.starts):
            await self.cycle()

    def check(self, offsets=None):
        """Compare every record with the counts of the cycle it names, which must come soon after its start."""
        offsets = offsets or dict.fromkeys(NAMES, 0)
        assert self.records
        for words, start in zip(self.records, self.starts, strict=True):
            shown = dict(zip(NAMES, words, strict=False))
            cycles = (shown["cycles"] - offsets["cycles"]) % MOST
            # Cycle n, from 1 on, is in the counts from the next on: the walk begins after cycle ``cycles``.
            assert 1 <= cycles - start <= 1 + len(COUNTERS)
            assert shown == {name: (count + offsets[name]) % MOST for name, count in self.history[cycles - 1].items()}
            high = (cycles + offsets["cycles"]) // MOST - offsets["cycles"] // MOST
            rest = dict.fromkeys(range(len(NAMES), RECORD_WORDS), 0) | {CYCLES_HIGH_WORD: high, FAULT_WORD: FAULT,
                                                                        FAULT_ADDRESS_WORD: FAULT_ADDRESS}
            assert dict(enumerate(words[len(NAMES):], len(NAMES))) == rest


@cache
def recorder(machine):
    return Recorder(machine)


def run(machine, seed, body, *, stall=0.0, deadline=20_000):
    """Simulate ``body(driver)`` on a recorder of ``machine``."""
    dut = recorder(machine)

    async def testbench(ctx):
        await body(Driver(ctx, machine, seed, stall=stall).of(dut))

    simulate(dut, testbench, deadline=deadline)


def test_every_state_of_the_array_but_idle_has_its_counter():
    assert {state.name for state in MacState} - {state.name for state in STATES.values()} == {"IDLE"}
    assert {f"mac_{state.name.lower()}" for state in STATES.values()} == set(STATES)


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_every_event_has_its_steps(machine):
    assert set(event_steps(machine)) == set(EVENTS)
    assert all(steps[0] == 0 and steps.step & (steps.step - 1) == 0 for steps in event_steps(machine).values())


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize(("stall", "often"), [(0.0, 0.01), (0.5, 0.05), (0.95, 0.05), (0.0, 1.0), (0.5, 1.0)])
def test_records_hold_the_counts_of_one_cycle(machine, stall, often):
    async def body(driver):
        for _ in range(1200):
            await driver.cycle(start=driver.rng.random() < often)
        await driver.finish()
        driver.check()

    run(machine, 1, body, stall=stall)


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_nothing_is_lost_when_all_step_by_the_most(machine):
    async def body(driver):
        for cycle in range(900):
            await driver.cycle(start=cycle % 300 == 299, kind="most")
        await driver.finish()
        driver.check()

    run(machine, 2, body)


@pytest.mark.parametrize("cycle", [*range(3), *range(24, 30), *range(INTERVAL - 3, INTERVAL + 3)])
def test_records_right_after_reset(cycle):
    async def body(driver):
        for each in range(cycle + 1):
            await driver.cycle(start=each == cycle)
        await driver.finish()
        driver.check()

    run(PRESETS["nano"], cycle, body)


@pytest.mark.parametrize("cycles", range(INTERVAL))
def test_records_begin_anywhere_in_a_walk(cycles):
    async def body(driver):
        for each in range(120 + cycles):
            await driver.cycle(start=each in (80, 80 + cycles), kind="most")
        await driver.finish()
        driver.check()

    run(PRESETS["base"], cycles, body)


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_counts_wrap(machine):
    async def body(driver):
        totals = driver.dut.counters.totals
        for _ in range(100):
            await driver.cycle()
        while driver.ctx.get(driver.dut.counters.walk.sums.valid):
            await driver.cycle()
        offsets = {}
        for index, name in enumerate(NAMES):
            offsets[name] = -1 - driver.rng.randrange(5) - driver.ctx.get(totals.data[index])
            driver.ctx.set(totals.data[index], driver.ctx.get(totals.data[index]) + offsets[name] + MOST)
        for cycle in range(1000):
            await driver.cycle(start=cycle % 100 == 0)
        await driver.finish()
        driver.check(offsets)
        assert all(words[index] < MOST // 2 for words in driver.records[-1:] for index in range(len(NAMES)))
        assert [words[CYCLES_HIGH_WORD] for words in driver.records[-2:]] == [1, 1]

    run(machine, 3, body)


WIDE = [Machine(lanes=4, clusters=4, bus_bytes=bus) for bus in (32, 64)]


@pytest.mark.parametrize("machine", [*PRESETS.values(), *WIDE], ids=[*PRESETS, "bus 32", "bus 64"])
def test_a_record_takes_as_many_cycles_as_said(machine):
    async def body(driver):
        for cycle in range(2000):
            await driver.cycle(start=cycle % 101 == 0)
        words = 4 * RECORD_WORDS // machine.bus_bytes
        for number, record in enumerate(driver.records):
            first, *_, last = driver.taken[number * words:(number + 1) * words]
            begins = record[0]
            assert first - begins == FIRST_CYCLE[machine.bus_bytes]
            assert last - begins + 1 == RECORD_CYCLES[machine.bus_bytes]

    run(machine, 4, body)


def test_causes_add_up_to_cycles_in_every_record():
    async def body(driver):
        for _ in range(2000):
            await driver.cycle(start=True)
        for words in driver.records:
            assert sum(words[NAMES.index(name)] for name in CAUSES) == words[NAMES.index("cycles")]

    run(PRESETS["large"], 5, body)


def test_walks_begin_often_enough_without_a_request():
    dut = Counters(PRESETS["nano"])
    begun = []

    async def testbench(ctx):
        for cycle in range(1000):
            if ctx.get(dut.walk.begins):
                begun.append(cycle)
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    assert begun == list(range(INTERVAL - 1, 1000, INTERVAL))
