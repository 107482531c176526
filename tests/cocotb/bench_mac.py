"""Layers run on the multiply-accumulate unit; tests/cocotb/test_mac.py says what they must show."""

import os
import random
from dataclasses import replace

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.support.mac_layers import Layer, Place, conv, conv23, pool_sum
from tilewright.isa.assembler import pack
from tilewright.isa.encoding import BY_MNEMONIC
from tilewright.isa.machine import preset
from tilewright.rtl.array.mac import MacState, MacUnit

MACHINE = replace(preset(os.environ["MAC_MACHINE"]), channel_kernels=os.environ["MAC_CHANNELS"] == "1",
                  four_patches=os.environ["MAC_CHANNELS"] == "1")
SLICES = MACHINE.lanes // MACHINE.post_lanes


class Driver:
    """Fills the buffers, sends commands and reads sums, each with pauses of probability ``stall``."""

    def __init__(self, dut, stall: float = 0.0):
        self.dut = dut
        self.rng = random.Random(int(os.environ["MAC_SEED"]))
        self.stall = stall
        self.states: list[int] = []
        self.counts = dict.fromkeys(
            ("tile_slots", "activation_read_bytes", "weight_read_bytes", "act_free_signal", "wgt_free_signal"), 0)

    async def start(self):
        dut = self.dut
        Clock(dut.clk, 2, unit="ns").start()
        for port in ("commands__valid", "activation_write__valid", "weight_write__valid", "sums_request__valid",
                     "sums_done", "act_ready_available", "wgt_ready_available",
                     *(("drain_begins", "drain_steady") if MACHINE.takes_whole_tiles else ())):
            getattr(dut, port).value = 0
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        cocotb.start_soon(self._watch())

    async def _watch(self):
        ports = [(name, getattr(self.dut, name)) for name in self.counts]
        while True:
            await RisingEdge(self.dut.clk)
            self.states.append(int(self.dut.state.value))
            for name, port in ports:
                self.counts[name] += int(port.value)

    async def pause(self):
        while self.rng.random() < self.stall:
            await RisingEdge(self.dut.clk)

    async def fill(self, layers: list[Layer]):
        """Write the layers' activations and weights, side by side."""
        activations = cocotb.start_soon(self._fill_activations(layers))
        await self._fill_weights(layers)
        await activations

    async def _fill_activations(self, layers):
        port, dut = self.dut, self.dut
        port.activation_write__valid.value = 1
        for layer in layers:
            for blocked, address, content in layer.writes:
                port.activation_write__blocked.value = blocked
                port.activation_write__address.value = address
                port.activation_write__count.value = len(content)
                port.activation_write__data.value = int.from_bytes(content, "little")
                await RisingEdge(dut.clk)
        port.activation_write__valid.value = 0

    async def _fill_weights(self, layers):
        dut, size = self.dut, MACHINE.bus_bytes
        dut.weight_write__valid.value = 1
        for layer in layers:
            for ninth, words in ((0, layer.main), (1, layer.ninths)):
                for index, content in words:
                    for part in range(16 // size):
                        dut.weight_write__ninth.value = ninth
                        dut.weight_write__index.value = index * (16 // size) + part
                        dut.weight_write__data.value = int.from_bytes(content[size * part:size * (part + 1)], "little")
                        await RisingEdge(dut.clk)
        dut.weight_write__valid.value = 0

    async def command(self, mnemonic: str, variant: str, fields: dict[str, int], flags: tuple[str, ...] = ()):
        chosen = BY_MNEMONIC[mnemonic].variant(variant)
        dut = self.dut
        dut.commands__payload.value = (
            BY_MNEMONIC[mnemonic].funct3 | chosen.code << 3 | chosen.flag_bits(*flags) << 6
            | pack(chosen.rs1, {f.name: fields[f.name] for f in chosen.rs1}) << 10
            | pack(chosen.rs2, {f.name: fields[f.name] for f in chosen.rs2}) << 42)
        dut.commands__valid.value = 1
        await RisingEdge(dut.clk)
        while not int(dut.commands__ready.value):
            await RisingEdge(dut.clk)
        dut.commands__valid.value = 0

    async def send(self, layers: list[Layer], flags: tuple[str, ...] = ()):
        """Send settings that change, and run commands."""
        held: dict[str, dict[str, int]] = {}
        for layer in layers:
            for variant, fields in layer.settings.items():
                if held.get(variant) != fields:
                    await self.pause()
                    await self.command("conv", variant, fields)
            held = layer.settings
            await self.pause()
            await self.command(layer.mnemonic, layer.variant, layer.operands, flags)

    async def drain(self, layers: list[Layer]) -> list[np.ndarray]:
        """Read the sums as post-processing does; return one array like ``Layer.sums`` for each layer not held."""
        expected = [layer for layer in layers if not layer.hold]
        answers: list[int] = []
        count = sum(layer.sums.size for layer in expected) // MACHINE.post_lanes
        reader = cocotb.start_soon(self._collect(answers, count))
        for layer in expected:
            groups, tiles, pixels, _ = layer.sums.shape
            for _ in range(groups):
                for first in range(0, tiles, MACHINE.tiles):
                    await self._request_group(min(MACHINE.tiles, tiles - first), pixels, layer.winograd)
        await reader
        width = 4 * MACHINE.post_lanes
        flat = np.frombuffer(b"".join(answer.to_bytes(width, "little") for answer in answers), "<i4")
        results, start = [], 0
        for layer in expected:
            results.append(flat[start:start + layer.sums.size].reshape(layer.sums.shape))
            start += layer.sums.size
        return results

    async def _request_group(self, tiles, pixels, winograd):
        dut = self.dut
        await RisingEdge(dut.clk)
        while not int(dut.sums_available.value) or self.rng.random() < self.stall:
            await RisingEdge(dut.clk)
        asked = [(tile, pixel, part) for tile in range(tiles) for pixel in range(pixels) for part in range(SLICES)]
        for number, (tile, pixel, part) in enumerate(asked, start=1):
            dut.sums_request__valid.value = 1
            dut.sums_request__tile.value = tile
            dut.sums_request__pixel.value = pixel
            dut.sums_request__winograd.value = winograd
            if SLICES > 1:
                dut.sums_request__slice.value = part
            dut.sums_done.value = number == len(asked)
            await RisingEdge(dut.clk)
            dut.sums_request__valid.value = 0
            dut.sums_done.value = 0
            await self.pause()

    async def _collect(self, answers, count):
        dut = self.dut
        while len(answers) < count:
            await RisingEdge(dut.clk)
            if int(dut.sums_response__valid.value):
                answers.append(int(dut.sums_response__values.value))

    async def run(self, layers: list[Layer], flags: tuple[str, ...] = ()):
        """Run the layers and compare all sums."""
        await self.fill(layers)
        drained = cocotb.start_soon(self.drain(layers))
        await self.send(layers, flags)
        results = await drained
        for layer, result in zip([layer for layer in layers if not layer.hold], results, strict=True):
            assert np.array_equal(result, layer.sums), (layer.mnemonic, layer.settings, layer.operands)


CHANNELS = (1, 2, 3, 5, 8, 16, 33, 64)


def random_layer(place, rng):
    """Return a small layer of any kind."""
    kind = rng.choice(["conv23", "conv", "pool"], p=[0.45, 0.4, 0.15])
    channels = int(rng.choice(CHANNELS))
    groups = int(rng.integers(1, 4)) if channels <= 8 else 1
    grouped = bool(rng.integers(0, 2))
    tiles_x, tiles_y = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    if kind == "conv23":
        by_channel = MACHINE.takes_channel_kernels and bool(rng.integers(0, 2))
        return conv23(place, rng, channels=channels, tiles_x=tiles_x, tiles_y=tiles_y, groups=groups,
                      grouped=grouped, y_half=int(rng.integers(0, 2)), reuse=bool(rng.integers(0, 4)),
                      by_channel=by_channel, four=by_channel and MACHINE.takes_four_patches and rng.random() < 0.6)
    kernel = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    stride = int(rng.integers(1, 3))
    if kind == "pool":
        return pool_sum(place, rng, kernel=kernel, tiles_x=tiles_x, tiles_y=tiles_y, stride=stride, groups=groups)
    if channels > 16:
        kernel = min(kernel[0], 2), min(kernel[1], 2)
    dilation = int(rng.integers(1, 3))
    row_bytes = channels if grouped or dilation > 1 else kernel[1] * channels
    return conv(place, rng, channels=channels, kernel=kernel, tiles_x=tiles_x, tiles_y=tiles_y, stride=stride,
                dilation=dilation, groups=groups, grouped=grouped, paired=row_bytes <= 8 and rng.random() < 0.5)


def fitting_layers(rng, make, count):
    """Return up to ``count`` layers, as many as the buffers hold."""
    place, layers = Place(MACHINE), []
    for _ in range(count):
        try:
            layers.append(make(place, rng))
        except ValueError:  # the buffers are full
            break
    return layers


async def begin(dut, stall=0.0):
    driver = Driver(dut, stall)
    await driver.start()
    return driver


@cocotb.test()
async def random_layers_in_sequence(dut):
    rng = np.random.default_rng(int(os.environ["MAC_SEED"]))
    driver = await begin(dut)
    for stall in (0, 0.5, 0.9, 0):
        driver.stall = stall
        await driver.run(fitting_layers(rng, random_layer, 12))


def held_chain(place, rng, winograd):
    """Return three layers that add up in the accumulators, the last of which lets the sums go."""
    tiles = int(rng.integers(1, MACHINE.tiles + 1))
    chain = []
    for hold, accumulate in ((1, 0), (1, 1), (0, 1)):
        if winograd:
            layer = conv23(place, rng, channels=int(rng.integers(1, 6)), tiles_x=tiles, tiles_y=1,
                           hold=hold, accumulate=accumulate)
        else:
            layer = conv(place, rng, channels=int(rng.integers(1, 40)), kernel=(1, 1), tiles_x=tiles, tiles_y=1,
                         hold=hold, accumulate=accumulate)
        chain.append(layer)
    chain[-1].sums = sum(layer.sums for layer in chain)
    return chain


@cocotb.test()
async def sums_are_held_and_gone_on_with(dut):
    rng = np.random.default_rng(2)
    driver = await begin(dut, 0.1)
    place = Place(MACHINE)
    chains = [held_chain(place, rng, winograd) for winograd in (True, False, False, True)]
    await driver.run([layer for chain in chains for layer in chain])


@cocotb.test()
async def semaphores_are_waited_for_and_signalled(dut):
    rng = np.random.default_rng(3)
    driver = await begin(dut)
    place = Place(MACHINE)
    layers = [conv23(place, rng, channels=3, tiles_x=2, tiles_y=2) for _ in range(3)]
    taken = {"act_ready": 0, "wgt_ready": 0}

    async def semaphore(name, period):
        available, take = getattr(dut, f"{name}_available"), getattr(dut, f"{name}_take")
        for cycle in range(3 * period):
            await RisingEdge(dut.clk)
            if int(take.value):
                assert int(available.value)
                taken[name] += 1
                available.value = 0
            elif cycle % period == period - 1:
                available.value = 1
        while taken[name] < 3:
            await RisingEdge(dut.clk)
            if int(take.value):
                taken[name] += 1
                available.value = 0

    await driver.fill(layers)
    tasks = [cocotb.start_soon(semaphore("act_ready", 150)), cocotb.start_soon(semaphore("wgt_ready", 170))]
    drained = cocotb.start_soon(driver.drain(layers))
    await driver.send(layers, ("wait_act_ready", "wait_wgt_ready", "signal_act_free", "signal_wgt_free"))
    results = await drained
    for task in tasks:
        await task
    assert all(np.array_equal(result, layer.sums) for result, layer in zip(results, layers, strict=True))
    assert taken == {"act_ready": 3, "wgt_ready": 3}
    assert driver.counts["act_free_signal"] == driver.counts["wgt_free_signal"] == 3
    assert driver.states.count(MacState.WAIT_ACTIVATIONS.value) > 100
    assert driver.states.count(MacState.WAIT_WEIGHTS.value) > 10


def compute_phase(states):
    """Return the states from the first issue to the last, both included."""
    issued = [cycle for cycle, state in enumerate(states) if state == MacState.ISSUE.value]
    return states[issued[0]:issued[-1] + 1]


@cocotb.test()
async def conv23_issues_a_tile_slot_in_every_cycle(dut):
    """Two layers of 64 channels in a row: no cycle is lost in either, nor between them.

    With pairs of channels a step of second channels' products, in which no tile comes, is behind each.
    """
    rng = np.random.default_rng(4)
    driver = await begin(dut)
    place = Place(MACHINE)
    channels = 64 if MACHINE.activation_bytes > 32 * 1024 else 32
    tiles_x, tiles_y, groups = 4, 3, 2
    layers = [conv23(place, rng, channels=channels, tiles_x=tiles_x, tiles_y=tiles_y, groups=groups)
              for _ in range(2)]
    layers[1].settings = layers[0].settings
    await driver.run(layers)
    phase = compute_phase(driver.states)
    slots = 2 * channels * groups * tiles_x * tiles_y
    assert slots >= 1000
    behind = 2 * MACHINE.tiles if MACHINE.pairs_channels else 0
    assert driver.counts["tile_slots"] == slots
    assert len(phase) == phase.count(MacState.ISSUE.value) == slots + behind
    macs, multipliers = 36 * MACHINE.lanes * slots, 16 * MACHINE.lanes // MACHINE.lanes_per_fetch
    dut._log.info(f"{macs / multipliers / len(phase)} MAC per multiplier of a lane and cycle")
    assert macs / multipliers / len(phase) >= 2.2 * MACHINE.lanes_per_fetch


@cocotb.test()
async def column_reuse_halves_what_a_neighbour_reads(dut):
    """A full group of T neighbours reads 16 + 8 (T - 1) bytes per channel, without reuse 16 T; weights 9 each."""
    rng = np.random.default_rng(5)
    driver = await begin(dut)
    channels, groups, tiles = 5, 2, MACHINE.tiles
    for reuse, patch_bytes in ((True, 16 + 8 * (tiles - 1)), (False, 16 * tiles)):
        before = dict(driver.counts)
        layer = conv23(Place(MACHINE), rng, channels=channels, tiles_x=2 * tiles, tiles_y=2, groups=groups, reuse=reuse)
        await driver.run([layer])
        got = {name: count - before[name] for name, count in driver.counts.items()}
        steps = 4 * groups * layer.steps
        assert got["activation_read_bytes"] == steps * patch_bytes
        assert got["weight_read_bytes"] == steps * 9 * MACHINE.lanes


@cocotb.test()
async def a_step_by_channel_reads_the_kernels_of_one_fetch(dut):
    """All tiles of lane groups with a channel for each lane: as many slots as of any conv23, and few weights."""
    if not MACHINE.takes_channel_kernels:
        return
    rng = np.random.default_rng(6)
    driver = await begin(dut)
    tiles, groups = MACHINE.tiles, 3
    layer = conv23(Place(MACHINE), rng, channels=0, tiles_x=2 * tiles, tiles_y=2, groups=groups, by_channel=True)
    await driver.run([layer])
    steps = 4 * groups * MACHINE.lanes
    assert driver.counts["weight_read_bytes"] == steps * 9 * MACHINE.lanes_per_fetch
    assert driver.counts["activation_read_bytes"] == steps * (16 + 8 * (tiles - 1))
    behind = tiles if MACHINE.pairs_channels else 0
    assert len(compute_phase(driver.states)) == driver.counts["tile_slots"] + behind == steps * tiles + behind


@cocotb.test()
async def four_patches_take_a_quarter_of_the_steps(dut):
    if not MACHINE.takes_four_patches:
        return
    rng = np.random.default_rng(6)
    driver = await begin(dut)
    layer = conv23(Place(MACHINE), rng, channels=0, tiles_x=2 * MACHINE.tiles, tiles_y=2, groups=3, by_channel=True,
                   four=True)
    await driver.run([layer])
    steps = 4 * 3 * MACHINE.lanes // 4
    assert driver.counts["weight_read_bytes"] == steps * 9 * MACHINE.lanes_per_cluster
    assert driver.counts["activation_read_bytes"] == steps * MACHINE.tiles * 64
    assert driver.counts["tile_slots"] == steps * MACHINE.tiles


@cocotb.test()
async def conv_reads_16_bytes_for_each_slot_and_weight(dut):
    rng = np.random.default_rng(6)
    driver = await begin(dut)
    layer = conv(Place(MACHINE), rng, channels=3, kernel=(3, 3), tiles_x=5, tiles_y=1)
    await driver.run([layer])
    assert driver.counts["activation_read_bytes"] == 16 * 5 * layer.steps
    assert driver.counts["weight_read_bytes"] == 16 * MACHINE.lanes * -(-5 // MACHINE.tiles) * layer.steps


@cocotb.test()
async def paired_rows_take_one_slot_for_two_kernel_rows(dut):
    """Kernel, channels, stride, dilation and steps: half as many as kernel rows, rounded up.

    There is a slot in every cycle in which so few steps leave post-processing the time to take the sums.
    """
    rng = np.random.default_rng(8)
    driver = await begin(dut)
    tiles = 2 * MACHINE.tiles
    for kernel, channels, stride, dilation, steps in (
        ((5, 5), 1, 1, 1, 3), ((4, 2), 3, 2, 1, 2), ((7, 1), 8, 1, 3, 4), ((3, 4), 2, 1, 2, 2 * 4)):
        before, start = dict(driver.counts), len(driver.states)
        await driver.run([conv(Place(MACHINE), rng, channels=channels, kernel=kernel, tiles_x=tiles, tiles_y=3,
                               stride=stride, dilation=dilation, groups=2, paired=True)])
        slots = driver.counts["tile_slots"] - before["tile_slots"]
        assert slots == 2 * 3 * tiles * steps
        phase = compute_phase(driver.states[start:])
        assert phase.count(MacState.ISSUE.value) == slots
        assert set(phase) <= {MacState.ISSUE.value, MacState.WAIT_POST.value}


@cocotb.test()
async def post_processing_that_lags_is_waited_for(dut):
    """Nothing is lost and the waiting is told when sums are read far too slowly."""
    rng = np.random.default_rng(7)
    driver = await begin(dut, 0.95)
    await driver.run([conv(Place(MACHINE), rng, channels=16, kernel=(1, 1), tiles_x=16, tiles_y=4)])
    assert driver.states.count(MacState.WAIT_POST.value) > 100


@cocotb.test()
async def sums_come_at_the_stated_latency(dut):
    rng = np.random.default_rng(8)
    driver = await begin(dut)
    layer = conv23(Place(MACHINE), rng, channels=7, tiles_x=MACHINE.tiles, tiles_y=1)
    await driver.fill([layer])
    await driver.send([layer])
    cycle = last_issue = 0
    while not int(dut.sums_available.value):
        await RisingEdge(dut.clk)
        cycle += 1
        if int(dut.state.value) == MacState.ISSUE.value:
            last_issue = cycle - 1  # states are told one cycle late
    assert cycle - last_issue == MacUnit.latency_of(MACHINE) + MACHINE.fetch_slots
    dut.sums_request__winograd.value = 1
    dut.sums_request__pixel.value = 0
    dut.sums_request__tile.value = 0
    if SLICES > 1:
        dut.sums_request__slice.value = 0
    dut.sums_request__valid.value = 1
    await RisingEdge(dut.clk)
    dut.sums_request__valid.value = 0
    seen = []
    for _ in range(8):
        seen.append(int(dut.sums_response__valid.value))
        await RisingEdge(dut.clk)
    assert seen.index(1) == MacUnit.sums_latency_of(MACHINE)
    assert sum(seen) == 1
