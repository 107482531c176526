# amaranth: UnusedElaboratable=no
"""Does the requantiser give what isa.numerics gives, at its stated rate and latency?"""

import math
import random
from collections import deque

import pytest
from amaranth import unsigned
from amaranth.lib.data import StructLayout
from amaranth.sim import Simulator

from tilewright.isa import numerics
from tilewright.isa.integers.long_requantise import channel_word, long_requantise
from tilewright.isa.integers.shift_requantise import MULTIPLIER_BITS, shift_requantise
from tilewright.rtl.arithmetic.requantise import Requantise

META = StructLayout({"tag": unsigned(5), "last": unsigned(1)})

# Around every power of two a sum changes its shift, or starts to be rounded (24 bits), or wraps (32).
SUMS = [sign * (1 << place) + near for place in (0, 1, 7, 8, 16, 23, 24, 25, 30, 31) for sign in (1, -1)
        for near in (-1, 0, 1)]  # fmt: skip


def request(rng: random.Random) -> dict[str, int]:
    """Draw a request whose result is mostly not saturated; one in four has a corner for its sum."""
    bits = rng.randrange(1, 32)
    total = rng.choice(SUMS) if rng.random() < 0.25 else rng.randrange(-(1 << bits), 1 << bits)
    bias = rng.choice((0, rng.randrange(-(1 << 31), 1 << 31), rng.randrange(-1000, 1000)))
    near = 23 + abs(total).bit_length() - rng.randrange(-2, 10)
    shift = rng.choice((near, near, near, rng.randrange(128)))
    low, high = sorted(rng.choice(((-128, 127), (rng.randrange(-128, 128), rng.randrange(-128, 128)))))
    return {
        "acc": numerics.wrap(total - bias, 32),
        "bias": bias,
        "mantissa": rng.choice((1 << 23, (1 << 24) - 1, rng.randrange(1 << 23, 1 << 24))),
        "shift": numerics.clamp(shift, 0, 127),
        "zero_point": rng.choice((0, -128, 127, rng.randrange(-128, 128))),
        "low": low,
        "high": high,
    }


def tie(rng: random.Random) -> dict[str, int]:
    """Draw a request whose product lies exactly between two integers."""
    place = rng.randrange(1, 22)
    acc = (2 * rng.randrange(-130, 130) + 1) << (place - 1)
    config = {"mantissa": 1 << 23, "shift": 23 + place, "zero_point": 0, "low": -128, "high": 127}
    return {"acc": acc, "bias": 0} | config


def near_tie(rng: random.Random) -> dict[str, int]:
    """Draw a request that every rounding on the way decides: its product is an ulp or less from k + 1/2.

    A sum of more than 24 bits lies halfway between two float32 numbers.
    """
    bits = rng.randrange(6, 32)
    total = rng.randrange(1 << (bits - 1), 1 << bits)
    if bits > 24:
        cut = bits - 24
        total = total >> cut << cut | 1 << (cut - 1)
    ratio = (rng.randrange(120) + 0.5) / numerics.round_float32(total)
    shift = 24 - math.frexp(ratio)[1]
    config = {"mantissa": min(round(math.ldexp(ratio, shift)), (1 << 24) - 1), "shift": shift, "zero_point": 0}
    return {"acc": rng.choice((-total, total)), "bias": 0} | config | {"low": -128, "high": 127}


DRAWS = (request, tie, near_tie)


def shifted(rng: random.Random, shift: int) -> dict[str, int]:
    """Draw a request by a shift whose result is mostly not saturated; one in four has a corner for its sum.

    What the unit does not read of a float32 scale is anything.
    """
    bits = rng.randrange(1, 32)
    total = rng.choice(SUMS) if rng.random() < 0.25 else rng.randrange(-(1 << bits), 1 << bits)
    bias = rng.choice((0, rng.randrange(-(1 << 27), 1 << 27)))
    wanted = numerics.clamp(shift + 7 - abs(total).bit_length() + rng.randrange(-3, 3), 1, 18)
    multiplier = rng.choice((rng.randrange(1 << wanted - 1, 1 << wanted), (1 << wanted) - 1))
    return {"acc": numerics.wrap(total - bias, 32), "bias": bias, "multiplier": multiplier,
            "addend": rng.choice((0, multiplier - 1, rng.randrange(multiplier))),
            "zero_point": rng.choice((0, -128, 127)), "low": rng.choice((-128, -100)), "high": rng.choice((127, 90))}


def long(rng: random.Random) -> dict[str, int]:
    """Draw a request by a long multiplier whose result is mostly next to a half of a level, and mostly one of int8."""
    cut = rng.randrange(31) if rng.random() < 0.5 else 0
    multiplier = rng.choice((1 << 30, (1 << 31) - 1, rng.randrange(1 << 30, 1 << 31) >> cut << cut))
    shift = rng.choice((rng.randrange(1, 64), rng.randrange(28, 50), 31, 32))
    half = (2 * rng.randrange(-140, 140) + 1) << shift - 1
    bits = rng.randrange(1, 32)
    near = numerics.clamp(half // multiplier + rng.randrange(-2, 4), -(1 << 31), (1 << 31) - 1)
    total = rng.choice((near, near, near, rng.choice(SUMS), rng.randrange(-(1 << bits), 1 << bits)))
    bias = rng.choice((0, rng.randrange(-(1 << 27), 1 << 27)))
    return {"acc": numerics.wrap(total - bias, 32), "bias": bias, "multiplier": multiplier, "shift": shift,
            "zero_point": rng.choice((0, -128, 127)), "low": rng.choice((-128, -100)), "high": rng.choice((127, 90))}


def of_word(request: dict[str, int]) -> dict[str, int]:
    """Return what the unit is given of a request by a long multiplier: its channel's word, in three parts."""
    word = channel_word(request["bias"], request["multiplier"], request["shift"])
    others = {name: request[name] for name in ("acc", "bias", "zero_point", "low", "high")}
    mantissa, shift = word >> 32 & (1 << 24) - 1, word >> 56
    addend = word >> 28 & 15 | mantissa >> MULTIPLIER_BITS << 4 | shift << 10
    return others | {"mantissa": mantissa, "shift": shift & 127, "addend": addend, "integer": 1}


def check(dut, requests, expected, gap, rng, shift=None, rounding=None, integer=None):
    """Send ``requests``, with a gap before each of probability ``gap``; compare value, metadata and cycle.

    ``rounding`` is 1 or 2 where integers are long, ``integer`` what a unit of these alone is told.
    """
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    due: deque[tuple[int, int, dict[str, int]]] = deque()
    received = 0

    async def bench(ctx):
        nonlocal received
        waiting = deque(zip(requests, expected, strict=True))
        if shift is not None:
            ctx.set(dut.shifts, shift)
        if rounding is not None:
            ctx.set(dut.long, 1)
            ctx.set(dut.twice, rounding == 2)
        if integer is not None:
            ctx.set(dut.integer, integer)
        cycle = 0
        while waiting or due:
            send = bool(waiting) and rng.random() >= gap
            ctx.set(dut.i.valid, send)
            if send:
                payload, value = waiting.popleft()
                meta = {"tag": rng.randrange(32), "last": rng.randrange(2)}
                ctx.set(dut.i.payload, payload | {"meta": meta})
                due.append((cycle + dut.LATENCY, value, meta))
            arrives = bool(due) and due[0][0] == cycle
            assert ctx.get(dut.o.valid) == arrives
            if arrives:
                _, value, meta = due.popleft()
                result = ctx.get(dut.o.payload)
                assert result.value == value, requests[received]
                assert {"tag": result.meta.tag, "last": result.meta.last} == meta
                received += 1
            await ctx.tick()
            cycle += 1

    sim.add_testbench(bench)
    sim.run()
    assert received == len(requests)


@pytest.mark.parametrize("gap", [0, 0.5])
@pytest.mark.parametrize("draw", DRAWS)
def test_matches_reference_at_exactly_its_latency(draw, gap):
    rng = random.Random(f"{draw.__name__} {gap}")
    requests = [draw(rng) for _ in range(1500)]
    check(Requantise(META), requests, [numerics.requantise(**fields) for fields in requests], gap, rng)


@pytest.mark.parametrize("bounds", [(0, -32_768, 32_767), (-1_234, -30_000, 20_000)])
def test_words_of_16_bits_whose_bounds_stay(bounds):
    rng = random.Random(f"words {bounds}")
    same = dict(zip(("zero_point", "low", "high"), bounds, strict=True))
    requests = []
    for draw in rng.choices(DRAWS, k=800):
        fields = draw(rng)
        requests.append(fields | same | {"shift": max(0, fields["shift"] - rng.randrange(9))})
    expected = [numerics.requantise(**fields) for fields in requests]
    assert sum(bounds[1] < value < bounds[2] and abs(value) > 255 for value in expected) > 200
    check(Requantise(META, bits=16), requests, expected, 0.2, rng)


def test_draws_reach_what_they_are_for():
    """The random requests are worth little if nearly all results saturate, or none is rounded first."""
    rng = random.Random(0)
    requests = [request(rng) for _ in range(2000)]
    inside = sum(q["low"] < numerics.requantise(**q) < q["high"] for q in requests)
    inexact = sum(abs(q["acc"] + q["bias"]) >= 1 << 24 for q in requests)
    assert inside > 500
    assert inexact > 300


@pytest.mark.parametrize("shift", [0, 7, 16, 24, 33, 49, 63])
def test_sums_are_shifted_between_others_that_are_scaled(shift):
    rng = random.Random(shift)
    requests, expected = [], []
    for _ in range(300):
        if rng.random() < 0.3:
            drawn = rng.choice(DRAWS)(rng)
            requests.append(drawn | {"integer": 0, "addend": rng.randrange(1 << 18)})
            expected.append(numerics.requantise(**drawn))
        else:
            drawn = shifted(rng, shift)
            expected.append(shift_requantise(**drawn, shift=shift))
            unread = {"mantissa": drawn.pop("multiplier") | rng.randrange(64) << 18, "shift": rng.randrange(128)}
            requests.append(drawn | unread | {"integer": 1})
    check(Requantise(META, integers=True), requests, expected, 0, rng, shift)


@pytest.mark.parametrize("rounding", [1, 2])
@pytest.mark.parametrize("bits", [8, 16])
def test_long_multipliers_between_others_that_are_scales(rounding, bits):
    rng = random.Random(f"{rounding} {bits}")
    same = {"zero_point": -3, "low": -128, "high": 127} if bits == 16 else {}    # these stay where they are
    requests, expected = [], []
    for _ in range(2500):
        if rng.random() < 0.2:
            drawn = rng.choice(DRAWS)(rng) | same
            requests.append(drawn | {"integer": 0, "addend": rng.randrange(1 << 18)})
            expected.append(numerics.requantise(**drawn))
        else:
            drawn = long(rng) | same
            requests.append(of_word(drawn))
            expected.append(long_requantise(**drawn, twice=rounding == 2))
    check(Requantise(META, integers=True, bits=bits), requests, expected, 0.1, rng, rng.randrange(64), rounding)


def test_draws_of_long_multipliers_tell_the_roundings_apart():
    rng = random.Random(7)
    drawn = [long(rng) for _ in range(2000)]
    values = [[long_requantise(**each, twice=twice) for each in drawn] for twice in (0, 1)]
    assert sum(a != b for a, b in zip(*values, strict=True)) > 50
    assert sum(each["low"] < value < each["high"] for each, value in zip(drawn, values[0], strict=True)) > 600
