"""Every variant against docs/datapath.md, read literally: one byte, tile, window or value at a time."""

import numpy as np
import pytest

from tilewright.isa import numerics
from tilewright.isa.assembler import command
from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.machine import PRESETS, preset
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory

MACHINES = pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
SIZE = 1 << 16


def engine_of(machine, seed=0):
    """Return an engine whose memory and buffers hold random bytes."""
    rng = np.random.default_rng(seed)
    memory = MainMemory(SIZE, [AddressWindow(MAIN_BASE, MAIN_BASE + SIZE, Permission.READ_WRITE)])
    engine = Executor(machine, memory)
    state = engine.state
    for array in (memory.bytes, state.activations, state.results, state.weight_words, state.ninth_words):
        array[...] = rng.integers(-128, 128, array.shape)
    return engine


def run(engine, *commands):
    engine.run(command(*name.split("."), flags, **operands) for name, operands, *flags in commands)


def blocked(base, x, y, c, block_step, row_step):
    """Return the physical place of a byte: 16 * word + bank."""
    bank = (x % 4 + 4 * (y % 4) + c) % 16
    return 16 * (base // 16 + (y // 4) * row_step // 16 + (x // 4) * block_step // 16 + c) + bank


# ---- load


LAYOUT = {"chunk_step": 40, "channels": 3, "left": 2, "right": 1, "value": -7}


@MACHINES
@pytest.mark.parametrize("fill", [False, True])
def test_linear_rows(machine, fill):
    engine = engine_of(machine)
    expected = engine.state.activations.copy()
    source = engine.memory.bytes
    base, rows, chunks, size = 101, 3, 2, 9
    for r in range(rows):
        start = base + 200 * r
        expected[start:start + 6] = -7
        for i in range(chunks):
            first = start + 6 + 40 * i
            expected[first:first + size] = -7 if fill else source[1003 + 77 * r + 13 * i:][:size]
        end = start + 6 + 40 + size
        expected[end:end + 3] = -7
    run(engine, ("lda.set_row", {"chunk_bytes": size, "chunks": chunks, "memory_chunk_step": 13}),
        ("lda.set_step", {"memory_row_step": 77, "row_step": 200}), ("lda.set_layout", LAYOUT),
        ("lda.fill_linear", {"base": base, "rows": rows}) if fill else
        ("lda.linear", {"address": MAIN_BASE + 1003, "base": base, "rows": rows}))
    np.testing.assert_array_equal(engine.state.activations, expected)


@MACHINES
@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize(("channels", "y"), [(3, 0), (5, 3), (16, 2), (40, 1)])
def test_blocked_rows(machine, fill, channels, y):
    engine = engine_of(machine)
    expected = engine.state.activations.copy()
    base, row_step, rows, chunks, pixels = 64, 16 * channels * 3, 6, 2, 3
    for r in range(rows):
        row = [-7] * 2 * channels
        for i in range(chunks):
            first = 1001 + 500 * r + 150 * i
            row += [-7] * pixels * channels if fill else engine.memory.bytes[first:first + pixels * channels].tolist()
        row += [-7] * channels
        for index, value in enumerate(row):
            expected[blocked(base, index // channels, y + r, index % channels, 16 * channels, row_step)] = value
    run(engine, ("lda.set_row", {"chunk_bytes": pixels * channels, "chunks": chunks, "memory_chunk_step": 150}),
        ("lda.set_step", {"memory_row_step": 500, "row_step": row_step}),
        ("lda.set_layout", LAYOUT | {"channels": channels}),
        ("lda.fill_blocked", {"base": base, "rows": rows, "y": y}) if fill else
        ("lda.blocked", {"address": MAIN_BASE + 1001, "base": base, "rows": rows, "y": y}))
    np.testing.assert_array_equal(engine.state.activations, expected)


def test_residual_rows_have_no_padding():
    engine = engine_of(preset("base"))
    expected = engine.state.results.copy()
    for r in range(3):
        for i in range(2):
            expected[55 + 300 * r + 40 * i:][:10] = engine.memory.bytes[9 + 64 * r + 20 * i:][:10]
    run(engine, ("lda.set_row", {"chunk_bytes": 10, "chunks": 2, "memory_chunk_step": 20}),
        ("lda.set_step", {"memory_row_step": 64, "row_step": 300}), ("lda.set_layout", LAYOUT),
        ("lda.residual", {"address": MAIN_BASE + 9, "base": 55, "rows": 3}))
    np.testing.assert_array_equal(engine.state.results, expected)


def weight(engine, cluster, word, byte, ninth=False):
    return int((engine.state.ninth_words if ninth else engine.state.weight_words)[word, cluster, byte])


@MACHINES
@pytest.mark.parametrize("variant", ["main", "ninths"])
def test_bus_words_go_to_the_clusters_in_turn(machine, variant):
    engine = engine_of(machine)
    bus, base, words = machine.bus_bytes, 13, 37
    source = engine.memory.bytes[640:640 + words * bus].copy()
    run(engine, (f"ldw.{variant}", {"address": MAIN_BASE + 640, "base": base, "words": words}))
    for index in range(words):
        i = base + index
        part, place = i % (16 // bus), i // (16 // bus)
        word, cluster = divmod(place, machine.clusters)
        for byte in range(bus):
            assert weight(engine, cluster, word, part * bus + byte, variant == "ninths") == source[index * bus + byte]


# ---- mac


def tiles_of(op, cfg, machine):
    """Yield (lane group, tile number in its group, ty, tx)."""
    for g in range(op["groups"]):
        for index in range(op["tiles_y"] * cfg["tiles_x"]):
            yield g, index % machine.tiles, *divmod(index, cfg["tiles_x"])


CONV = {"tiles_x": 5, "runs": 2, "kernel_x": 2, "kernel_y": 3, "x_step": 19, "y_step": 400, "kernel_x_step": 37,
        "kernel_y_step": 401}
SETS = {"set_shape": ("tiles_x", "runs", "kernel_x", "kernel_y"), "set_tile_step": ("x_step", "y_step"),
        "set_kernel_step": ("kernel_x_step", "kernel_y_step", "pair_words"), "set_group_step": ("group_step",)}


def set_conv(cfg):
    return [(f"conv.{name}", {field: cfg.get(field, 0) for field in fields}) for name, fields in SETS.items()]


@MACHINES
@pytest.mark.parametrize(("group_step", "pair_words"), [(0, 0), (48, 0), (0, 3), (48, 25)])
def test_conv(machine, group_step, pair_words):
    engine = engine_of(machine)
    op = {"base": 77, "tiles_y": 3, "groups": 3, "weight_base": 5}
    run(engine, *set_conv(CONV | {"group_step": group_step, "pair_words": pair_words}), ("conv.run", op))
    found = engine.state.sums[-1]
    lanes, per = machine.lanes, machine.lanes_per_cluster
    steps = CONV["kernel_y"] * CONV["kernel_x"] * CONV["runs"]
    for g, _, ty, tx in tiles_of(op, CONV, machine):
        for lane in range(lanes):
            total = 0
            for k in range(steps):
                ky, rest = divmod(k, CONV["kernel_x"] * CONV["runs"])
                kx, r = divmod(rest, CONV["runs"])
                address = (77 + g * group_step + ty * 400 + tx * 19 + ky * 401 + kx * 37 + 16 * r)
                word = 5 + (g * steps + k) * per + lane % per
                places = [address + i + (16 * pair_words if i >= 8 else 0) for i in range(16)]
                total += int(np.dot(engine.state.weight_words[word, lane // per].astype(int),
                                    engine.state.activations[places].astype(int)))
            assert found.sums[ty, tx, g * lanes + lane] == total
    assert not found.winograd


@MACHINES
@pytest.mark.parametrize(("group_step", "y_half"), [(0, 0), (0, 1), (16 * 6, 0)])
def test_conv23(machine, group_step, y_half):
    engine = engine_of(machine)
    channels, tiles_x, op = 6, 3, {"base": 32, "tiles_y": 2, "y_half": y_half, "groups": 2, "weight_base": 16}
    stored = channels * (2 if group_step else 1)       # of both lane groups' inputs
    cfg = {"tiles_x": tiles_x, "runs": channels, "kernel_x": 1, "kernel_y": 1, "x_step": 16 * stored,
           "y_step": 16 * stored * 2, "group_step": group_step}
    run(engine, *set_conv(cfg), ("conv23.run", op))
    found = engine.state.sums[-1]
    per = machine.lanes_per_cluster
    for g, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            total = np.zeros((2, 2), int)
            for ch in range(channels):
                patch = [[int(engine.state.activations[blocked(32, 2 * tx + j, 2 * ty + 2 * y_half + i,
                                                         ch + g * group_step // 16, 16 * stored, cfg["y_step"])])
                          for j in range(4)] for i in range(4)]
                q = (g * channels + ch) * per + lane % per
                word, cluster = 16 + q // 2, lane // per
                weights = [weight(engine, cluster, word, 8 * (q % 2) + i) for i in range(8)]
                weights.append(weight(engine, cluster, 16 // 8 + q // 16, q % 16, ninth=True))
                total += np.array(numerics.conv23_tile(patch, np.reshape(weights, (3, 3)).tolist()))
            np.testing.assert_array_equal(
                found.sums[2 * ty:2 * ty + 2, 2 * tx:2 * tx + 2, g * machine.lanes + lane], total)
    assert found.winograd


def test_conv23_without_reuse_gives_the_same():
    engine = engine_of(preset("base"))
    cfg = {"tiles_x": 3, "runs": 4, "kernel_x": 1, "kernel_y": 1, "x_step": 64, "y_step": 128}
    op = {"base": 0, "tiles_y": 2, "groups": 1, "weight_base": 0}
    run(engine, *set_conv(cfg), ("conv23.run", op), ("conv23.run_without_reuse", op))
    np.testing.assert_array_equal(engine.state.sums[0].sums, engine.state.sums[1].sums)


@MACHINES
def test_pool_sum_takes_byte_l_of_a_run_to_lane_l(machine):
    engine = engine_of(machine)
    op = {"base": 3, "tiles_y": 2, "groups": 2}
    cfg = CONV | {"runs": 1, "group_step": machine.lanes}
    run(engine, *set_conv(cfg), ("pool.sum", op))
    for g, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            first = 3 + g * machine.lanes + ty * 400 + tx * 19 + lane
            total = sum(int(engine.state.activations[first + ky * 401 + kx * 37])
                        for ky in range(3) for kx in range(2))
            assert engine.state.sums[-1].sums[ty, tx, g * machine.lanes + lane] == total


def test_hold_and_accumulate_add_up():
    engine = engine_of(preset("base"))
    cfg = CONV | {"tiles_x": 2}
    op = {"base": 0, "tiles_y": 2, "groups": 1, "weight_base": 0}
    run(engine, *set_conv(cfg), ("conv.run", op), ("conv.run", op | {"base": 500, "weight_base": 99}),
        ("conv.run", op | {"hold": 1}), ("conv.run", op | {"base": 500, "weight_base": 99, "accumulate": 1}))
    first, second, both = (tile.sums for tile in engine.state.sums)
    np.testing.assert_array_equal(both, first + second)


# ---- post


def set_parameters(engine, count, seed=1):
    """Give the channels random parameters of sensible size and return them."""
    rng = np.random.default_rng(seed)
    parameters = []
    for channel in range(count):
        bias, mantissa, shift = int(rng.integers(-9000, 9000)), int(rng.integers(1 << 23, 1 << 24)), 34
        words = np.array([bias & 0xFFFF_FFFF, mantissa | shift << 24], "<u4")
        engine.state.parameters[8 * channel:8 * channel + 8] = words.view(np.int8)
        parameters.append({"bias": bias, "mantissa": mantissa, "shift": shift})
    return parameters


CLAMP = {"zero_point": 3, "low": -100, "high": 90}
OUTPUT = {"width": 5, "pixel_step": 13, "row_step": 120}


def sums_for(engine, winograd, rows, channels):
    """Leave the sums of a mac command of that many output rows, ``OUTPUT["width"]`` wide; return them."""
    groups = -(-channels // engine.state.machine.lanes)
    if winograd:
        cfg = {"tiles_x": 3, "runs": 2, "kernel_x": 1, "kernel_y": 1, "x_step": 32, "y_step": 64}
        run(engine, *set_conv(cfg), ("conv23.run", {"tiles_y": -(-rows // 2), "groups": groups}))
    else:
        run(engine, *set_conv(CONV), ("conv.run", {"tiles_y": rows, "groups": groups}))
    return engine.state.sums[-1].sums


@MACHINES
@pytest.mark.parametrize("winograd", [0, 1])
def test_act_requantises_and_drops_what_is_outside(machine, winograd):
    engine = engine_of(machine)
    parameters = set_parameters(engine, 64)
    rows, channels, first = 3, 11, machine.lanes
    sums = sums_for(engine, winograd, rows, channels)
    expected = engine.state.results.copy()
    for y in range(rows):
        for x in range(5):
            for n in range(channels):
                expected[40 + 120 * y + 13 * x + n] = numerics.requantize(
                    int(sums[y, x, n]), **parameters[first + n], **CLAMP)
    run(engine, ("act.set_output", OUTPUT), ("act.set_clamp", CLAMP),
        ("act.run", {"base": 40, "rows": rows, "winograd": winograd, "parameter_base": first, "channels": channels}))
    np.testing.assert_array_equal(engine.state.results, expected)


@pytest.mark.parametrize(("own_second", "unsigned"), [(0, 0), (1, 0), (0, 1)])
def test_act_adds_the_residual_that_lies_there(own_second, unsigned):
    engine = engine_of(preset("base"))
    parameters = set_parameters(engine, 8)
    sums = sums_for(engine, 0, 2, 6)
    scales = {"mantissa_a": 0xC00000, "shift_a": 24, "mantissa_b": 0x900001, "shift_b": 23}
    offset = {"offset_mantissa": 0x900000, "offset_shift": 20, "offset_negative": 1, "unsigned": unsigned}
    bounds = {"low": -90, "high": 120}
    expected = engine.state.results.copy()
    for y in range(2):
        for x in range(5):
            for n in range(6):
                place = 40 + 120 * y + 13 * x + n
                own = numerics.requantize(int(sums[y, x, n]), **parameters[n], **CLAMP)
                operands = (int(expected[place]), own) if own_second else (own, int(expected[place]))
                expected[place] = numerics.add_residual(*operands, **scales, **offset, **bounds)
    run(engine, ("act.set_output", OUTPUT), ("act.set_clamp", CLAMP), ("act.set_residual_scale", scales),
        ("act.set_residual_offset", offset | {"residual_low": -90, "residual_high": 120, "own_second": own_second}),
        ("act.run", {"base": 40, "rows": 2, "channels": 6, "residual": 1}))
    np.testing.assert_array_equal(engine.state.results, expected)


@pytest.mark.parametrize("winograd", [0, 1])
@pytest.mark.parametrize(("kernel", "stride", "top", "left", "rows", "width"), [
    ((2, 2), (2, 2), 0, 0, 2, 2), ((3, 3), (2, 2), 1, 1, 3, 3), ((3, 2), (1, 3), 0, 1, 2, 2),
    ((2, 3), (3, 1), 1, 2, 2, 5), ((2, 2), (2, 2), 0, 0, 1, 1)])
def test_pooling_visits_windows_value_by_value(winograd, kernel, stride, top, left, rows, width):
    engine = engine_of(preset("base"))
    parameters = set_parameters(engine, 8)
    sums = sums_for(engine, winograd, 4, 6)
    expected = engine.state.results.copy()
    for y in range(4):
        for x in range(5):
            for wy in range(rows):
                for wx in range(width):
                    y0, x0 = wy * stride[0] - top, wx * stride[1] - left
                    if not (y0 <= y < y0 + kernel[0] and x0 <= x < x0 + kernel[1]):
                        continue
                    first = (y, x) == (max(0, y0), max(0, x0))
                    for n in range(6):
                        place = 40 + 120 * wy + 13 * wx + n
                        value = numerics.requantize(int(sums[y, x, n]), **parameters[n], **CLAMP)
                        expected[place] = value if first else max(value, expected[place])
    run(engine, ("act.set_output", OUTPUT), ("act.set_clamp", CLAMP),
        ("pool.window", {"kernel_y": kernel[0], "kernel_x": kernel[1], "stride_y": stride[0], "stride_x": stride[1],
                         "top": top, "left": left, "rows": rows, "width": width}),
        ("act.run", {"base": 40, "rows": 4, "channels": 6, "pooled": 1, "winograd": winograd}))
    np.testing.assert_array_equal(engine.state.results, expected)


@pytest.mark.parametrize(("residual", "pooled"), [(0, 0), (1, 0), (0, 1)])
def test_a_table_maps_sums_behind_the_residual_and_before_the_pooling(residual, pooled):
    machine = preset("base")
    engine = engine_of(machine)
    set_parameters(engine, 8)
    table = np.random.default_rng(3).permutation(256).astype(np.uint8).view(np.int8)
    engine.memory.bytes[256:512] = table
    scales = {"mantissa_a": 0xC00000, "shift_a": 24, "mantissa_b": 0x900001, "shift_b": 23}
    settings = (("act.set_output", OUTPUT), ("act.set_clamp", CLAMP), ("act.set_residual_scale", scales),
                ("act.set_residual_offset", {"residual_low": -90, "residual_high": 120}),
                ("pool.window", {"kernel_y": 1, "kernel_x": 1, "stride_y": 1, "stride_x": 1, "rows": 2, "width": 5}),
                ("ldw.table", {"address": MAIN_BASE + 256, "base": 3 * 256 // machine.bus_bytes,
                               "words": 256 // machine.bus_bytes}))
    act = {"base": 40, "rows": 2, "channels": 6, "residual": residual, "pooled": pooled}
    before = engine.state.results.copy()
    sums_for(engine, 0, 2, 6)
    run(engine, *settings, ("act.run", act))
    unmapped, engine.state.results[:] = engine.state.results.copy(), before
    sums_for(engine, 0, 2, 6)
    run(engine, ("act.run", act | {"table": 1, "table_slot": 3}))
    for y in range(2):
        for x in range(5):
            for n in range(6):
                place = 40 + 120 * y + 13 * x + n
                before[place] = table[int(unmapped[place]) + 128]
    np.testing.assert_array_equal(engine.state.results, before)


# ---- store


STA = {"chunk_bytes": 7, "chunks": 3, "chunk_step": 20}


def set_store(chunk_step, row_step):
    return (("sta.set_row", STA), ("sta.set_source", {"row_step": 90}),
            ("sta.set_target", {"target_chunk_step": chunk_step, "target_row_step": row_step}))


@pytest.mark.parametrize("local", [False, True])
def test_store_rows(local):
    engine = engine_of(preset("base"))
    target = engine.state.activations if local else engine.memory.bytes
    expected = target.copy()
    for r in range(2):
        for i in range(3):
            expected[333 + 100 * r + 9 * i:][:7] = engine.state.results[11 + 90 * r + 20 * i:][:7]
    source = {"base": 11, "rows": 2}
    run(engine, *set_store(9, 100), ("sta.linear", source | {"target": 333}) if local else
        ("sta.memory", source | {"address": MAIN_BASE + 333}))
    np.testing.assert_array_equal(target, expected)


def test_store_blocked():
    engine = engine_of(preset("base"))
    expected = engine.state.activations.copy()
    block, row = 16 * 40, 16 * 40 * 3
    for r in range(3):
        for i in range(3):
            for c in range(7):
                place = blocked(64, 2 + i, 3 + r, 16 * 2 + c, block, row)
                expected[place] = engine.state.results[11 + 90 * r + 20 * i + c]
    run(engine, *set_store(block, row), ("sta.blocked", {"target": 64, "x": 2, "y": 3, "channel": 2, "base": 11,
                                                         "rows": 3}))
    np.testing.assert_array_equal(engine.state.activations, expected)


def test_status_stores_the_record_it_is_given():
    engine = engine_of(preset("base"))
    record = np.arange(RECORD_WORDS, dtype=np.uint32) + len(COUNTERS)
    engine.state.counters = lambda: record
    run(engine, ("sta.status", {"address": MAIN_BASE + 256}), ("sta.fence", {}))
    np.testing.assert_array_equal(engine.memory.bytes[256:256 + 4 * RECORD_WORDS].view("<u4"), record)
