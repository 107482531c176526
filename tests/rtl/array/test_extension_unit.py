"""The unit of an extension shares the activation buffer with the array: right after any command of the array."""

from pathlib import Path

import numpy as np
import pytest

from tests.rtl.array.test_mac import command, fill, read_group
from tests.support.mac_layers import Place, conv, conv23, pool_sum
from tests.support.streams import simulate
from tilewright.isa.extension import extended, load_extension
from tilewright.isa.machine import Machine
from tilewright.rtl.array.mac import MacUnit

ARGMAX = Path(__file__).parents[3] / "examples/extensions/argmax.py"

BEFORE = {
    "conv23": lambda place, rng: conv23(place, rng, channels=3, tiles_x=4, tiles_y=2),
    "conv23, one tile": lambda place, rng: conv23(place, rng, channels=1, tiles_x=1, tiles_y=1),
    "conv23 without reuse": lambda place, rng: conv23(place, rng, channels=3, tiles_x=5, tiles_y=1, reuse=False),
    "conv": lambda place, rng: conv(place, rng, channels=5, kernel=(2, 3), tiles_x=5, tiles_y=1),
    "pool": lambda place, rng: pool_sum(place, rng, kernel=(2, 2), tiles_x=3, tiles_y=2),
}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("before", BEFORE.values(), ids=list(BEFORE))
def test_a_unit_right_after_the_array_computes_what_its_function_does(before, lanes):
    unit = load_extension(ARGMAX)
    machine = extended(Machine(lanes=lanes, clusters=1, tiles=4, post_lanes=1, bus_bytes=4, activation_bytes=8192,
                               weight_bytes=4096), unit)
    place, rng = Place(machine), np.random.default_rng(lanes)
    first, pixels, channels = before(place, rng), 6, 21
    second = conv(place, rng, channels=channels, kernel=(1, 1), tiles_x=pixels, tiles_y=1)
    x = np.frombuffer(b"".join(content for _, _, content in second.writes), np.int8).reshape(pixels, channels).copy()
    weights = np.frombuffer(b"".join(content for _, content in second.main), np.int8).reshape(2, lanes, 16)
    weights = weights.transpose(1, 0, 2).reshape(lanes, 32)[:, :channels].astype(np.int64)
    assert np.array_equal(second.sums[0, :, 0], x @ weights.T)
    x[:, :1] = unit.compute(x, {"least": 0})
    second.sums = (x @ weights.T)[None, :, None]
    dut = MacUnit(machine)

    async def program(ctx):
        await fill(ctx, dut, [first, second])
        for layer in (first, second):
            for variant, fields in layer.settings.items():
                await command(ctx, dut, "conv", variant, fields)
            if layer is second:
                await command(ctx, dut, "extension", "run_unit", {
                    "base": second.operands["base"], "items": pixels, "item_bytes": channels, "own": 0})
            await command(ctx, dut, layer.mnemonic, layer.variant, layer.operands)

    async def post(ctx):
        for layer in (first, second):
            tiles = layer.sums.shape[1]
            for start in range(0, tiles, machine.tiles):
                count = min(machine.tiles, tiles - start)
                values = await read_group(ctx, dut, machine, layer, count)
                assert np.array_equal(values, layer.sums[0, start:start + count])

    simulate(dut, program, post, deadline=5_000)
