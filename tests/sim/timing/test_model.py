"""The parts of the cycle model against their definitions, cycle by cycle and byte by byte."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.counters import COUNTERS
from tilewright.isa.machine import Machine
from tilewright.sim.timing.array import Coupling
from tilewright.sim.timing.bus import Bus
from tilewright.sim.timing.command_work import Padding, Runs, Windows, load_rows, mac_work, post_work, store_rows
from tilewright.sim.timing.event_queue import CountingSemaphore, Event, EventQueue, Fifo
from tilewright.sim.timing.ledger import Ledger

MACHINES = pytest.mark.parametrize("machine", WINOGRAD_MACHINES.values(), ids=lambda machine: machine.name)


# ---- kernel


def test_processes_wait_for_cycles_events_and_semaphores():
    scheduler, log = EventQueue(), []
    event, semaphore = Event(), CountingSemaphore(scheduler)

    def first():
        yield 5
        log.append(("five", scheduler.now))
        scheduler.fire(event, 12)
        yield 3         # past: goes on at once
        log.append(("still five", scheduler.now))
        yield 20
        semaphore.signal()

    def second():
        yield event
        log.append(("event", scheduler.now))
        yield semaphore.take()
        log.append(("semaphore", scheduler.now))

    scheduler.at(0, first())
    scheduler.at(0, second())
    scheduler.run()
    assert log == [("five", 5), ("still five", 5), ("event", 12), ("semaphore", 20)]


def test_a_queue_holds_its_depth_and_shows_items_after_its_latency():
    scheduler, log = EventQueue(), []
    queue = Fifo(scheduler, 2, 3)

    def put():
        for index in range(4):
            yield from queue.put(index)
            log.append(("put", index, scheduler.now))

    def take():
        yield 10
        for _ in range(4):
            yield from queue.head()
            log.append(("taken", queue.pop(), scheduler.now))

    scheduler.at(0, put())
    scheduler.at(0, take())
    scheduler.run()
    assert [entry for entry in log if entry[0] == "put"] == [
        ("put", 0, 0), ("put", 1, 0), ("put", 2, 10), ("put", 3, 10)]
    assert [entry for entry in log if entry[0] == "taken"] == [
        ("taken", 0, 10), ("taken", 1, 10), ("taken", 2, 13), ("taken", 3, 13)]


# ---- bus


def moved(bus, *transfers):
    """Move (stream, start, words, cycles) each; return when each was done."""
    scheduler, done = bus.scheduler, {}

    def process(index, stream, start, words, cycles):
        yield start
        yield bus.move(stream, words, cycles)
        done[index] = scheduler.now

    for index, transfer in enumerate(transfers):
        scheduler.at(0, process(index, *transfer))
    scheduler.run()
    return [done[index] for index in range(len(transfers))]


def bus_of(rate):
    return Bus(EventQueue(), rate)


def test_a_transfer_alone_takes_its_words_or_its_cycles():
    bus = bus_of(1.0)
    assert moved(bus, (bus.read, 7, 100, 100), (bus.read, 8, 10, 40)) == [107, 147]
    slow = bus_of(0.5)
    assert moved(slow, (slow.write, 0, 100, 100)) == [200]
    wide = bus_of(2.0)
    assert moved(wide, (wide.read, 0, 100, 100), (wide.write, 0, 100, 100)) == [100, 100]


def test_two_streams_share_word_by_word():
    bus = bus_of(1.0)
    # Half each until the write is through after 200 cycles; the read has 200 words left.
    assert moved(bus, (bus.read, 0, 300, 300), (bus.write, 0, 100, 100)) == [400, 200]


def test_what_one_does_not_want_the_other_gets():
    bus = bus_of(1.0)
    assert moved(bus, (bus.read, 0, 100, 800), (bus.write, 0, 350, 350)) == [800, 400]


def test_a_limit_holds_while_it_is_there():
    bus = bus_of(1.0)
    bus.scheduler.at(50, lambda: bus.limit(bus.write, 0.25))
    bus.scheduler.at(150, lambda: bus.limit(bus.write, 1.0))
    assert moved(bus, (bus.write, 0, 100, 100)) == [50 + 100 + 25]


# ---- array and post-processing


def stepped(ring, delay, macs, posts):
    """Return ends of mac and post commands by the equations of sim/timing/array.py, one group at a time.

    ``macs`` and ``posts`` are lists of (start, cycles, last) and (start, cycles).
    """
    mac_ends, post_ends, ends, done = [], [], [], []
    for (start, cycles, last), (post_start, post_cycles) in zip(macs, posts, strict=True):
        for index in range(len(cycles)):
            previous = max(ends[-1] if ends else 0, start)
            freed = done[len(ends) - ring] if len(ends) >= ring else 0
            ends.append(max(previous + cycles[index] - last[index], freed) + last[index])
            before = max(done[-1] if done else 0, post_start)
            done.append(max(before, ends[-1] + delay) + post_cycles[index])
        mac_ends.append(ends[-1])
        post_ends.append(done[-1])
    return mac_ends, post_ends


@pytest.mark.parametrize("seed", range(30))
def test_coupling_follows_the_equations(seed):
    rng = np.random.default_rng(seed)
    ring, delay = int(rng.choice([4, 8, 16])), int(rng.integers(5, 20))
    macs, posts = [], []
    start = post_start = 0
    for _ in range(4):
        count = int(rng.integers(1, 60))
        last = rng.integers(1, 5, count)
        cycles = last * rng.integers(1, 30)
        post = rng.integers(1, 2 * int(cycles.mean()) + 2, count) if rng.random() < 0.5 else rng.integers(1, 4, count)
        macs.append((start, cycles.tolist(), last.tolist()))
        posts.append((post_start, post.tolist()))
        start, post_start = start + int(rng.integers(0, 900)), post_start + int(rng.integers(0, 1500))
    scheduler = EventQueue()
    coupling = Coupling(scheduler, ring, delay)
    issued, drained = [], []
    # Posts may be known before or after their mac commands; each side in its own order.
    left = [macs.copy(), posts.copy()]
    while left[0] or left[1]:
        side = int(rng.integers(2))
        if left[side]:
            job = left[side].pop(0)
            arrays = [np.array(each, np.int64) for each in job[1:]]
            if side == 0:
                issued.append(coupling.issue(job[0], *arrays))
            else:
                drained.append(coupling.drain(job[0], *arrays, lambda: None))
    assert ([event.time for event in issued], [event.time for event in drained]) == stepped(ring, delay, macs, posts)


def test_the_array_waits_for_post_processing_that_has_not_begun():
    scheduler = EventQueue()
    coupling = Coupling(scheduler, 4, 10)
    known = []
    end = coupling.issue(0, np.full(6, 8, np.int64), np.full(6, 4, np.int64))
    assert end.time is None
    done = coupling.drain(100, np.full(6, 2, np.int64), lambda: known.append(scheduler.now))
    # Groups 0..3 have long been ready; their release lets group 4 end at 102 + 4, and group 5 eight cycles later.
    assert (end.time, done.time) == (102 + 4 + 8, 114 + 10 + 2)
    scheduler.run()
    assert known == [0]


def test_sums_that_leave_as_they_come_need_no_room():
    """The array knows in cycle 42 that post-processing takes its command, a group as fast as it issues one."""
    group = np.full(12, 4, np.int64)
    coupling = Coupling(EventQueue(), 4, 20)
    end, done = coupling.issue(0, group, group), coupling.drain(50, group, lambda: None, 42)
    # Four groups are issued at once, the others from then on; the first of these has come when four are taken.
    assert (end.time, done.time) == (42 + 8 * 4, 50 + 12 * 4)
    # The next command is known to post-processing already: it never waits.
    later = coupling.drain(98, group, lambda: None, 90)
    end = coupling.issue(120, group, group)
    assert (end.time, later.time) == (120 + 12 * 4, 120 + 12 * 4 + 20 + 4)


def test_sums_of_a_command_behind_need_room():
    """Steady or not: when post-processing begins with the first command, the array has begun the second."""
    four, many = np.full(4, 4, np.int64), np.full(8, 4, np.int64)
    coupling = Coupling(EventQueue(), 4, 20)
    coupling.issue(0, four, four)
    end = coupling.issue(16, many, many)
    first = coupling.drain(100, four, lambda: None, 92)
    assert first.time == 116
    second = coupling.drain(116, many, lambda: None)
    # Groups 0 to 3 wait for those of the first command, taken in 104 to 116; group 4 for group 0, taken in 128 + 4.
    assert (end.time, second.time) == (132 + 4 * 4, 148 + 20 + 4)


def test_held_sums_need_no_room():
    coupling = Coupling(EventQueue(), 4, 10)
    assert coupling.hold(7, 100).time == 107
    assert coupling.hold(50, 10).time == 117


# ---- shapes


def spans(start, size, bus_bytes, pixel):
    """Return (bus words, writes) of a run byte by byte: a write is bytes of one word and one pixel."""
    words = {(start + i) // bus_bytes for i in range(size)}
    parts = {((start + i) // bus_bytes, i // pixel) for i in range(size)}
    return len(words), len(parts)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("blocked", [False, True])
def test_load_rows_counts_what_bytes_touch(seed, blocked):
    rng = np.random.default_rng(seed)
    bus_bytes, pixel = int(rng.choice([4, 8, 16, 32, 64])), int(rng.integers(1, 40))
    written = min(bus_bytes, int(rng.choice([16, 64])))
    rows, chunks, left, right = (int(n) for n in rng.integers([1, 1, 0, 0], [12, 12, 3, 3]))
    size = pixel * int(rng.integers(1, 20))
    lane, row_step, chunk_step = (int(n) for n in rng.integers(0, bus_bytes, 3))
    fill = bool(rng.integers(2))
    move = load_rows(Runs(lane, rows, chunks, size, row_step, chunk_step), Padding(left, right, pixel),
                     blocked=blocked, fill=fill, bus_bytes=bus_bytes, written_bytes=written)
    unit = pixel if blocked else 1 << 30
    words = parts = 0
    for row in range(rows):
        for side in (left, right):
            parts += spans(0, side * pixel, written, unit)[1]
        for chunk in range(chunks):
            start = 0 if fill else lane + row * row_step + chunk * chunk_step
            words += spans(start, size, bus_bytes, unit)[0] * (not fill)
            parts += spans(start, size, written, unit)[1]
    assert (move.words, move.cycles) == (words, parts)
    assert move.segments == rows * (chunks + (left > 0) + (right > 0))
    assert move.bytes == rows * (chunks * size + (left + right) * pixel)
    assert move.lead == spans(0, left * pixel, written, unit)[1]


@pytest.mark.parametrize("to_memory", [False, True])
@pytest.mark.parametrize(("bus_bytes", "size"), [(8, 11), (32, 41)])
def test_store_rows_counts_what_bytes_touch(to_memory, bus_bytes, size):
    written = min(bus_bytes, 16)
    move = store_rows(Runs(5, 3, 4, size, 6, 3), to_memory=to_memory, bus_bytes=bus_bytes, written_bytes=written)
    starts = [5 + 6 * row + 3 * chunk if to_memory else 0 for row in range(3) for chunk in range(4)]
    words = sum(spans(start, size, bus_bytes, 1)[0] for start in starts)
    cycles = words if to_memory else sum(spans(start, size, written, 1)[0] for start in starts)
    assert (move.words, move.cycles, move.segments, move.bytes) == (words, cycles, 12, 12 * size)


def test_mac_work_of_pairs_of_channels_ends_with_the_last_of_second_channels():
    machine = Machine(array="winograd_inner", lanes=4)      # two slots fetch the weights of its lanes
    work = mac_work(machine, "conv23", 5, 1, 2, 3, reuse=False)
    # Two lane groups of four tiles and of one, four steps each. The first step of a group has as many slots as the
    # last products of the one before; behind the last there is a step for those alone.
    assert work.total == (4 + 3 * 4) + (4 + 3 * 2) + (4 + 3 * 4) + (4 + 3 * 2) + 2
    assert work.cycles.sum() == work.total
    assert work.cycles.tolist() == [4 + 12 + 4, 6 + 4, 12 + 4, 6 + 2]
    assert work.last.tolist() == [4 + 4, 2 + 4, 4 + 4, 2 + 2]
    assert work.tile_slots == 5 * 4 * 2


@MACHINES
@pytest.mark.parametrize("kind", ["conv23", "conv", "pool"])
@pytest.mark.parametrize(("tiles_x", "tiles_y"), [(1, 1), (3, 3), (5, 2), (4, 4), (7, 1)])
def test_mac_work_counts_the_loops(machine, kind, tiles_x, tiles_y):
    steps, groups = 6, 3
    work = mac_work(machine, kind, tiles_x, tiles_y, groups, steps, reuse=kind == "conv23")
    count, per = tiles_x * tiles_y, machine.lanes_per_cluster
    issued = valid = read = fetched = 0
    cycles = []
    for _ in range(groups):
        for first in range(0, count, machine.tiles):
            tiles = range(first, min(first + machine.tiles, count))
            cycles.append(0)
            for _ in range(steps):
                for slot in range(max(len(tiles), per)):
                    issued += 1
                    cycles[-1] += 1
                    fetched += (slot < per) * {"conv23": 9, "conv": 16, "pool": 0}[kind] * machine.clusters
                    if slot < len(tiles):
                        valid += 1
                        reuse = kind == "conv23" and slot > 0 and tiles[slot] % tiles_x > 0
                        read += 8 if reuse else 16
    assert work.cycles.tolist() == cycles
    assert (work.last * steps).tolist() == cycles
    assert (work.total, work.tile_slots, work.activation_read, work.weight_read) == (issued, valid, read, fetched)


POOLS = (None, (Windows(2, 2, 0, 2), Windows(2, 2, 0, 3)), (Windows(3, 2, 1, 3), Windows(3, 2, 1, 3)),
         (Windows(2, 3, 0, 1), Windows(5, 3, 2, 2)))


@MACHINES
@pytest.mark.parametrize("winograd", [False, True])
@pytest.mark.parametrize("windows", POOLS)
def test_post_work_counts_vectors_and_windows(machine, winograd, windows):
    rows, width, channels = 5, 6, 2 * machine.lanes + 1
    work = post_work(machine, rows, width, channels, windows, winograd=winograd, residual=False)
    side = 2 if winograd else 1
    order = [(y, x) for y in range(0, rows, side) for x in range(0, width, side)]
    cycles, reads, writes, read_bytes, written_bytes = [], 0, 0, 0, 0
    for first_channel in range(0, channels, machine.lanes):
        here = min(machine.lanes, channels - first_channel)
        slices = [min(machine.post_lanes, here - s) for s in range(0, here, machine.post_lanes)]
        for first in range(0, len(order), machine.tiles):
            cycles.append(0)
            for ty, tx in order[first:first + machine.tiles]:
                for y, x in ((ty + i, tx + j) for i in range(side) for j in range(side)):
                    if y >= rows or x >= width:
                        continue
                    met = covering(windows, y, x)
                    for count in slices:
                        cycles[-1] += max(1, len(met)) if windows else 1
                        writes += len(met) if windows else 1
                        written_bytes += count * (len(met) if windows else 1)
                        reads += sum(not fresh for fresh in met)
                        read_bytes += count * sum(not fresh for fresh in met)
    assert work.cycles.tolist() == cycles
    assert (work.read_cycles, work.write_cycles) == (reads, writes)
    assert (work.read, work.written, work.requantized) == (read_bytes, written_bytes, rows * width * channels)


def test_pixels_that_a_stride_drops_take_no_cycle_where_four_patches_come_at_once():
    machine = Machine(array="winograd_inner", lanes=8, post_lanes=8, channel_kernels=True, four_patches=True)
    windows = (Windows(1, 2, 0, 3), Windows(1, 2, 0, 3))
    work, every = (post_work(each, 5, 6, 9, windows, winograd=True, residual=False)
                   for each in (machine, replace(machine, four_patches=False)))
    assert work.cycles.tolist() == 2 * [4, 4, 1]
    assert every.cycles.tolist() == 2 * [16, 12, 2]
    assert (work.written, work.read) == (every.written, every.read) == (9 * 9, 0)
    assert (work.requantized, every.requantized) == (9 * 9, 30 * 9)


@pytest.mark.parametrize(("array", "lanes", "clusters", "steps"), [("winograd_inner", 8, 1, 2), ("winograd", 8, 2, 2)])
def test_four_patches_at_once_take_a_quarter_of_the_steps(array, lanes, clusters, steps):
    machine = Machine(array=array, lanes=lanes, clusters=clusters, post_lanes=4, channel_kernels=True,
                      four_patches=True)
    work = mac_work(machine, "conv23", 3, 3, 2, steps, reuse=False, by_channel=4)
    assert work.cycles.tolist() == 6 * [4 * steps]
    assert (work.last == 4 * machine.lanes_per_fetch).all()
    assert work.activation_read == 64 * 9 * steps * 2
    assert work.weight_read == 3 * steps * 2 * 9 * machine.lanes_per_cluster


def covering(windows, y, x):
    """Return, for each window that covers the pixel, whether the pixel is its first."""
    met = []
    for wy in range(windows[0].count if windows else 0):
        for wx in range(windows[1].count):
            y0, x0 = (w.stride * i - w.padding for w, i in zip(windows, (wy, wx), strict=True))
            if y0 <= y < y0 + windows[0].kernel and x0 <= x < x0 + windows[1].kernel:
                met.append((y, x) == (max(0, y0), max(0, x0)))
    return met


def test_residual_adds_one_value_for_four_lanes_a_cycle():
    plain, residual = (post_work(WINOGRAD_MACHINES["base"], 4, 4, 8, None, winograd=False, residual=flag)
                       for flag in (False, True))
    assert residual.cycles.sum() == 4 * plain.cycles.sum()
    assert (residual.read, residual.written) == (plain.written, plain.written)


# ---- ledger


def test_causes_add_up_at_any_cycle():
    scheduler = EventQueue()
    ledger = Ledger(scheduler)
    records = []
    events = [(3, lambda: ledger.work("load", 1)), (10, lambda: ledger.enter("mac_wait_activations")),
              (25, lambda: ledger.enter("mac_setup")), (30, lambda: ledger.begin(40, {"tile_slots": 80})),
              (33, lambda: ledger.work("load", -1)), (90, lambda: ledger.end("idle")),
              (95, lambda: ledger.work("store", 1)), (99, lambda: ledger.work("store", -1))]
    for cycle, action in events:
        scheduler.at(cycle, action)
    for cycle in (1, 20, 31, 60, 89, 97, 120):
        scheduler.at(cycle, lambda: records.append(ledger.record(90 if scheduler.now < 90 else None)))
    scheduler.run()
    names = [counter.name for counter in COUNTERS]
    for record in records:
        counts = dict(zip(names, record.tolist(), strict=False))
        assert counts["cycles"] == sum(count for name, count in counts.items() if name.startswith("mac_"))
    last = {name: count for name, count in counts.items() if count}
    assert last == {"cycles": 120, "mac_issue": 40, "mac_wait_post": 20, "mac_setup": 5, "mac_wait_activations": 15,
                    "mac_idle_load": 7, "mac_idle_host": 3 + 5 + 21, "mac_idle_post": 4, "tile_slots": 80,
                    "load_busy": 30, "store_busy": 4}
    halfway = dict(zip(names, records[3].tolist(), strict=False))
    assert (halfway["mac_issue"], halfway["mac_wait_post"], halfway["tile_slots"]) == (20, 10, 40)
