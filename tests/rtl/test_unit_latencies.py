# amaranth: UnusedElaboratable=no
"""Latencies through a unit and its neighbours, measured on the gateware: those that the cycle model is built on."""

import pytest
from amaranth import Elaboratable, Module
from amaranth.lib.wiring import connect

from tests.support.streams import simulate
from tilewright.isa.assembler import command
from tilewright.isa.machine import PRESETS
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.bus.axi import AxiReader, AxiWriter
from tilewright.rtl.load.load import LoadUnit
from tilewright.rtl.port.performance_counters import Counters
from tilewright.rtl.port.semaphores import SIGNALLERS, Semaphores
from tilewright.rtl.port.window_check import WindowCheck
from tilewright.rtl.store.store import StoreUnit
from tilewright.sim.timing import latencies

CYCLES = 100
EVERYWHERE = {"base": 0, "limit": (1 << 32) - 1, "readable": 1, "writable": 1}


class UnitInItsPlace(Elaboratable):
    """The load or the store unit between its command port and AXI, with the semaphores; memory is the testbench."""

    def __init__(self, machine, unit):
        self.unit = unit
        self.is_store = isinstance(unit, StoreUnit)
        self.check = WindowCheck(machine.bus_bytes, is_write=self.is_store)
        self.axi = (AxiWriter if self.is_store else AxiReader)(machine.bus_bytes)
        self.semaphores = Semaphores()
        self.counters = Counters(machine)
        self.buffer = ResultBuffer(machine)

    def elaborate(self, platform):
        m = Module()
        unit = self.unit
        m.submodules += [unit, self.check, self.axi, self.semaphores, self.counters, self.buffer]
        connect(m, unit.write_request if self.is_store else unit.read_request, self.check.i)
        connect(m, self.check.o, self.axi.i)
        if self.is_store:
            connect(m, unit.write_data, self.axi.data)
            connect(m, unit.store_read, self.buffer.store_read)
            connect(m, self.buffer.store_data, unit.store_data)
            connect(m, unit.counters, self.counters.walk)
            m.d.comb += [unit.writer_idle.eq(self.axi.idle & ~self.check.busy), unit.activation_write.ready.eq(1)]
        else:
            connect(m, self.axi.o, unit.read_data)
        for name, units in SIGNALLERS.items():
            if ("store" if self.is_store else "load") in units:
                m.d.comb += getattr(self.semaphores, f"{name}_signal").eq(getattr(unit, f"{name}_signal"))
        return m


async def watch(ctx, dut, commands, events, before_tick=lambda cycle, seen: None):
    """Offer ``commands`` when the counters are between two walks; return the cycles in which each event was seen."""
    seen = {name: [] for name in ("taken", *events)}
    await ctx.tick().repeat(latencies.WALK_CYCLES + 1)
    waiting = list(commands)
    port = dut.unit.commands
    for cycle in range(CYCLES):
        if waiting:
            word = waiting[0]
            ctx.set(port.payload, {"funct3": word.funct3, "variant": word.funct7 >> 4, "flags": word.funct7 & 15,
                                   "rs1": word.rs1, "rs2": word.rs2})
        ctx.set(port.valid, bool(waiting))
        before_tick(cycle, seen)
        if waiting and ctx.get(port.ready):
            waiting.pop(0)
            seen["taken"].append(cycle)
        for name, value in events.items():
            if ctx.get(value):
                seen[name].append(cycle)
        await ctx.tick()
    return seen


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_load(machine):
    dut = UnitInItsPlace(machine, LoadUnit(machine))
    bus = dut.axi.m_axi

    async def testbench(ctx):
        def answer(cycle, seen):
            due = bool(seen["address"]) and cycle == seen["address"][0] + 20
            ctx.set(bus.rvalid, due)
            ctx.set(bus.rlast, due)

        ctx.set(dut.check.windows[0], EVERYWHERE)
        ctx.set(bus.arready, 1)
        seen = await watch(ctx, dut, [command("ldw", "main", ["signal_wgt_ready"], address=0, base=0, words=1)], {
            "address": bus.arvalid, "word": bus.rvalid & bus.rready, "ready": dut.semaphores.wgt_ready_available,
        }, answer)
        assert seen["address"][0] - seen["taken"][0] == latencies.FRONT_TO_BUS
        assert seen["ready"][0] - seen["word"][0] == latencies.WORD_TO_SIGNAL

    simulate(dut, testbench)


def store_commands(variant, *flags, **place):
    return [
        command("sta", "set_row", chunk_bytes=4, chunks=1, chunk_step=0),
        command("sta", "set_source", row_step=0),
        command("sta", "set_target", target_chunk_step=0, target_row_step=0),
        command("sta", variant, list(flags), base=0, rows=1, **place),
    ]


def watch_store(machine, commands):
    """Return the cycles of what is seen of ``commands`` in the store unit, whose memory takes every word at once."""
    dut = UnitInItsPlace(machine, StoreUnit(machine))
    bus, unit, seen = dut.axi.m_axi, dut.unit, {}

    async def testbench(ctx):
        ctx.set(dut.check.windows[0], EVERYWHERE)
        ctx.set(bus.awready, 1)
        ctx.set(bus.wready, 1)
        seen.update(await watch(ctx, dut, commands, {
            "read": unit.store_read.valid & unit.store_read.ready,
            "word": bus.wvalid,
            "out_free": dut.semaphores.out_free_available,
            "act_ready": dut.semaphores.act_ready_available,
            "walk": dut.counters.walk.begins,
        }))

    simulate(dut, testbench)
    return seen


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_store_to_memory(machine):
    seen = watch_store(machine, store_commands("memory", "signal_out_free", address=0))
    assert seen["word"][0] - seen["taken"][-1] == latencies.STORE_TO_BUS
    assert seen["word"][0] - seen["read"][0] == latencies.READ_TO_BUS
    assert seen["out_free"][0] - seen["read"][-1] == latencies.READ_TO_SIGNAL


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("variant", ["linear", "blocked"])
def test_store_to_the_activation_buffer(machine, variant):
    seen = watch_store(machine, store_commands(variant, "signal_act_ready", target=0))
    assert seen["act_ready"][0] - seen["read"][-1] == latencies.READ_TO_LOCAL


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_status_record(machine):
    seen = watch_store(machine, [command("sta", "status", address=0)])
    complete = seen["taken"][0] + 1  # nothing is under way: in the cycle after it has been taken
    walk = next(cycle for cycle in seen["walk"] if cycle > seen["taken"][0])
    assert walk - complete == latencies.RECORD_TO_WALK
    counters_per_word = machine.bus_bytes // 4
    assert seen["word"][0] - walk - counters_per_word == latencies.WALK_TO_BUS
