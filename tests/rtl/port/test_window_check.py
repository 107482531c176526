# amaranth: UnusedElaboratable=no
"""WindowCheck against its definition in plain integers, its rate, and that nothing follows a breach."""

import random
from functools import cache

import pytest

from tests.support.streams import get_all, put_all, simulate
from tilewright.rtl.port.window_check import WindowCheck

# One readable only; one both; one that touches it, writable only; one that ends where the address space does.
WINDOWS = [
    {"base": 0x0000_1000, "limit": 0x0000_5000, "readable": 1, "writable": 0},
    {"base": 0x8000_0000, "limit": 0x8001_0000, "readable": 1, "writable": 1},
    {"base": 0x8001_0000, "limit": 0x8002_0000, "readable": 0, "writable": 1},
    {"base": 0xFFFF_0000, "limit": 0xFFFF_FFFF, "readable": 1, "writable": 1},
]

window_check = cache(WindowCheck)


def allowed(address, beats, data_bytes, *, is_write):
    end = address + beats * data_bytes
    return beats > 0 and address % data_bytes == 0 and any(
        window["base"] <= address and end <= window["limit"]
        for window in WINDOWS
        if window["writable" if is_write else "readable"]
    )


def pass_through(requests, *, data_bytes=8, is_write=False, windows=WINDOWS, cycles=None, stall=0.0):
    """Offer ``requests``; return what left in ``cycles``, the cycles in which it did, and the fault."""
    dut = window_check(data_bytes, is_write=is_write, windows=len(windows))
    passed, faults = [], []
    cycles = 4 * len(requests) + 8 if cycles is None else cycles

    async def bench(ctx):
        rng = random.Random(1)
        for port, window in zip(dut.windows, windows, strict=True):
            ctx.set(port, window)
        position = 0
        for cycle in range(cycles):
            offer = position < len(requests)
            ready = rng.random() >= stall
            ctx.set(dut.i.valid, offer)
            if offer:
                address, beats = requests[position]
                ctx.set(dut.i.payload, {"address": address, "beats": beats})
            ctx.set(dut.o.ready, ready)
            _, _, taken, valid, request = await ctx.tick().sample(dut.i.ready, dut.o.valid, dut.o.payload)
            position += offer and taken
            if valid and ready:
                passed.append((cycle, (request.address, request.beats)))
        faults.append((ctx.get(dut.fault), ctx.get(dut.fault_address)))

    simulate(dut, bench)
    return [request for _, request in passed], [cycle for cycle, _ in passed], faults[0]


def borderline_requests(data_bytes):
    """Return requests that begin or end at, just before or just after an edge of a window, or of memory."""
    edges = sorted({window[edge] & -data_bytes for window in WINDOWS for edge in ("base", "limit")} | {0})
    starts = {(edge + step * data_bytes) % 2**32 for edge in edges for step in (-2, -1, 0, 1)}
    beats = (0, 1, 2, 3, 0x1000 // data_bytes, 0x10000 // data_bytes, 0xFFFF)
    return [(start, count) for start in sorted(starts) for count in beats]


@pytest.mark.parametrize("data_bytes", [4, 8, 16])
@pytest.mark.parametrize("is_write", [False, True])
def test_each_borderline_request_is_judged_by_the_definition(data_bytes, is_write):
    requests = borderline_requests(data_bytes)
    verdicts = [allowed(*request, data_bytes, is_write=is_write) for request in requests]
    assert 10 < sum(verdicts) < len(verdicts) - 10
    for request, verdict in zip(requests, verdicts, strict=True):
        passed, _, fault = pass_through([request], data_bytes=data_bytes, is_write=is_write, cycles=3)
        assert passed == ([request] if verdict else []), f"{request[0]:#x} + {request[1]} beats"
        # Before there is a fault, its address may be that of a request.
        assert fault in (((0, 0), (0, request[0])) if verdict else ((1, request[0]),))


@pytest.mark.parametrize("address", [0x1001, 0x1004, 0x4FFF])
def test_unaligned_requests_are_breaches(address):
    assert pass_through([(address, 1)], data_bytes=8)[2] == (1, address)


def test_empty_windows_hold_nothing():
    nothing = {"base": 0, "limit": 0, "readable": 1, "writable": 1}
    inverted = {"base": 0x2000, "limit": 0x1000, "readable": 1, "writable": 1}
    for address in (0, 0x1000, 0x1800, 0x2000):
        assert pass_through([(address, 1)], windows=[nothing, inverted])[2] == (1, address)


def test_one_request_per_cycle_leaves_one_cycle_later():
    requests = [(0x1000 + 8 * k, 1 + k) for k in range(20)]
    passed, cycles, fault = pass_through(requests)
    assert passed == requests
    assert cycles == [k + WindowCheck.LATENCY for k in range(20)]
    assert fault[0] == 0


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_nothing_follows_a_breach(stall):
    good = [(0x1000 + 8 * k, 1 + k) for k in range(10)]
    passed, _, fault = pass_through([*good, (0x0FF8, 2), *good, (0, 1)], stall=stall, cycles=200)
    assert passed == good
    assert fault == (1, 0x0FF8)


def test_a_window_opened_after_a_breach_does_not_let_it_through():
    dut = WindowCheck(8, is_write=False, windows=1)

    async def bench(ctx):
        await put_all(ctx, dut.i, [{"address": 0x1000, "beats": 1}])
        await ctx.tick()
        assert ctx.get(dut.fault)
        ctx.set(dut.windows[0], WINDOWS[0])
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for _ in range(10):
            assert not ctx.get(dut.i.ready)
            assert not ctx.get(dut.o.valid)
            await ctx.tick()

    simulate(dut, bench)


def test_halt_takes_no_further_request_but_lets_the_taken_one_leave():
    dut = WindowCheck(8, is_write=False, windows=1)
    passed = []

    async def bench(ctx):
        ctx.set(dut.windows[0], WINDOWS[0])
        await put_all(ctx, dut.i, [{"address": 0x1000, "beats": 1}])
        ctx.set(dut.halt, 1)
        ctx.set(dut.i.valid, 1)
        passed.extend(await get_all(ctx, dut.o, 1))
        for _ in range(10):
            assert not ctx.get(dut.i.ready)
            assert not ctx.get(dut.o.valid)
            await ctx.tick()

    simulate(dut, bench)
    assert [request.address for _, request in passed] == [0x1000]


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match=r"data_bytes.*not 6"):
        WindowCheck(6, is_write=False)
    with pytest.raises(ValueError, match=r"WindowCheck windows.*not 0"):
        WindowCheck(8, is_write=False, windows=0)


def test_busy_tells_of_a_request_until_it_has_left():
    dut = WindowCheck(8, is_write=True, windows=len(WINDOWS))
    seen = set()

    async def bench(ctx):
        rng = random.Random(2)
        for port, window in zip(dut.windows, WINDOWS, strict=True):
            ctx.set(port, window)
        ctx.set(dut.i.payload, {"address": 0x8000_0000, "beats": 4})
        inside = 0
        for _ in range(200):
            ctx.set(dut.i.valid, rng.random() < 0.5)
            ctx.set(dut.o.ready, rng.random() < 0.5)
            _, _, busy, offered, taken, valid, ready = await ctx.tick().sample(
                dut.busy, dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready)
            assert busy == inside
            seen.add((busy, offered & taken, valid & ready))
            inside += (offered & taken) - (valid & ready)

    simulate(dut, bench)
    assert {(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1)} <= seen
