"""The sampler's view of a command that it looks at as a whole, against one slot, lane and value at a time."""

from itertools import pairwise

import numpy as np
import pytest

from tests.support.coprocessor_state import blocked, engine_of, run, set_conv
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa import numerics
from tilewright.isa.assembler import command
from tilewright.sim.values.operand_samples import FIRST, OperandSampler

MACHINES = pytest.mark.parametrize("machine", WINOGRAD_MACHINES.values(), ids=lambda machine: machine.name)
CHANNELS = 5


def differing(old, new, bits):
    """Return in how many of their lowest bits two lists of numbers differ."""
    return sum(((a ^ b) & (1 << bits) - 1).bit_count() for a, b in zip(old, new, strict=True))


def flat(rows):
    return [value for row in rows for value in row]


def slots_of_conv23(engine):
    """Yield patch and weights by lane of every slot: tiles 0 to 3 of a row, for one channel after the other."""
    machine = engine.state.machine
    for channel in range(CHANNELS):
        kernels = []
        for lane in range(machine.lanes):
            cluster, inner = divmod(lane, machine.lanes_per_cluster)
            q = channel * machine.lanes_per_cluster + inner
            kernels.append([*engine.state.weight_words[q // 2, cluster, 8 * (q % 2):8 * (q % 2) + 8].tolist(),
                            int(engine.state.ninth_words[q // 16, cluster, q % 16])])
        for tile in range(machine.tiles):
            yield [[int(engine.state.activations[blocked(0, 2 * tile + x, y, channel, 16 * CHANNELS, 1024)])
                    for x in range(4)] for y in range(4)], kernels


def slots_of_conv(engine):
    """Yield run and weights by lane of every slot."""
    machine = engine.state.machine
    for step in range(CHANNELS):
        weights = [engine.state.weight_words[step * machine.lanes_per_cluster + lane % machine.lanes_per_cluster,
                               lane // machine.lanes_per_cluster].tolist() for lane in range(machine.lanes)]
        for tile in range(machine.tiles):
            first = 19 * tile + 16 * step
            yield np.reshape(engine.state.activations[first:first + 16], (4, 4)).tolist(), weights


def array_registers(patch, weights, winograd):
    """Return the registers of one lane after a slot, with their bits: data, weights, products, two of the inverse."""
    if winograd:
        data = numerics.transform_input(patch)
        lane = numerics.transform_weight(np.reshape(weights, (3, 3)).tolist())
    else:
        data, lane = patch, np.reshape(weights, (4, 4)).tolist()
    p = [[a * b for a, b in zip(*rows, strict=True)] for rows in zip(data, lane, strict=True)]

    def half(column):
        return column[0] + column[1] + column[2], (column[1] - column[2] if winograd else 0) - column[3]

    rows = list(zip(*[half([p[y][x] for y in range(4)]) for x in range(4)], strict=True))
    sums = flat([half(row) for row in rows])
    if winograd:
        sums = [value >> 2 for value in sums]
        assert sums == flat(numerics.conv23_tile(patch, np.reshape(weights, (3, 3)).tolist()))
    else:
        assert sums[0] - sums[1] - sums[2] + sums[3] == sum(flat(p))
    return [(flat(data), 10), (flat(lane), 12), (flat(p), 21), (flat(rows), 22), (sums, 20)]


def seen(engine, name, operands):
    sampler = OperandSampler(engine.state)
    each = command(*name.split("."), **operands)
    engine.execute(each)
    sampler.see(2, each)
    assert sampler.means(2) == (sampler.means(1)[0],) * 2
    return sampler.means(3)[2]


@MACHINES
@pytest.mark.parametrize("winograd", [False, True])
def test_a_command_seen_as_a_whole(machine, winograd):
    engine = engine_of(machine)
    if winograd:
        run(engine, *set_conv({"tiles_x": machine.tiles, "runs": CHANNELS, "kernel_x": 1, "kernel_y": 1,
                               "x_step": 16 * CHANNELS, "y_step": 1024}))
        found = seen(engine, "conv23.run", {"base": 0, "tiles_y": 1, "groups": 1, "weight_base": 0})
        slots = list(slots_of_conv23(engine))
    else:
        run(engine, *set_conv({"tiles_x": machine.tiles, "runs": CHANNELS, "kernel_x": 1, "kernel_y": 1, "x_step": 19}))
        found = seen(engine, "conv.run", {"base": 0, "tiles_y": 1, "groups": 1, "weight_base": 0})
        slots = list(slots_of_conv(engine))
    patches = [flat(patch) for patch, _ in slots]
    between = len(slots) - 1
    assert found.patch == pytest.approx(sum(map(differing, patches, patches[1:], [8] * between)) / between)
    data, array = 0, 0.0
    for lane in range(machine.lanes):
        states = [array_registers(patch, weights[lane], winograd) for patch, weights in slots]
        for old, new in pairwise(states):
            changes = [differing(a, b, bits) for (a, bits), (b, _) in zip(old, new, strict=True)]
            data += changes[0] if lane == 0 else 0
            # Weights change between steps only, and are averaged over those.
            array += sum(changes) - changes[1] + changes[1] * between / (CHANNELS - 1) / machine.tiles
    assert found.data == pytest.approx(data / between)
    assert found.array == pytest.approx(array / between)
    assert found.weights > 0
    banks, words = zip(*(by_bank(engine, winograd, number) for number in range(len(slots))), strict=True)
    assert found.banks == pytest.approx(sum(map(differing, banks, banks[1:], [8] * between)) / between)
    assert found.addresses == pytest.approx(sum(map(differing, words, words[1:], [16] * between)) / between)


def by_bank(engine, winograd, number):
    """Return the bytes of a slot in the order of the banks that they lie in, and the words there."""
    step, tile = divmod(number, engine.state.machine.tiles)
    if winograd:
        places = [blocked(0, 2 * tile + x, y, step, 16 * CHANNELS, 1024) for y in range(4) for x in range(4)]
    else:
        places = [19 * tile + 16 * step + i for i in range(16)]
    places.sort(key=lambda place: place % 16)
    return [int(engine.state.activations[place]) for place in places], [place // 16 for place in places]


def test_what_does_not_change_toggles_nothing():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    engine.state.activations[:] = 7
    engine.state.weight_words[:] = 3
    run(engine, *set_conv({"tiles_x": 4, "runs": CHANNELS, "kernel_x": 1, "kernel_y": 1, "x_step": 19}))
    found = seen(engine, "conv.run", {"base": 0, "tiles_y": 1, "groups": 1, "weight_base": 0})
    assert (found.patch, found.data, found.array, found.weights, found.banks) == (0, 0, 0, 0, 0)
    assert found.addresses > 0


def test_pooling_multiplies_one_byte_by_one_in_each_lane():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    run(engine, *set_conv({"tiles_x": 4, "runs": CHANNELS, "kernel_x": 1, "kernel_y": 1, "x_step": 19}))
    found = seen(engine, "pool.sum", {"base": 0, "tiles_y": 1, "groups": 1})
    assert found.array > 4 * found.data > 0
    assert found.weights == 2   # the one moves on from lane to lane


def test_of_many_commands_some_are_looked_at():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    run(engine, *set_conv({"tiles_x": 4, "runs": CHANNELS, "kernel_x": 1, "kernel_y": 1, "x_step": 19}))
    each = command("conv", "run", base=0, tiles_y=1, groups=1, weight_base=0)
    sampler = OperandSampler(engine.state)
    for _ in range(FIRST):
        sampler.see(0, each)
    before = sampler.means(1)
    engine.state.activations[:] = 0
    sampler.see(0, each)
    assert sampler.means(1) == before
    for _ in range(100):
        sampler.see(0, each)
    assert sampler.means(1)[0].data < before[0].data
