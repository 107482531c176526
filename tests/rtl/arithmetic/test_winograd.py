"""The transforms are those of isa.numerics, and their way through is a dot product."""

import random

import pytest

from tests.support.streams import simulate
from tilewright.isa.numerics import inverse_transform, transform_input, transform_weight
from tilewright.rtl.arithmetic.winograd import InputTransform, InverseTransform, WeightTransform

EXTREMES = [[sign] * 16 for sign in (-128, 127)] + [
    # each coefficient's sign pattern, which drives the widest results
    [127 if (x ^ y ^ flip) & 1 else -128 for y in range(4) for x in range(4)] for flip in (0, 1)]


def int8_tiles(count):
    rng = random.Random(0)
    return EXTREMES + [[rng.randint(-128, 127) for _ in range(16)] for _ in range(count)]


def rows(flat, width=4):
    return [flat[i:i + width] for i in range(0, len(flat), width)]


def flat(matrix):
    return [value for row in matrix for value in row]


def answers(dut, member, payloads):
    """Send one payload per cycle; return the lists that leave, of which the first comes LATENCY cycles later."""
    results = []

    async def bench(ctx):
        for cycle in range(len(payloads) + dut.LATENCY):
            busy = cycle < len(payloads)
            ctx.set(dut.i.valid, busy)
            if busy:
                ctx.set(dut.i.payload, payloads[cycle])
            assert ctx.get(dut.o.valid) == (cycle >= dut.LATENCY)
            if cycle >= dut.LATENCY:
                values = getattr(dut.o.payload, member)
                results.append([ctx.get(values[k]) for k in range(SIZES[member])])
            await ctx.tick()

    simulate(dut, bench)
    return results


SIZES = {"v": 16, "u": 16, "y": 4}


def test_input_transform():
    tiles = int8_tiles(60)
    payloads = [{"patch": tile, "present": 1, "dot": 0, "meta": 0} for tile in tiles]
    assert answers(InputTransform(1), "v", payloads) == [flat(transform_input(rows(tile))) for tile in tiles]


def test_weight_transform_of_kernels():
    tiles = int8_tiles(60)
    payloads = [{"weights": tile, "dot": 0} for tile in tiles]
    assert answers(WeightTransform(), "u", payloads) == [flat(transform_weight(rows(tile[:9], 3))) for tile in tiles]


@pytest.mark.parametrize(("make", "member", "bytes_", "rest"), [
    (lambda: InputTransform(1), "v", "patch", {"present": 1, "meta": 0}), (WeightTransform, "u", "weights", {})])
def test_values_of_a_dot_product_pass(make, member, bytes_, rest):
    tiles = int8_tiles(20)
    assert answers(make(), member, [{bytes_: tile, "dot": 1} | rest for tile in tiles]) == tiles


def products(tiles, kernels):
    return [[u * v for u, v in zip(flat(transform_weight(rows(kernel[:9], 3))), flat(transform_input(rows(tile))),
                                   strict=True)] for tile, kernel in zip(tiles, kernels, strict=True)]


def test_inverse_transform():
    tiles = int8_tiles(60)
    kernels = tiles[::-1]
    given = products(tiles, kernels) + products(EXTREMES, [[-128] * 16] * 4) + products(EXTREMES, [[127] * 16] * 4)
    payloads = [{"products": product, "dot": 0} for product in given]
    assert answers(InverseTransform(), "y", payloads) == [flat(inverse_transform(rows(p))) for p in given]


def test_inverse_transform_splits_a_dot_product_in_four():
    tiles = int8_tiles(60)
    given = [[a * b for a, b in zip(x, y, strict=True)] for x, y in zip(tiles, tiles[::-1], strict=True)]
    given += [[-128 * -128] * 16, [-128 * 127] * 16]
    results = answers(InverseTransform(), "y", [{"products": product, "dot": 1} for product in given])
    assert [y[0] - y[1] - y[2] + y[3] for y in results] == [sum(product) for product in given]
