"""Tens of thousands of values through the requantiser or the residual adder, against isa.numerics."""

import os
import random
from collections import deque
from collections.abc import Iterator

import cocotb
from amaranth.lib.data import StructLayout
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.rtl.arithmetic import test_requantise, test_residual_add
from tilewright.isa import numerics
from tilewright.rtl.arithmetic.residual_add import SETTINGS

META_BITS = 6
PAIRS_EACH = 200

Case = tuple[dict[str, int], int]  # the fields of a request, and the value due


def pack(layout: StructLayout, fields: dict[str, int]) -> int:
    """Return ``fields`` as one number, as the port of ``layout`` takes it."""
    return sum((value & (1 << layout[name].width) - 1) << layout[name].offset for name, value in fields.items())


def requantise_batches(rng: random.Random, count: int) -> Iterator[tuple[None, list[Case]]]:
    requests = [rng.choice(test_requantise.DRAWS)(rng) for _ in range(count)]
    yield None, [(fields, numerics.requantise(**fields)) for fields in requests]


def residual_add_batches(rng: random.Random, count: int) -> Iterator[tuple[int, list[Case]]]:
    """Yield a configuration and the pairs that it is held for, again and again."""
    while count > 0:
        config, pairs = test_residual_add.batch(rng.choice(test_residual_add.DRAWS), rng, PAIRS_EACH)
        pairs = pairs[:count]
        count -= len(pairs)
        cases = [({"a": a, "b": b}, numerics.add_residual(a, b, numerics.ResidualSettings(**config))) for a, b in pairs]
        yield pack(SETTINGS, config), cases


BATCHES = {
    "requantise": (test_requantise.Requantise, requantise_batches),
    "residual_add": (test_residual_add.ResidualAdd, residual_add_batches),
}


@cocotb.test()
async def matches_reference_at_exactly_its_latency(dut):
    """Send a value in three cycles of four; every result must come in its cycle, with its metadata."""
    unit, batches = BATCHES[os.environ["UNIT"]]
    component = unit(META_BITS)
    layout = component.i.payload.shape()
    count, rng = int(os.environ["COUNT"]), random.Random(cocotb.RANDOM_SEED)
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = 0
    dut.i__valid.value = 0
    cycle = received = 0
    for config, cases in batches(rng, count):
        if config is not None:
            dut.settings.value = config
        waiting = deque(cases)
        due: deque[tuple[int, int, dict[str, int]]] = deque()
        while waiting or due:
            await RisingEdge(dut.clk)  # the outputs read below are those before this edge, the inputs go behind it
            cycle += 1
            arrives = bool(due) and due[0][0] == cycle
            assert bool(dut.o__valid.value) == arrives, cycle
            if arrives:
                _, expected, fields = due.popleft()
                got = int(dut.o__payload.value)
                assert got == expected, (fields, config, got, expected)
                received += 1
            send = bool(waiting) and rng.random() < 0.75
            dut.i__valid.value = send
            if send:
                fields, value = waiting.popleft()
                meta = rng.randrange(1 << META_BITS)
                dut.i__payload.value = pack(layout, fields | {"meta": meta})
                due.append((cycle + component.LATENCY + 1, meta << 8 | value & 0xFF, fields))
    assert received == count
