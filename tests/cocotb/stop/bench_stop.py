"""Hostile programs end in a bounded time, stopped or aborted in any cycle on any memory, and the next one is exact.

So are programs of random layers. Run by tests/cocotb/stop/__main__.py, which sets ``PORT``, ``COUNT`` of hostile
programs, ``STOPS`` of the others, ``FIGURES``, the file for what was measured, and ``COPROCESSOR_MACHINE``.
"""

import json
import os
import random
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, SimTimeoutError, with_timeout

from tests.cocotb.bench_coprocessor import MACHINE, commands_of, execute, power_of_two, random_program
from tests.cocotb.stop.hostile import hostile_programs
from tests.cocotb.stop.hosts import HOSTS
from tests.cocotb.stop.slow_memory import SlowMemory
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission

PORT, COUNT, STOPS = os.environ["PORT"], int(os.environ["COUNT"]), int(os.environ.get("STOPS", "0"))
BOUND_CYCLES = 600
PERIOD_NS = 2
PROGRAMS = 7
HOSTILE_BYTES = 1 << 16
LONGEST_CYCLES = 3000
"""Before the stop; the first program of each kind has had its queues full by then."""
DEADLINE_CYCLES = 400_000
MEMORIES = ((1, 1), (20, 1), (200, 1), (20, 3), (1000, 1), (300, 10))
"""Latency, and cycles for which a channel moves once."""
NEXT_LATENCY = 20
"""The most for the program behind a stop: its time is not what is looked at."""


class Bench:
    """A coprocessor behind its port, memory, and a clock that counts."""

    def __init__(self, dut, seed: int, program: int | None = None) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        self.compiled, self.contents = random_program(seed % PROGRAMS if program is None else program, count=1)
        self.own = power_of_two(self.compiled.memory_bytes)
        latency, period = self.rng.choice(MEMORIES)
        self.memory = SlowMemory(self.own + HOSTILE_BYTES, MACHINE.bus_bytes, self.rng, latency, period)
        self.put_contents()
        self.hostile = AddressWindow(MAIN_BASE + self.own, MAIN_BASE + self.own + HOSTILE_BYTES, Permission.READ_WRITE)
        self.cycle = 0

    def put_contents(self) -> None:
        """Put what the program of random layers reads into memory."""
        for address, data in self.contents.items():
            self.memory.bytes[address - MAIN_BASE:address - MAIN_BASE + len(data)] = data

    async def start(self) -> None:
        dut = self.dut
        self.tasks = [cocotb.start_soon(Clock(dut.clk, PERIOD_NS, unit="ns").start())]
        dut.stop_request.value = 0
        self.set_windows((self.hostile,))
        dut.rst.value = 1
        self.host = HOSTS[PORT](dut)
        self.memory.drive(dut)
        for _ in range(3):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        self.tasks.append(cocotb.start_soon(self.run()))
        await RisingEdge(dut.clk)

    async def run(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)  # outputs are those before this edge, inputs go behind it
            self.memory.sample(self.dut)
            self.cycle += 1
            self.memory.drive(self.dut)

    def set_windows(self, windows: tuple[AddressWindow, ...]) -> None:
        for index in range(4):
            window = windows[index] if index < len(windows) else None
            value = window and window.base | window.limit << 32 | window.readable << 64 | window.writable << 65
            getattr(self.dut, f"windows__{index}").value = value or 0

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk)

    async def within(self, task, cycles: int) -> int:
        """Wait for a task; return the cycles that it took, at most ``cycles``."""
        began, waiting = self.cycle, cocotb.start_soon(task)
        try:
            await with_timeout(waiting, cycles * PERIOD_NS, "ns")
        except SimTimeoutError as late:
            raise AssertionError(f"not quiet in {cycles} cycles, on memory of {self.memory.latency}") from late
        await RisingEdge(self.dut.clk)
        return self.cycle - began

    async def stop(self, *, abort: bool) -> int:
        """Stop or abort; return the cycles until all is quiet."""
        async def ends() -> None:
            await (self.host.abort() if abort else self.host.stop())
            await self.host.until_quiet()

        return await self.within(ends(), BOUND_CYCLES + self.memory.burst_cycles())

    async def check_next_program(self) -> None:
        """Run a program of random layers, on fast memory; what memory holds must end as in the functional engine."""
        self.memory.latency, self.memory.period = min(self.memory.latency, NEXT_LATENCY), 1
        left = bytes(self.memory.bytes[self.own:])
        self.put_contents()
        engine = execute(self.compiled, self.contents, self.own)
        self.set_windows(self.compiled.windows)
        await self.within(self.host.send(commands_of(self.compiled)), DEADLINE_CYCLES)
        await self.within(self.host.until_quiet(), DEADLINE_CYCLES)
        assert await self.host.fault_code() == 0
        found = np.frombuffer(bytes(self.memory.bytes[:self.own]), np.int8).copy()
        expected = engine.memory.bytes.copy()
        for record in self.compiled.memory.records:
            place = record - MAIN_BASE
            found[place:place + 4 * RECORD_WORDS] = expected[place:place + 4 * RECORD_WORDS] = 0
        np.testing.assert_array_equal(found, expected)
        assert bytes(self.memory.bytes[self.own:]) == left, "a write of the first program came after its end"


@cocotb.test()
async def each_program_ends_within_the_bound_and_the_next_is_exact(dut):
    figures = []
    for number in range(COUNT + STOPS):
        bench = Bench(dut, cocotb.RANDOM_SEED + number)
        programs = hostile_programs(bench.hostile, MACHINE, bench.rng)
        await bench.start()
        if number < COUNT:
            program, abort = programs[number % len(programs)], number // len(programs) % 2 == 0
        else:
            program, abort = commands_of(bench.compiled), number % 2 == 0
            bench.set_windows(bench.compiled.windows)
        sender = cocotb.start_soon(bench.host.send(program))
        await bench.cycles(bench.rng.randrange(20, LONGEST_CYCLES))
        # An offered instruction is withdrawn, by an interrupt; a write that is held up stays so.
        sender.cancel()
        await bench.cycles(2)
        took = [await bench.stop(abort=abort)]
        if not abort:
            assert await bench.host.fault_code()
            took.append(await bench.stop(abort=True))
        assert await bench.host.fault_code() == 0
        await bench.check_next_program()
        figures.append({"hostile": number < COUNT, "abort": abort, "latency": bench.memory.latency,
                        "cycles": max(took), "beyond_burst": max(took) - bench.memory.burst_cycles()})
        for task in bench.tasks:
            task.cancel()
    Path(os.environ["FIGURES"]).write_text(json.dumps(figures))
