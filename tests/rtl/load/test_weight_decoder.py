# amaranth: UnusedElaboratable=no
"""The decoder of weights beside its reference: any bytes, any stalls, and its cycles."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.support.streams import simulate
from tilewright.compiler.weights.weight_coding import encode_weights
from tilewright.isa.coded.weight_code import WeightCode, decode_weights
from tilewright.isa.machine import Machine, preset
from tilewright.rtl.load.weight_decoder import WeightDecoder

MACHINES = {name: replace(preset(name), coded_weights=True) for name in ("nano", "base", "large")} | {
    "bus of 16, one cluster": Machine(array="winograd_inner", lanes=8, bus_bytes=16, coded_weights=True)}


def random_block(rng, code):
    """Return (steps, stream): weights that were coded, such with damage, or any bytes."""
    steps = rng.choice([1, 2, rng.randint(3, 40)])
    spread = rng.choice([0, 1, 3, 12, 60])
    data = bytes(max(-128, min(127, round(rng.gauss(0, spread)))) & 255 if rng.random() < 0.8 else 0
                 for _ in range(steps * code.step_bytes))
    stream = encode_weights(code, data)
    kind = rng.randrange(4)
    if kind == 1:
        damaged = bytearray(stream)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        stream = bytes(damaged)
    elif kind == 2:
        stream = rng.randbytes(code.word_bytes * rng.randint(1, 2 * steps + 2))
    elif kind == 3:
        stream = (stream + rng.randbytes(5 * code.word_bytes))[:code.word_bytes * rng.randint(1, steps + 6)]
    return steps, stream


def decode_blocks(machine, blocks, *, stall=0.0, seed=0):
    """Return what leaves for each block, and the cycle of the last word of each, counted from when the first begins."""
    code, rng, dut = WeightCode.of(machine), random.Random(seed), WeightDecoder(machine, 4)
    words = [int.from_bytes(stream[i:i + code.word_bytes], "little")
             for _, stream in blocks for i in range(0, len(stream), code.word_bytes)]
    found, ends, cycle = [bytearray()], [], 0

    async def testbench(ctx):
        nonlocal cycle
        place = number = 0
        indices = [rng.randrange(1 << 15) & ~1 for _ in blocks]
        expected = indices[0]
        while len(ends) < len(blocks):
            steps, stream = blocks[min(number, len(blocks) - 1)]
            ctx.set(dut.blocks.valid, number < len(blocks))
            ctx.set(dut.blocks.payload, {"index": indices[min(number, len(blocks) - 1)], "steps": steps,
                                         "words": len(stream) // code.word_bytes, "tag": number & 15})
            ctx.set(dut.words.valid, place < len(words) and rng.random() >= stall)
            ctx.set(dut.words.payload, words[min(place, len(words) - 1)])
            *_, takes_block, takes_word = await ctx.tick().sample(
                dut.blocks.valid & dut.blocks.ready, dut.words.valid & dut.words.ready)
            number, place, cycle = number + takes_block, place + takes_word, cycle + 1
            if ctx.get(dut.o.valid):
                o = dut.o.payload
                assert (ctx.get(o.index), ctx.get(o.tag)) == (expected, len(ends) & 15)
                found[-1] += ctx.get(o.data).to_bytes(code.step_bytes, "little")
                expected += code.step_bytes // code.word_bytes
                if ctx.get(o.last):
                    ends.append(cycle)
                    found.append(bytearray())
                    expected = indices[min(len(ends), len(blocks) - 1)]
            assert cycle < 200 * sum(steps + len(stream) for steps, stream in blocks), "it hangs"
        for _ in range(4 * len(words)):     # what is beyond the last step is taken too
            ctx.set(dut.words.valid, place < len(words))
            ctx.set(dut.words.payload, words[min(place, len(words) - 1)])
            place += (await ctx.tick().sample(dut.words.valid & dut.words.ready))[-1]
        assert place == len(words)
        assert not ctx.get(dut.busy)

    simulate(dut, testbench)
    return [bytes(each) for each in found[:-1]], ends


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_any_bytes_decode_as_in_the_reference(machine, stall):
    code, rng = WeightCode.of(machine), random.Random(5)
    blocks = [random_block(rng, code) for _ in range(40)]
    found, _ = decode_blocks(machine, blocks, stall=stall)
    assert found == [decode_weights(code, stream, steps).data.tobytes() for steps, stream in blocks]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_blocks_take_the_cycles_of_the_reference_and_one(machine):
    code, rng = WeightCode.of(machine), random.Random(7)
    blocks = []
    for _ in range(6):
        steps = rng.randint(1, 60)
        data = bytes(round(rng.gauss(0, 9)) & 255 for _ in range(steps * code.step_bytes))
        blocks.append((steps, encode_weights(code, data)))
    _, ends = decode_blocks(machine, blocks)
    cycles = [decode_weights(code, stream, steps).cycles for steps, stream in blocks]
    assert ends[0] == cycles[0] + WeightDecoder.LATENCY
    assert [b - a for a, b in pairwise(ends)] == [each + 1 for each in cycles[1:]]
