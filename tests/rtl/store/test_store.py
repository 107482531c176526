# amaranth: UnusedElaboratable=no
"""Rates of the store unit; tests/cocotb/test_load_store.py has the volume."""

import random

import pytest
from amaranth.sim import Simulator

from tests.support.load_store import random_store_commands
from tests.support.load_store_drivers import MEMORY_LATENCY, STORE_HALF
from tests.support.load_store_dut import carry_out
from tilewright.isa.assembler import command
from tilewright.isa.machine import PRESETS, Machine
from tilewright.rtl.buffers.activation_port import ActivationPort

BASE = PRESETS["base"]
WIDE = {f"bus {bus}": Machine(name=f"bus_{bus}", lanes=4, clusters=4, tiles=2, post_lanes=2, bus_bytes=bus)
        for bus in (32, 64)}
MACHINES = {**PRESETS, **WIDE}


def settings(chunk_bytes, chunks=4, target_chunk_step=128):
    return [
        command("sta", "set_row", chunk_bytes=chunk_bytes, chunks=chunks, chunk_step=chunk_bytes + 3),
        command("sta", "set_source", row_step=1000),
        command("sta", "set_target", target_chunk_step=target_chunk_step, target_row_step=2048),
    ]


def span(cycles):
    return cycles[-1] - cycles[0] + 1


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_random_commands(machine, stall):
    carry_out(machine, stores=random_store_commands(random.Random(3), 3), stall=stall)


def test_slow_memory_holds_up_the_result_buffer():
    stores = [*settings(64), command("sta", "memory", ["signal_out_free"], address=3, base=5, rows=4)]
    carry_out(BASE, stores=stores, memory_stall=0.9)


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("chunk_bytes", [4, 8, 16, 37, 64])
@pytest.mark.parametrize("address", [0, 3])
def test_short_runs_go_to_memory_a_bus_word_per_cycle(machine, chunk_bytes, address):
    stores = [*settings(chunk_bytes),
              *[command("sta", "memory", ["signal_out_free"], address=address + 8192 * i, base=5, rows=3)
                for i in range(3)]]
    _, store = carry_out(machine, stores=stores)
    words = (address + chunk_bytes - 1) // machine.bus_bytes + 1
    # A command costs a cycle of the front, hidden unless its last run is shorter than that.
    assert span(store.beats) == len(store.beats) + 2 * (words == 1)
    assert len(store.beats) == 3 * 12 * words


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("variant", ["linear", "blocked"])
@pytest.mark.parametrize("chunk_bytes", [4, 8, 16, 37])
def test_runs_go_to_the_activation_buffer_a_bus_word_per_cycle(machine, variant, chunk_bytes):
    stores = [*settings(chunk_bytes, target_chunk_step=16 * chunk_bytes),
              command("sta", variant, ["signal_act_ready"], target=STORE_HALF, base=5, rows=6)]
    _, store = carry_out(machine, stores=stores)
    assert span(store.writes) == len(store.writes) == 24 * -(-chunk_bytes // machine.written_bytes)


@pytest.mark.parametrize(("flags", "waits"), [(["signal_out_free"], False), (["signal_mem_ready"], True)])
@pytest.mark.parametrize("chunks", [1, 4])
def test_only_mem_ready_keeps_the_next_command_waiting(flags, waits, chunks):
    stores = [*settings(64, chunks),
              *[command("sta", "memory", flags, address=4096 * i, base=0, rows=1) for i in range(2)]]
    _, store = carry_out(BASE, stores=stores)
    assert (span(store.beats) >= len(store.beats) + MEMORY_LATENCY) == waits
    assert (span(store.beats) == len(store.beats)) != waits


def test_load_goes_first_at_the_port_of_the_activation_buffer():
    dut = ActivationPort(BASE)

    async def testbench(ctx):
        for name, value in {"blocked": 1, "address": 3, "count": 4, "data": 5}.items():
            ctx.set(getattr(dut.load, name), value)
        ctx.set(dut.store.payload, {"blocked": 0, "address": 6, "count": 7, "data": 8})
        for load, store in [(0, 0), (0, 1), (1, 0), (1, 1)]:
            ctx.set(dut.load.valid, load)
            ctx.set(dut.store.valid, store)
            assert ctx.get(dut.o.valid) == (load or store)
            assert ctx.get(dut.store.ready) == (not load)
            if load or store:
                seen = tuple(ctx.get(getattr(dut.o, name)) for name in ("blocked", "address", "count", "data"))
                assert seen == ((1, 3, 4, 5) if load else (0, 6, 7, 8))

    sim = Simulator(dut)
    sim.add_testbench(testbench)
    sim.run()


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_stores_right_behind_a_record_wait_for_all_of_it(machine, stall):
    place = iter(range(0, 1 << 16, 4096))
    status = [command("sta", "status", address=next(place)) for _ in range(5)]
    memory = [command("sta", "memory", ["signal_out_free"], address=next(place), base=5, rows=2) for _ in range(3)]
    local = command("sta", "linear", ["signal_act_ready"], target=STORE_HALF, base=9, rows=2)
    stores = [*settings(37), memory[0], *status[:3], memory[1], status[3], local, memory[2], status[4]]
    carry_out(machine, stores=stores, stall=stall)
