# amaranth: UnusedElaboratable=no
"""Does the residual adder give what isa.numerics gives, at its stated rate and latency?"""

import random
from collections import deque

import pytest
from amaranth import unsigned
from amaranth.sim import Simulator

from tilewright.isa import numerics
from tilewright.rtl.arithmetic.residual_add import ResidualAdd

CORNERS = (-128, -127, -64, -1, 0, 1, 63, 127)


def mantissa(rng: random.Random) -> int:
    return rng.choice((1 << 23, (1 << 23) + 1, (1 << 24) - 1, rng.randrange(1 << 23, 1 << 24)))


def free(rng: random.Random) -> dict[str, int]:
    """Draw scales near one and any offset near them, or none: sums carry, cancel and lose bits."""
    shift = rng.randrange(14, 30)
    low, high = sorted(rng.choice(((-128, 127), (rng.randrange(-128, 128), rng.randrange(-128, 128)))))
    return {
        "mantissa_a": mantissa(rng),
        "shift_a": shift,
        "mantissa_b": mantissa(rng),
        "shift_b": numerics.clamp(shift + rng.choice((0, 1, -1, rng.randrange(-40, 41))), 0, 127),
        "offset_negative": rng.randrange(2),
        "offset_mantissa": rng.choice((0, mantissa(rng))),
        "offset_shift": numerics.clamp(shift - rng.choice((4, 8, rng.randrange(-40, 41))), 0, 127),
        "unsigned": rng.randrange(2),
        "low": low,
        "high": high,
    }


def model(rng: random.Random) -> dict[str, int]:
    """Draw what a quantised model has: scale ratios around one, and zero points."""
    is_unsigned = rng.randrange(2)
    base = 128 * is_unsigned
    zeros = [base + rng.choice((0, rng.choice(CORNERS))) for _ in range(3)]
    scales = {"mantissa_a": mantissa(rng), "shift_a": 24, "mantissa_b": mantissa(rng), "shift_b": rng.randrange(23, 27)}
    offset = numerics.residual_offset(**scales, **dict(zip(("zero_a", "zero_b", "zero_out"), zeros, strict=True)))
    names = ("offset_negative", "offset_mantissa", "offset_shift")
    bounds = {"unsigned": is_unsigned, "low": -128, "high": 127}
    return scales | dict(zip(names, map(int, offset), strict=True)) | bounds


def extreme(rng: random.Random) -> dict[str, int]:
    """Draw every field from its ends, so that the points are as far apart as they can be."""
    ends = {"mantissa": (1 << 23, (1 << 24) - 1), "shift": (0, 1, 126, 127)}
    config = {f"{field}_{side}": rng.choice(ends[field]) for side in "ab" for field in ends}
    offset = {"offset_mantissa": rng.choice((0, *ends["mantissa"])), "offset_shift": rng.choice(ends["shift"])}
    signs = {"offset_negative": rng.randrange(2), "unsigned": rng.randrange(2)}
    return config | offset | signs | {"low": -128, "high": 127}


def pair(rng: random.Random) -> tuple[int, int]:
    a, b = (rng.choice((rng.choice(CORNERS), rng.randrange(-128, 128))) for _ in range(2))
    return a, rng.choice((b, a, max(-a, -128) if a > -128 else 127))


def scale(mantissas: tuple[int, int], shifts: tuple[int, int]) -> dict[str, int]:
    return dict(zip(("mantissa_a", "mantissa_b", "shift_a", "shift_b"), (*mantissas, *shifts), strict=True))


def near_tie(rng: random.Random) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Draw a pair and an offset that brings its sum to within an ulp or so of k + 1/2: every rounding decides."""
    (a, b), mantissas = pair(rng), (mantissa(rng), mantissa(rng))
    wanted = (2 * rng.randrange(-100, 100) + 1 << 23) - a * mantissas[0] - b * mantissas[1]  # * 2**-24
    excess = abs(wanted).bit_length() - 24
    offset = abs(numerics.round_shift(wanted << max(0, -excess), max(0, excess)))
    fields = {
        "offset_negative": int(wanted < 0), "offset_mantissa": min(offset, (1 << 24) - 1),
        "offset_shift": 24 - excess, "unsigned": 0, "low": -128, "high": 127,
    }  # fmt: skip
    return scale(mantissas, (24, 24)) | fields, [(a, b)]


def broken_tie(rng: random.Random) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Draw a product a * scale_a halfway between k + 1/2 and its neighbour, and far smaller terms that decide."""
    while True:
        a, bits = rng.randrange(129, 256, 2), rng.randrange(2, 8)
        tie = 2 * rng.randrange(1 << (bits - 1), 1 << bits) + 1 << 31 - bits  # 32 bits, of which 8 go
        product = tie + rng.choice((-128, 128))
        if product % a == 0 and 1 << 23 <= product // a < 1 << 24:
            break
    scales = scale((product // a, mantissa(rng)), (32 - bits, rng.randrange(60, 127)))
    fields = {"offset_negative": 0, "offset_mantissa": 0, "offset_shift": 0, "unsigned": 1, "low": -128, "high": 127}
    return scales | fields | rng.choice(({}, {
        "offset_negative": rng.randrange(2), "offset_mantissa": mantissa(rng), "offset_shift": rng.randrange(60, 127),
    })), [(a - 128, rng.randrange(-128, 128))]  # fmt: skip


def batch(draw, rng: random.Random, count: int) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Return a configuration and ``count`` pairs, or the one that it was drawn for."""
    drawn = draw(rng)
    return drawn if isinstance(drawn, tuple) else (drawn, [pair(rng) for _ in range(count)])


DRAWS = (free, model, extreme, near_tie, broken_tie)


def check(batches, gap, rng):
    """For each configuration send its pairs, drain; compare value, metadata and cycle of every sum."""
    dut = ResidualAdd(unsigned(6))
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    received = 0

    async def bench(ctx):
        nonlocal received
        cycle = 0
        for config, pairs in batches:
            ctx.set(dut.settings, config)
            settings = numerics.ResidualSettings(**config)
            waiting = deque(pairs)
            due: deque[tuple[int, int, int, tuple[int, int]]] = deque()
            while waiting or due:
                send = bool(waiting) and rng.random() >= gap
                ctx.set(dut.i.valid, send)
                if send:
                    (a, b), meta = waiting.popleft(), rng.randrange(64)
                    ctx.set(dut.i.payload, {"a": a, "b": b, "meta": meta})
                    due.append((cycle + dut.LATENCY, numerics.add_residual(a, b, settings), meta, (a, b)))
                arrives = bool(due) and due[0][0] == cycle
                assert ctx.get(dut.o.valid) == arrives
                if arrives:
                    _, value, meta, operands = due.popleft()
                    result = ctx.get(dut.o.payload)
                    assert (result.value, result.meta) == (value, meta), (config, operands)
                    received += 1
                await ctx.tick()
                cycle += 1

    sim.add_testbench(bench)
    sim.run()
    assert received == sum(len(pairs) for _, pairs in batches)


@pytest.mark.parametrize("draw", DRAWS)
def test_matches_reference_at_exactly_its_latency(draw):
    rng = random.Random(draw.__name__)
    batches = [batch(draw, rng, 50) for _ in range(40 if draw in (free, model, extreme) else 200)]
    check(batches, gap=0.3, rng=rng)


def test_takes_a_pair_in_every_cycle():
    rng = random.Random(0)
    check([batch(model, rng, 600) for _ in range(3)], gap=0, rng=rng)
