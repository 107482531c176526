"""The result buffer's four clients at once, against a bytearray; post-processing is never refused."""

import random

import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tests.support.streams import simulate
from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.result_buffer import ResultBuffer

CYCLES = 500
SMALL = {name: Machine(name=name, lanes=m.lanes, clusters=m.clusters, post_lanes=m.post_lanes, bus_bytes=m.bus_bytes,
                       result_bytes=1024) for name, m in WINOGRAD_MACHINES.items()}
# Lanes beyond the bus need more banks than the bus has bytes.
SMALL["wide"] = Machine(name="wide", lanes=8, clusters=2, post_lanes=8, bus_bytes=4, result_bytes=1024)


@pytest.mark.parametrize("machine", SMALL.values(), ids=SMALL)
def test_clients_see_one_memory(machine):
    dut = ResultBuffer(machine)
    rng = random.Random(7)
    lanes, bus, size = machine.post_lanes, machine.bus_bytes, machine.result_bytes
    content = bytearray(size)
    post_due, store_due = {}, {}
    refused = dict.fromkeys(("store", "load"), 0)

    def span(count):
        return rng.randrange(80), rng.randint(1, count)  # a small region: clients meet

    async def fill(ctx):
        ctx.set(dut.residual_write.valid, 1)
        for address in range(0, size, bus):
            ctx.set(dut.residual_write.payload, {"address": address, "count": bus, "data": 0})
            await ctx.tick()
        ctx.set(dut.residual_write.valid, 0)

    async def drive(ctx):
        await fill(ctx)
        for cycle in range(CYCLES):
            read_address, read_count = span(lanes)
            store_address, _ = span(1)
            ctx.set(dut.post_read.valid, rng.random() < 0.4)
            ctx.set(dut.post_read.payload, {"address": read_address, "count": read_count})
            ctx.set(dut.store_read.valid, rng.random() < 0.8)
            ctx.set(dut.store_read.payload, store_address)
            taken = 0
            if ctx.get(dut.post_read.valid):
                post_due[cycle + dut.READ_LATENCY] = [content[read_address + i] for i in range(read_count)]
                taken = read_count
                assert not ctx.get(dut.store_read.ready)
                refused["store"] += ctx.get(dut.store_read.valid)
            elif ctx.get(dut.store_read.valid):
                assert ctx.get(dut.store_read.ready)
                store_due[cycle + dut.READ_LATENCY] = bytes(content[store_address + i] for i in range(bus))
                taken = bus
            assert ctx.get(dut.bytes_read) == taken

            post_address, post_count = span(lanes)
            load_address, load_count = span(bus)
            post_data, load_data = rng.randbytes(lanes), rng.randbytes(bus)
            ctx.set(dut.post_write.valid, rng.random() < 0.4)
            ctx.set(dut.post_write.payload, {"address": post_address, "count": post_count, "data": list(post_data)})
            ctx.set(dut.residual_write.valid, rng.random() < 0.8)
            ctx.set(dut.residual_write.payload, {"address": load_address, "count": load_count,
                                                 "data": int.from_bytes(load_data, "little")})
            taken = 0
            if ctx.get(dut.post_write.valid):
                content[post_address : post_address + post_count] = post_data[:post_count]
                taken = post_count
                assert not ctx.get(dut.residual_write.ready)
                refused["load"] += ctx.get(dut.residual_write.valid)
            elif ctx.get(dut.residual_write.valid):
                content[load_address : load_address + load_count] = load_data[:load_count]
                taken = load_count
            assert ctx.get(dut.bytes_written) == taken

            assert ctx.get(dut.store_data.valid) == (cycle in store_due)
            if cycle in store_due:
                assert ctx.get(dut.store_data.payload).to_bytes(bus, "little") == store_due.pop(cycle)
            if cycle in post_due:
                wanted = post_due.pop(cycle)
                assert [ctx.get(dut.post_data[i]) for i in range(len(wanted))] == wanted
            await ctx.tick()

    simulate(dut, drive, deadline=CYCLES + size)
    assert min(refused.values()) > 20
