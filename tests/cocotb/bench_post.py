"""Programs for the post-processing unit: random ones under random delays, and timed ones without."""

import os
import random
from collections import Counter, deque
from dataclasses import replace

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.support.machines import with_units
from tests.support.post_program import REGION, REGIONS, SCRATCH, TABLES, Pool, Program, random_program
from tilewright.isa.machine import PRESETS, TABLE_BYTES, TABLE_SLOTS
from tilewright.rtl.post.post import PostUnit
from tilewright.sim.timing.command_work import row_cycles


class Bench:
    """Everything around the unit, one step per cycle; ``delay`` is the probability that anyone waits a cycle."""

    def __init__(self, dut, program, delay):
        self.dut, self.program, self.delay = dut, program, delay
        self.machine = program.machine
        self.unit = PostUnit(self.machine, sums_latency=int(os.environ["SUMS_LATENCY"]))
        self.members = {name: member for name, member, _ in self._payloads()}
        self.rng = random.Random(program.rng.random())
        self.cycle = self.started = 0
        self.driven = {}
        self.commands = deque(program.commands)
        self.groups = deque(self._groups())
        self.produced = 0
        self.responses = {}
        self.reads, self.answers, self.writes = deque(), deque(), deque()
        self.semaphores, self.signals, self.counted = Counter(), Counter(), Counter()
        self.prepared = self.finished = self.checked = 0
        self.scratch = bytearray(program.initial[-SCRATCH:])
        self.busy_cycles, self.write_cycles = [], []

    def _payloads(self):
        for name, member in self.unit.signature.members.items():
            if member.is_signature and "payload" in member.signature.members:
                payload = member.signature.members["payload"]
                yield name, payload.shape, payload.flow

    def _groups(self):
        for run in self.program.runs:
            for group, tiles in self.program.reference.groups(run) if run.layer is not None else ():
                post = self.machine.post_lanes
                wanted = Counter()
                for tile, place in enumerate(tiles):
                    for pixel, _, _ in self.program.reference.pixels(run, place):
                        for slice_ in range(self.machine.lanes // post):
                            here = min(post, run.layer.channels - group * self.machine.lanes - slice_ * post)
                            if here > 0:
                                wanted[tile, pixel, slice_] = -(-4 * here // post) if run.layer.whole else 1
                yield run, group, tiles, wanted

    def set(self, name, value):
        """Set an input, if it changes: that takes longer than the simulator does for a cycle."""
        if self.driven.get(name) != value:
            self.driven[name] = value
            getattr(self.dut, name).value = value

    def get(self, name):
        return int(getattr(self.dut, name).value)

    def may(self):
        return self.rng.random() >= self.delay

    async def start(self):
        """Reset, fill parameters, tables and buffer."""
        dut, machine, bus = self.dut, self.machine, self.machine.bus_bytes
        Clock(dut.clk, 2, unit="ns").start()
        for name in ("commands__valid", "sums_available", "sums_response__valid", "parameter_write__valid",
                     "table_write__valid", "residual_write__valid", "store_read__valid", "out_free_available",
                     "res_ready_available"):
            self.set(name, 0)
        self.set("rst", 1)
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        self.set("rst", 0)
        image = b"".join(each["bias"].to_bytes(4, "little", signed=True) + each["mantissa"].to_bytes(3, "little")
                         + bytes([each["shift"]]) for each in self.program.parameters)
        for name, content in (("parameter_write", image), ("table_write", b"".join(self.program.tables))):
            self.set(f"{name}__valid", 1)
            for index in range(len(content) // bus):
                self.write_word(name, index, content[index * bus : (index + 1) * bus])
                await RisingEdge(dut.clk)
            self.set(f"{name}__valid", 0)
        self.set("residual_write__valid", 1)
        for address in range(self.program.origin, machine.result_bytes, bus):
            self.set("residual_write__payload", self.write_bits(address, self.program.initial[address:address + bus]))
            await RisingEdge(dut.clk)
        self.set("residual_write__valid", 0)

    def write_word(self, name, index, data):
        """Put a bus word of parameters or tables on a port."""
        word = {"index": index, "data": int.from_bytes(data, "little")}
        self.set(f"{name}__payload", self.members[name].const(word).as_bits())

    def write_bits(self, address, data):
        value = int.from_bytes(data, "little")
        return self.members["residual_write"].const(
            {"address": address, "count": len(data), "data": value}).as_bits()

    async def execute(self, deadline):
        """Run the program to its end."""
        while self.checked < len(self.program.runs) or self.get("busy") or self.commands:
            self.prepare()
            self.drive()
            await RisingEdge(self.dut.clk)
            self.sample()
            self.cycle += 1
            assert self.cycle < deadline, f"only {self.checked} runs of {len(self.program.runs)} are complete"
        assert not self.groups, "sums are left over"
        assert self.signals["par_free"] == sum(run.signal_par_free for run in self.program.runs)

    def prepare(self):
        """Do what load and store do: bring residuals, free regions, and touch the scratch area meanwhile."""
        runs = self.program.runs
        if self.prepared < len(runs) and self.prepared < self.checked + REGIONS and not self.writes:
            run = runs[self.prepared]
            if run.loads:
                start = self.program.start(run.number)
                step = self.machine.bus_bytes
                for offset in range(0, REGION, step):
                    self.writes.append((start + offset, run.before[offset : offset + step], False))
                self.writes.append((start, run.before[:1], True))
            else:
                self.semaphores["out_free"] += 1
            self.prepared += 1
        scratch = self.machine.result_bytes - SCRATCH
        if self.delay and not self.writes and self.may():
            count = self.rng.randint(1, self.machine.bus_bytes)
            offset = self.rng.randint(0, SCRATCH - count)
            self.writes.append((scratch + offset, self.rng.randbytes(count), False))
        if self.delay and not self.reads and self.may():
            self.reads.append((scratch + self.rng.randint(0, SCRATCH - self.machine.bus_bytes), None))

    def drive(self):
        """Set the inputs of this cycle."""
        self.set("commands__valid", bool(self.commands))
        if self.commands:
            self.set("commands__payload", self.commands[0])
        if self.produced < len(self.groups) and self.may():
            self.produced += 1
        self.set("sums_available", self.produced > 0)
        values = self.responses.pop(self.cycle, None)
        self.set("sums_response__valid", values is not None)
        if values is not None:
            self.set("sums_response__payload", sum((v & 0xFFFFFFFF) << 32 * i for i, v in enumerate(values)))
        for name in ("out_free", "res_ready"):
            self.set(f"{name}_available", self.semaphores[name] > 0)
        self.set("residual_write__valid", bool(self.writes))
        if self.writes:
            self.set("residual_write__payload", self.write_bits(*self.writes[0][:2]))
        self.set("table_write__valid", bool(self.delay))
        if self.delay:  # nobody reads this one
            words = TABLE_BYTES // self.machine.bus_bytes
            assert TABLES < TABLE_SLOTS
            self.write_word("table_write", TABLES * words + self.rng.randrange(words),
                            self.rng.randbytes(self.machine.bus_bytes))
        self.set("store_read__valid", bool(self.reads))
        if self.reads:
            self.set("store_read__payload", self.reads[0][0])

    def sample(self):
        """Look at the outputs of this cycle."""
        if self.commands and self.get("commands__ready"):
            self.commands.popleft()
        for name in ("out_free", "res_ready"):
            if self.get(f"{name}_take"):
                self.started = self.cycle
                self.semaphores[name] -= 1
                assert self.semaphores[name] >= 0, f"{name} was taken at zero"
        self.sample_sums()
        self.sample_buffer()
        for name in ("requantized", "residual_added", "table_read", "result_read_bytes", "result_written_bytes"):
            self.counted[name] += self.get(name)
        self.busy_cycles.append(self.get("busy"))
        for name in ("out_ready", "par_free"):
            self.signals[name] += self.get(f"{name}_signal")
        while self.finished < self.signals["out_ready"]:
            run = self.program.runs[self.finished]
            start = self.program.start(run.number)
            for offset in range(0, REGION, self.machine.bus_bytes):
                self.reads.append((start + offset, (run, offset)))
            self.finished += 1

    def sample_sums(self):
        if self.get("sums_request__valid"):
            assert self.produced, "sums were requested that are not there"
            request = self.members["sums_request"].from_bits(self.get("sums_request__payload"))
            run, group, tiles, wanted = self.groups[0]
            assert request.winograd == run.layer.winograd
            asked = request.tile, request.pixel, request.slice
            assert wanted[asked] > 0, f"{asked} was requested too often"
            wanted[asked] -= 1
            run.requests.append(self.cycle)
            y, x = tiles[request.tile]
            first = group * self.machine.lanes + request.slice * self.machine.post_lanes
            self.responses[self.cycle + self.unit.sums_latency] = [
                run.sums[y + request.pixel // 2, x + request.pixel % 2, first + lane]
                for lane in range(self.machine.post_lanes)]
        if self.get("sums_done"):
            _, _, _, wanted = self.groups.popleft()
            assert not +wanted, f"a group was released before {sorted(+wanted)} were requested"
            self.produced -= 1

    def sample_buffer(self):
        bus, scratch = self.machine.bus_bytes, self.machine.result_bytes - SCRATCH
        due = bool(self.answers) and self.answers[0][0] == self.cycle
        assert self.get("store_data__valid") == due
        if due:
            _, expected, check, offset = self.answers.popleft()
            got = self.get("store_data__payload").to_bytes(bus, "little")[: len(expected)]
            layer = None if check is None else self.program.runs[check].layer
            assert got == expected, f"run {check} of {layer}: {got.hex()} at {offset}, not {expected.hex()}"
            if check is not None and offset + bus >= REGION:
                self.checked += 1
        written = self.get("result_written_bytes")
        if self.reads and self.get("store_read__ready"):
            address, check = self.reads.popleft()
            if check is None:
                offset = address - scratch
                answer = (bytes(self.scratch[offset : offset + bus]), None, offset)
            else:
                run, offset = check
                answer = (run.after[offset : offset + bus], run.number, offset)
            self.answers.append((self.cycle + PostUnit.STORE_READ_LATENCY, *answer))
        if self.writes and self.get("residual_write__ready"):
            address, data, completes = self.writes.popleft()
            if address >= scratch:
                self.scratch[address - scratch : address - scratch + len(data)] = data
            self.semaphores["res_ready"] += completes
        elif written:
            self.write_cycles.append(self.cycle)


@cocotb.test()
async def random_commands(dut):
    machine = machine_of()
    for delay in (0.5, 0.0):
        program = random_program(machine, random.random(), int(os.environ["LAYERS"]))
        bench = Bench(dut, program, delay)
        await bench.start()
        await bench.execute(deadline=200_000)
        assert bench.counted["requantized"] == sum(run.outputs for run in program.runs)
        assert bench.counted["residual_added"] == sum(run.added for run in program.runs)
        assert bench.counted["table_read"] == sum(run.looked_up for run in program.runs)


def machine_of():
    """Return the machine, a preset with units that no preset has or without, or with whole numbers alone."""
    return with_units(PRESETS[os.environ["MACHINE"]], os.environ["UNITS"])


TIMED = {
    "plain": None,
    "whole": None,
    "residual": None,
    "table": None,
    "residual_table": None,
    "residual_table_first": None,
    "pool_3x3_2_table": Pool(3, 3, 2, 2, 1, 1, width=4, rows=3),
    "pool_2x2_2": Pool(2, 2, 2, 2, 0, 0, width=4, rows=3),
    "pool_3x3_2": Pool(3, 3, 2, 2, 1, 1, width=4, rows=3),
    "pool_3x3_1": Pool(3, 3, 1, 1, 1, 1, width=8, rows=6),
}


@cocotb.test()
async def rows(dut):
    """Nobody else at the buffer: an act.rows takes the cycles that the model of time says."""
    machine = machine_of()
    cases = ((1, 1, 0), (7, 65, 0), (40, 9, 0), (2, 400, 0), (1, 1, 1), (7, 60, 1), (20, 9, 1))
    for count, length, norm in cases if machine.normalises_rows else ():
        program = Program(machine, count)
        program.normalise(count, length, {"zero_point": -128, "low": -128, "high": 127}, norm=bool(norm))
        bench = Bench(dut, program, 0.0)
        await bench.start()
        await bench.execute(deadline=20_000)
        written = row_cycles(machine, count, length, norm=bool(norm)) + PostUnit.VALUE_LATENCY + PostUnit.POOL_LATENCY
        assert bench.write_cycles[-1] - bench.started == written


@cocotb.test()
async def rates(dut):
    """Sums always there, nobody else at the buffer: requests come in the cycles the docstrings say."""
    machine = machine_of()
    for kind, pool in TIMED.items():
        for winograd in (False, True):
            program = Program(machine, 0)
            layer = program.layer(width=8, channels=machine.lanes + machine.post_lanes, winograd=winograd, pool=pool,
                                  residual="residual" in kind, table=2 if "table" in kind else None,
                                  whole=kind == "whole")
            layer = replace(layer, table_first=kind.endswith("first"))
            for _ in range(2):
                program.run(layer, 1 if layer.whole else 6)
            bench = Bench(dut, program, 0.0)
            await bench.start()
            await bench.execute(deadline=20_000)
            check_rates(bench, kind, pool)


def check_rates(bench, kind, pool):
    unit, (first, second) = bench.unit, bench.program.runs
    residual = first.layer.residual is not None
    assert bench.get("busy") == 0
    for run, steps in zip((first, second), bench.program.steps, strict=True):
        interval = unit.interval if residual else 1
        cycle = run.requests[0]
        for request, count in zip(run.requests, steps, strict=True):
            assert request == cycle, f"{kind}: a request at {request}, not {cycle}"
            cycle += count * interval
    latency = unit.residual_latency if residual else unit.latency
    latency += unit.TABLE_LATENCY if first.layer.table is not None else 0
    assert bench.write_cycles[0] - first.requests[0] == latency
    assert len(bench.write_cycles) == sum(map(sum, bench.program.steps))
    if residual:
        return
    # The second run may begin as soon as the last step of the first is out.
    seeking = 0 if pool is None else max(pool.left // pool.stride_x, pool.top // pool.stride_y)
    ended = first.requests[-1] + bench.program.steps[0][-1]
    assert second.requests[0] - ended == PostUnit.COMMAND_GAP + seeking
    assert bench.write_cycles[-1] - bench.write_cycles[0] == sum(map(sum, bench.program.steps)) - 1 + seeking + (
        PostUnit.COMMAND_GAP)
