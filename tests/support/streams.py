"""Drive and drain streams; the only place that knows the valid/ready handshake."""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from amaranth.sim import Simulator


async def put(ctx, stream, payload) -> None:
    """Offer ``payload`` until it is taken."""
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    await ctx.tick().until(stream.ready)
    ctx.set(stream.valid, 0)


async def get(ctx, stream):
    """Wait for one payload and take it."""
    ctx.set(stream.ready, 1)
    (payload,) = await ctx.tick().sample(stream.payload).until(stream.valid)
    ctx.set(stream.ready, 0)
    return payload


async def put_all(ctx, stream, payloads: Iterable, *, stall: float = 0.0, seed: int = 0) -> None:
    """Offer all ``payloads``; before each, idle for a cycle with probability ``stall``, again and again."""
    rng = random.Random(seed)
    for payload in payloads:
        while rng.random() < stall:
            await ctx.tick()
        await put(ctx, stream, payload)


async def get_all(ctx, stream, count: int, *, stall: float = 0.0, seed: int = 1) -> list[tuple[int, Any]]:
    """Take ``count`` payloads, each with its cycle; refuse in any cycle with probability ``stall``.

    Cycle 0 is the one that begins when this is called.
    """
    rng = random.Random(seed)
    arrivals: list[tuple[int, Any]] = []
    cycle = 0
    while len(arrivals) < count:
        ready = rng.random() >= stall
        ctx.set(stream.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        if valid and ready:
            arrivals.append((cycle, payload))
        cycle += 1
    ctx.set(stream.ready, 0)
    return arrivals


def simulate(dut, *testbenches: Callable, deadline: int = 10_000) -> None:
    """Run ``dut`` in the domain ``sync`` until every testbench has returned.

    The simulator stays with ``dut``: given again, it is reset (signals and memories hold what they begin with), not
    built again, which takes most of a short run's time.

    Raises
    ------
    TimeoutError
        If one has not within ``deadline`` cycles.
    """
    kept = vars(dut).pop("_simulated", None) or _Simulated(dut)
    kept.run(testbenches, deadline)
    dut._simulated = kept  # not where a testbench has failed, which leaves others waiting


class _Simulated:
    """A simulator and the testbenches of its present run, of which each run has its own."""

    def __init__(self, dut) -> None:
        self.sim = Simulator(dut)
        self.sim.add_clock(1e-6)
        self.name = type(dut).__name__
        self.present: Sequence[Callable] = ()
        self.places = 0

    def run(self, testbenches: Sequence[Callable], deadline: int) -> None:
        self.sim.reset()
        self.present = testbenches
        for place in range(self.places, len(testbenches)):
            self.sim.add_testbench(partial(self._testbench, place))
        self.places = max(self.places, len(testbenches))
        for _ in range(2 * deadline):
            if not self.sim.advance():
                return
        raise TimeoutError(f"{self.name} was not done in {deadline} cycles")

    async def _testbench(self, place: int, ctx) -> None:
        if place < len(self.present):
            await self.present[place](ctx)


def transfer_timed(
    dut,
    sent: Iterable,
    *,
    count: int | None = None,
    stall: float = 0.0,
    seed: int = 0,
    deadline: int = 10_000,
) -> list[tuple[int, Any]]:
    """Send ``sent`` through ``dut.i``; return ``count`` pairs (cycle, payload) that left ``dut.o``.

    Both sides stall with probability ``stall`` per cycle, independently; ``count`` is ``len(sent)`` by
    default. With ``stall`` 0 the first payload is offered in cycle 0, so cycles give rate and latency.

    Raises
    ------
    TimeoutError
        If ``dut`` has not passed everything on within ``deadline`` cycles.
    """
    sent = list(sent)
    received: list[tuple[int, Any]] = []

    async def producer(ctx):
        await put_all(ctx, dut.i, sent, stall=stall, seed=seed)

    async def consumer(ctx):
        expected = len(sent) if count is None else count
        received.extend(await get_all(ctx, dut.o, expected, stall=stall, seed=seed + 1))

    simulate(dut, producer, consumer, deadline=deadline)
    return received


def transfer(
    dut,
    sent: Iterable,
    *,
    count: int | None = None,
    stall: float = 0.0,
    seed: int = 0,
    deadline: int = 10_000,
) -> list[Any]:
    """Send ``sent`` through ``dut.i``; return what left ``dut.o`` (see `transfer_timed`)."""
    arrivals = transfer_timed(dut, sent, count=count, stall=stall, seed=seed, deadline=deadline)
    return [payload for _, payload in arrivals]
