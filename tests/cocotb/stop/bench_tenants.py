"""Programs of two tenants: after an abort that erases, every way out gives the second one zeros.

Run by tests/cocotb/stop/test_tenants.py, which sets ``PORT``, ``ERASES`` and ``COPROCESSOR_MACHINE``. Without erasure
every one of the same programs does read what was left, which shows that it tries.
"""

import os
from dataclasses import dataclass

import cocotb
import numpy as np

from tests.cocotb.bench_coprocessor import MACHINE, commands_of, execute
from tests.cocotb.stop.bench_stop import BOUND_CYCLES, DEADLINE_CYCLES, Bench
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.assembler import command as make
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.encoding import Instruction, Variant
from tilewright.isa.erasure import erasing_cycles
from tilewright.isa.memory import MAIN_BASE
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory

ERASES = os.environ["ERASES"] == "1"
_KEPT = {"wait_out_ready", "signal_out_ready", "wait_out_free", "signal_out_free"}
_SIGNALLED = {"act_ready": "activations", "res_ready": "residuals"}
_WEIGHTS = {"main": "weights", "ninths": "ninths", "parameters": "parameters", "table": "tables"}


def loaded(instruction: Instruction, variant: Variant) -> str | None:
    """Return what a command loads, coded or not; None for one of another unit, and for settings."""
    signals = {flag.semaphore for flag in variant.flags if flag is not None and flag.action == "signal"}
    if variant.unit != "load" or not signals:
        return None
    return _WEIGHTS[variant.name.removeprefix("coded_")] if instruction.mnemonic == "ldw" else _SIGNALLED[signals.pop()]


@dataclass(frozen=True)
class WayOut:
    """A program of random layers, of seed ``seed``, that loads all it uses but ``what``."""

    seed: int
    what: str


WAYS = (WayOut(6, "tables"), WayOut(6, "residuals"), WayOut(6, "parameters"), WayOut(9, "weights"),
        WayOut(11, "ninths"), WayOut(11, "weights"), WayOut(11, "activations"), WayOut(9, "activations"),
        WayOut(9, "sums"), WayOut(3, "sums"), WayOut(6, "results"))


def program(way: WayOut, commands: list[EncodedCommand], dump: int) -> list[EncodedCommand]:
    """Return what the second program sends; ``dump`` is where results go that nothing has computed."""
    kept = []
    for each in commands:
        mnemonic, name = each.instruction.mnemonic, each.variant.name
        if loaded(each.instruction, each.variant) == way.what:
            continue
        kept.append(make(mnemonic, name, [flag for flag in each.flags if flag in _KEPT], **each.operands))
    if way.what == "results":
        row = MACHINE.result_bytes
        return [make("sta", "set_row", chunk_bytes=row, chunks=1), make("sta", "set_source"), make("sta", "set_target"),
                make("sta", "memory", address=dump, rows=1)]
    return kept


def accumulating(commands: list[EncodedCommand]) -> list[EncodedCommand]:
    """Return a program whose first sums start from what the accumulators hold."""
    first = next(number for number, each in enumerate(commands) if "accumulate" in each.operands)
    each = commands[first]
    changed = make(each.instruction.mnemonic, each.variant.name, each.flags, **{**each.operands, "accumulate": 1})
    return [*commands[:first], changed, *commands[first + 1:]]


class TenantBench(Bench):
    """Two programs, one after the other."""

    def __init__(self, dut, way: WayOut) -> None:
        super().__init__(dut, way.seed, program=way.seed)
        self.way = way
        self.memory.latency, self.memory.period = 2, 1

    async def run_first(self) -> None:
        """Run a program as it was compiled; it is exact."""
        self.fill()
        self.set_windows(self.compiled.windows)
        await self.within(self.host.send(commands_of(self.compiled)), DEADLINE_CYCLES)
        await self.within(self.host.until_quiet(), DEADLINE_CYCLES)
        np.testing.assert_array_equal(*self.but_records(execute(self.compiled, self.contents, self.own).memory.bytes))

    def fill(self) -> None:
        """Put the program's tensors into memory."""
        self.memory.bytes[:] = b"\x55" * len(self.memory.bytes)
        for address, data in self.contents.items():
            self.memory.bytes[address - MAIN_BASE:address - MAIN_BASE + len(data)] = data

    def but_records(self, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of memory, and those that are expected, without records, which tell the time."""
        found, expected = np.frombuffer(bytes(self.memory.bytes[:len(expected)]), np.int8).copy(), expected.copy()
        for record in self.compiled.memory.records:
            place = record - MAIN_BASE
            found[place:place + 4 * RECORD_WORDS] = expected[place:place + 4 * RECORD_WORDS] = 0
        return found, expected

    async def abort(self) -> int:
        async def ends() -> None:
            await self.host.abort(erase=ERASES)
            await self.host.until_quiet()

        return await self.within(ends(), BOUND_CYCLES + self.memory.burst_cycles() + erasing_cycles(MACHINE))

    async def run_second(self) -> int:
        """Run a program that lacks a load; return how many bytes differ from those of an engine that has just begun."""
        windows = (*self.compiled.windows[:3], self.hostile)
        commands = program(self.way, commands_of(self.compiled), self.hostile.base)
        self.fill()
        memory = MainMemory(len(self.memory.bytes), windows)
        memory.bytes[:] = np.frombuffer(bytes(self.memory.bytes), np.int8)
        Executor(MACHINE, memory).run(commands)
        self.set_windows(windows)
        for each in accumulating(commands) if self.way.what == "sums" else commands:
            await self.within(self.host.send([each]), DEADLINE_CYCLES)
            if each.variant.unit in ("load", "store"):  # in place of the semaphores of what is left out
                await self.within(self.host.until_quiet(), DEADLINE_CYCLES)
        await self.within(self.host.until_quiet(), DEADLINE_CYCLES)
        assert await self.host.fault_code() == 0
        found, expected = self.but_records(memory.bytes)
        return int((found != expected).sum())


@cocotb.test()
async def the_next_program_reads_nothing_of_the_first(dut):
    read, longest = {}, 0
    for way in WAYS:
        bench = TenantBench(dut, way)
        await bench.start()
        await bench.run_first()
        longest = max(longest, await bench.abort())
        read[way] = await bench.run_second()
        for task in bench.tasks:
            task.cancel()
    dut._log.info("%d cycles for an abort, of %d to erase", longest, erasing_cycles(MACHINE))
    # Any abort of a machine with erasure makes the accumulators forget.
    wrong = {way: count for way, count in read.items() if (count == 0) != (ERASES or way.what == "sums")}
    assert not wrong, f"bytes of the first program that were read: {wrong}"
