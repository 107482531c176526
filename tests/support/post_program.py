"""Programs for the post-processing unit, and the bytes they leave: docs/datapath.md read aloud."""

import random
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.isa.encoding import BY_MNEMONIC
from tilewright.isa.integers.long_requantise import long_requantise
from tilewright.isa.integers.long_requantise import parameters_of_words as long_words
from tilewright.isa.integers.shift_requantise import MULTIPLIER_BITS, parameters_of_words, shift_requantise
from tilewright.isa.machine import TABLE_BYTES
from tilewright.isa.numerics import ResidualSettings, add_residual, requantise
from tilewright.isa.rows.row_norm import GAIN_BITS, SQUARE_BITS
from tilewright.isa.rows.row_softmax import RowSoftmax, softmax_row
from tilewright.isa.semantics.act_rows import NormNumbers, norm_rows
from tilewright.rtl.stream.commands import Command

TABLES = 3  # tables that programs use; the last one is left for writes beside them
SCRATCH = 64  # bytes at the end of the buffer, for traffic beside the results
REGIONS = 2
MOST_BELOW = 64 * TABLES - 1  # words of the tables together that none of those writes touches
MOST_NORM = 60  # elements of a row whose spread is that of a root, whatever the table
REGION = 3072  # bytes of the results of a run, and what lies between them


@dataclass
class Pool:
    """Operands of pool.window."""

    kernel_x: int
    kernel_y: int
    stride_x: int
    stride_y: int
    left: int
    top: int
    width: int
    rows: int


@dataclass
class Layer:
    """Settings by the set commands; scales and biases by channel of the parameter buffer."""

    width: int
    channels: int
    pixel_step: int
    row_step: int
    winograd: bool
    clamp: dict
    pool: Pool | None = None
    residual: dict | None = None
    table: int | None = None
    table_first: bool = False
    whole: bool = False
    shared: bool = False
    shift: int | None = None
    rounding: int | None = None

    @property
    def pixel_bytes(self):
        """Bytes that a pixel of the result takes."""
        return 4 * self.channels if self.whole else self.channels


@dataclass
class Run:
    """One act.run: its sums by (y, x, channel), the bytes it starts from and those it leaves."""

    layer: Layer
    number: int
    base: int
    rows: int
    parameter_base: int
    sums: dict
    before: bytes = b""
    after: bytes = b""
    requests: list = field(default_factory=list)
    signal_par_free: bool = False

    @property
    def loads(self):
        """Whether its region is loaded before it."""
        return self.layer.residual is not None

    @property
    def outputs(self):
        """Values before the pooling; bytes of whole sums count as such."""
        return self.rows * self.layer.width * self.layer.pixel_bytes

    @property
    def added(self):
        """Values that a residual is added to."""
        return self.outputs if self.layer.residual else 0

    @property
    def looked_up(self):
        """Entries of tables that are read."""
        return self.outputs if self.layer.table is not None else 0


@dataclass
class RowsRun:
    """One act.rows, as a `Run`."""

    number: int
    rows: int
    length: int
    before: bytes
    after: bytes
    signal_par_free: bool
    layer: None = None
    loads: bool = True
    added: int = 0

    @property
    def outputs(self):
        """Values that are written."""
        return self.rows * self.length

    @property
    def looked_up(self):
        """Entries that are read, for a sum and for a result."""
        return 2 * self.outputs


def encode(mnemonic, variant, *flags, **operands):
    """Return the bits of a `Command`."""
    instruction = BY_MNEMONIC[mnemonic]
    chosen = instruction.variant(variant)
    registers = []
    for fields in (chosen.rs1, chosen.rs2):
        bits = shift = 0
        for each in fields:
            value = operands.pop(each.name)
            assert int(value) in each.range, (each.name, value)
            bits |= (int(value) & ((1 << each.width) - 1)) << shift
            shift += each.width
        registers.append(bits)
    assert not operands
    command = {"funct3": instruction.funct3, "variant": chosen.code, "flags": chosen.flag_bits(*flags),
               "rs1": registers[0], "rs2": registers[1]}
    return Command.const(command).as_bits()


def as_integers(parameters):
    """Return what a channel's word is that has a bias and a float32 scale, read as one of integers."""
    word = parameters["bias"] & 0xFFFFFFFF | parameters["mantissa"] << 32 | parameters["shift"] << 56
    numbers = parameters_of_words(np.array([word], np.uint64))
    return {name: int(value[0]) for name, value in zip(("bias", "multiplier", "addend"), numbers, strict=True)}


def as_long(parameters):
    """Return the same word, read as one of a long multiplier."""
    word = parameters["bias"] & 0xFFFFFFFF | parameters["mantissa"] << 32 | parameters["shift"] << 56
    numbers = long_words(np.array([word], np.uint64))
    return {name: int(value[0]) for name, value in zip(("bias", "multiplier", "shift"), numbers, strict=True)}


class Reference:
    """docs/datapath.md, "post: act, pool.window", as nested loops."""

    def __init__(self, machine, parameters, tables):
        self.machine, self.parameters, self.tables = machine, parameters, tables

    def groups(self, run):
        """Yield the tile groups: a list of tiles, each a dict (pixel, lane) -> sum."""
        machine, layer = self.machine, run.layer
        step = 2 if layer.winograd else 1
        tiles = [(y, x) for y in range(0, run.rows, step) for x in range(0, layer.width, step)]
        for group in range(-(-layer.channels // machine.lanes)):
            for start in range(0, len(tiles), machine.tiles):
                yield group, tiles[start : start + machine.tiles]

    def pixels(self, run, tile):
        """Yield (pixel number, y, x) of the outputs of a tile that exist."""
        y, x = tile
        for pixel in range(4 if run.layer.winograd else 1):
            if y + pixel // 2 < run.rows and x + pixel % 2 < run.layer.width:
                yield pixel, y + pixel // 2, x + pixel % 2

    def execute(self, run, memory):
        """Bring ``memory`` from before to after the run; return the number of steps of each vector, in order."""
        layer, machine = run.layer, self.machine
        steps = []
        for group, tiles in self.groups(run):
            for tile in tiles:
                for _, y, x in self.pixels(run, tile):
                    for first in range(group * machine.lanes, min(layer.channels, (group + 1) * machine.lanes),
                                       machine.post_lanes):
                        windows = list(self.windows(layer, y, x))
                        here = min(machine.post_lanes, layer.channels - first)
                        steps += [1] * -(-4 * here // machine.post_lanes) if layer.whole else [max(1, len(windows))]
                        for channel in range(first, min(first + machine.post_lanes, layer.channels)):
                            self.output(run, memory, y, x, channel, windows)
        return steps

    def _place(self, run, y, x, channel):
        """Return the number of a channel's parameters: with pairs of channels each pixel of a tile has its own."""
        machine = self.machine
        if not (run.layer.winograd and machine.pairs_channels) or run.layer.shared:
            return run.parameter_base + channel
        group, lane = divmod(channel, machine.lanes)
        pixel = y % 2 * 2 + x % 2
        return run.parameter_base + (machine.channel_parameters * group + pixel) * machine.lanes + lane

    def windows(self, layer, y, x):
        """Yield (wy, wx, whether this is its first pixel) of each window that covers the pixel."""
        if layer.pool is None:
            yield y, x, True
            return
        pool = layer.pool
        for wy in range(pool.rows):
            for wx in range(pool.width):
                top, left = wy * pool.stride_y - pool.top, wx * pool.stride_x - pool.left
                if top <= y < top + pool.kernel_y and left <= x < left + pool.kernel_x:
                    yield wy, wx, (y, x) == (max(0, top), max(0, left))

    def output(self, run, memory, y, x, channel, windows):
        layer = run.layer
        if layer.whole:
            total = run.sums[y, x, channel] + self.parameters[self._place(run, y, x, channel)]["bias"]
            address = run.base + y * layer.row_step + x * layer.pixel_step + 4 * channel
            memory[address:address + 4] = (total % (1 << 32)).to_bytes(4, "little")
            return
        parameters = self.parameters[self._place(run, y, x, channel)]
        if layer.rounding is not None:
            q = long_requantise(run.sums[y, x, channel], **as_long(parameters), **layer.clamp, twice=layer.rounding)
        elif layer.shift is None:
            one = {} if self.machine.float_requantise else {"mantissa": 1 << 23, "shift": 23}
            q = requantise(run.sums[y, x, channel], **parameters | one, **layer.clamp)
        else:
            q = shift_requantise(run.sums[y, x, channel], **as_integers(parameters), **layer.clamp, shift=layer.shift)
        if layer.residual is None or layer.table_first:
            q = self.mapped(layer, q)
        for wy, wx, first in windows:
            address = run.base + wy * layer.row_step + wx * layer.pixel_step + channel
            old = (memory[address] ^ 128) - 128
            result = q
            if layer.residual is not None:
                residual = dict(layer.residual)
                own_second = residual.pop("own_second")
                result = add_residual(*((old, q) if own_second else (q, old)), ResidualSettings(**residual))
                result = result if layer.table_first else self.mapped(layer, result)
            elif not first:
                result = max(old, q)
            memory[address] = result & 255

    def mapped(self, layer, value):
        """Return what the layer's table makes of a value."""
        return value if layer.table is None else (self.tables[layer.table][value + 128] ^ 128) - 128


class Program:
    """Commands, what they need, and what they leave."""

    def __init__(self, machine, seed):
        self.machine = machine
        self.rng = random.Random(seed)
        self.origin = machine.result_bytes - SCRATCH - REGIONS * REGION
        self.content = bytearray(self.rng.randbytes(machine.result_bytes))
        self.initial = bytes(self.content)
        self.parameters = [self._parameter() for _ in range(machine.parameter_channels)]
        self.tables = [bytearray(self.rng.randbytes(TABLE_BYTES)) for _ in range(TABLES)]
        self.tables[0][2] |= 0x80   # the largest element of a row has more than half of the largest entry
        self.reference = Reference(machine, self.parameters, self.tables)
        self.commands, self.runs, self.steps = [], [], []

    def _parameter(self):
        rng = self.rng
        # Read as integers, the multiplier is so large that the addend is less, which is of these bits of the shift.
        large = 1 << MULTIPLIER_BITS - 1 if self.machine.integer_requantise else 0
        return {"bias": rng.randint(-4000, 4000), "mantissa": rng.randrange(1 << 23, 1 << 24) | large,
                "shift": rng.randint(30, 33)}

    def _residual(self):
        """Return settings of the residual add: those of ResidualSettings, and the order of its operands."""
        rng = self.rng
        low, high = sorted(rng.randint(-128, 127) for _ in range(2))
        return {"mantissa_a": rng.randrange(1 << 23, 1 << 24), "shift_a": rng.randint(22, 26),
                "mantissa_b": rng.randrange(1 << 23, 1 << 24), "shift_b": rng.randint(22, 26),
                "offset_mantissa": rng.randrange(1 << 23, 1 << 24), "offset_shift": rng.randint(16, 24),
                "offset_negative": rng.randrange(2), "unsigned": rng.randrange(2),
                "low": min(low, 0), "high": max(high, 1), "own_second": rng.randrange(2)}

    def layer(self, *, pool=None, residual=False, table=None, whole=False, **fixed):
        """Send the set commands of a layer; ``table`` is the slot of its value table."""
        rng, machine = self.rng, self.machine
        low, high = sorted(rng.randint(-128, 127) for _ in range(2))
        if rng.random() < 0.7 or whole:
            low, high = -128, 127
        channels = fixed.pop("channels", None) or rng.randint(1, 3 * machine.lanes + 2)
        layer = Layer(width=fixed.pop("width", None) or rng.randint(1, 9), channels=channels,
                      pixel_step=(4 if whole else 1) * channels + rng.choice((0, 0, 1, 5)), row_step=0,
                      winograd=fixed.pop("winograd", rng.random() < 0.5),
                      clamp={"zero_point": 0 if whole else rng.randint(-128, 127), "low": low, "high": high},
                      pool=pool, table=table, whole=whole)
        if machine.channel_kernels and layer.winograd:
            layer.shared = rng.random() < 0.5
        width = pool.width if pool else layer.width
        layer.row_step = layer.pixel_step * width + rng.choice((0, 3))
        if machine.integer_requantise and not whole and rng.random() < 0.6:
            layer.shift, layer.rounding = rng.choice(((rng.randint(22, 28), None), (0, 0), (0, 1)))
        self.set_output(layer)
        self.set_clamp(layer.clamp, layer.shift, layer.rounding)
        if residual:
            layer.residual = self._residual()
            renamed = {{"low": "residual_low", "high": "residual_high"}.get(k, k): v for k, v in layer.residual.items()}
            for variant in ("set_residual_scale", "set_residual_offset"):
                chosen = BY_MNEMONIC["act"].variant(variant)
                self.commands.append(encode("act", variant, **{f.name: renamed[f.name] for f in chosen.fields}))
        if pool:
            self.commands.append(encode("pool", "window", **vars(pool)))
        assert not fixed
        return layer

    def set_clamp(self, clamp, shift=None, rounding=None):
        """Add the command; rounding twice means nothing where a multiplier is none of the long ones."""
        self.commands.append(encode("act", "set_clamp", **clamp, integer=shift is not None, integer_shift=shift or 0,
                                    integer_long=rounding is not None,
                                    integer_twice=int(shift is not None) if rounding is None else rounding))

    def set_output(self, layer):
        self.commands.append(encode("act", "set_output", width=layer.width, pixel_step=layer.pixel_step,
                                    row_step=layer.row_step))

    def start(self, number):
        """Return the address of the region of a run."""
        return self.origin + REGION * (number % REGIONS)

    def fits(self, layer, rows):
        """Whether the result of ``rows`` rows fits a region."""
        return rows * layer.row_step + layer.pixel_bytes <= REGION

    def run(self, layer, rows):
        """Send act.run."""
        rng, machine = self.rng, self.machine
        result_rows = layer.pool.rows if layer.pool else rows
        assert self.fits(layer, result_rows)
        start = self.start(len(self.runs))
        base = start + rng.randint(0, REGION - result_rows * layer.row_step - layer.pixel_bytes)
        lanes = -(-layer.channels // machine.lanes) * machine.lanes
        each = machine.channel_parameters if layer.winograd and not layer.shared else 1
        parameter_base = rng.randrange(0, machine.parameter_channels - each * lanes + 1, each * machine.lanes)
        # Sums of every lane of every tile, also of those that have no output.
        most = (1 << 31) - 5000 if layer.whole and rng.random() < 0.5 else 20000
        sums = {(y, x, c): rng.randint(-most, most)
                for y in range(rows + 1) for x in range(layer.width + 1) for c in range(lanes)}
        run = Run(layer, len(self.runs), base, rows, parameter_base, sums)
        end = start + REGION
        if layer.residual is not None:
            self.content[start:end] = rng.randbytes(REGION)
        run.before = bytes(self.content[start:end])
        self.steps.append(self.reference.execute(run, self.content))
        run.after = bytes(self.content[start:end])
        run.signal_par_free = rng.random() < 0.5
        flags = ["signal_out_ready", "wait_out_free" if layer.residual is None else "wait_res_ready"]
        self.commands.append(encode(
            "act", "run", *flags, *(["signal_par_free"] if run.signal_par_free else []),
            base=base, rows=rows, winograd=layer.winograd, shared=layer.shared, parameter_base=parameter_base,
            channels=layer.channels, residual=layer.residual is not None, pooled=layer.pool is not None,
            table=layer.table is not None, table_slot=layer.table or 0,
            table_first=layer.table_first, whole=layer.whole, wide=False))
        self.runs.append(run)


    def normalise(self, rows, length, clamp, *, norm=False):
        """Send act.rows, with its settings, for rows that are loaded."""
        rng, number = self.rng, len(self.runs)
        mantissa, shift = rng.randrange(1 << 23, 1 << 24), rng.randint(14, 18)
        if norm:
            settings, numbers, shift = *self._norm(length), rng.randint(2, 9)
            self.commands.append(encode("act", "set_norm", **settings))
        words = [int.from_bytes(b"".join(map(bytes, self.tables))[4 * k:4 * k + 3], "little")
                 for k in range(64 * TABLES)]
        softmax = RowSoftmax(tuple(words), mantissa, shift, clamp["zero_point"])
        start, low = self.start(number), -128 if norm else rng.randint(-128, 127 - MOST_BELOW)
        content = bytearray(rng.randint(low, min(low + MOST_BELOW, 0 if norm else 127)) & 255 for _ in range(REGION))
        offset, before = rng.randint(0, REGION - rows * length), bytes(content)
        for row in range(rows):
            here = slice(offset + row * length, offset + (row + 1) * length)
            levels = [(each ^ 128) - 128 for each in content[here]]
            found = norm_rows(np.array([levels], np.int8), numbers, (mantissa, shift), tuple(
                clamp[name] for name in ("zero_point", "low", "high")))[0].tolist() if norm else softmax_row(
                levels, softmax, low=clamp["low"], high=clamp["high"])
            content[here] = bytes(level & 255 for level in found)
        self.content[start:start + REGION] = content
        self.steps.append([])
        run = RowsRun(number, rows, length, before, bytes(content), rng.random() < 0.5)
        self.commands += [
            encode("act", "set_clamp", **clamp, integer=self.machine.integer_requantise,
                   **dict.fromkeys(("integer_shift", "integer_long", "integer_twice"), 0)),
            encode("act", "set_rows", mantissa=mantissa, shift=shift),
            encode("act", "rows", "wait_res_ready", "signal_out_ready", *["signal_par_free"] * run.signal_par_free,
                   base=start + offset, length=length, rows=rows, norm=norm)]
        self.runs.append(run)

    def _norm(self, length):
        """Return operands of act.set_norm, and the numbers that rows are then normalised with: parameters are gains."""
        rng, unread = self.rng, 32 - GAIN_BITS
        base = rng.randrange(0, self.machine.parameter_channels - length, self.machine.post_lanes)
        settings = {"extra": rng.randrange(1 << 26, 1 << 27), "offset": rng.randint(-500, 500), "parameter_base": base,
                    "centred": rng.randrange(2), "fine": rng.randrange(2)}
        words = np.frombuffer(b"".join(map(bytes, self.tables)).ljust(1024, b"\0"), "<u4")
        here = self.parameters[base:base + length]
        gains, shifts = ((np.array([each[name] & 0xFFFF_FFFF for each in here], np.uint32).view(np.int32)
                          << unread >> unread).astype(np.int64) for name in ("bias", "mantissa"))
        return settings, NormNumbers(
            (words & (1 << SQUARE_BITS) - 1).astype(np.int64), (words.view(np.int32) >> SQUARE_BITS).astype(np.int64),
            gains, shifts, settings["extra"], settings["offset"], bool(settings["centred"]), bool(settings["fine"]))


def random_pool(rng, width, rows):
    """Return a pooling window: a usual one, or any."""
    usual = ((2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0), (3, 2, 0), (1, 2, 0))
    if rng.random() < 0.8:
        kernel, stride, padding = rng.choice(usual)
        shape = (kernel, kernel, stride, stride, padding, padding)
    else:
        shape = (rng.randint(1, 15), rng.randint(1, 15), rng.randint(1, 7), rng.randint(1, 7),
                 rng.randint(0, 15), rng.randint(0, 15))
    kernel_x, kernel_y, stride_x, stride_y, left, top = shape
    columns = max(1, (width + 2 * left - kernel_x) // stride_x + 1 + rng.choice((0, 0, 0, -1, 1)))
    lines = max(1, (rows + 2 * top - kernel_y) // stride_y + 1 + rng.choice((0, 0, 0, -1, 1)))
    return Pool(*shape, width=columns, rows=lines)


def random_program(machine, seed, layers):
    """Return a program of ``layers`` random layers with up to three runs each."""
    program = Program(machine, seed)
    rng = program.rng
    for _ in range(layers):
        if machine.normalises_rows and rng.random() < 0.4:
            for _ in range(rng.randint(1, 2)):
                length = rng.choice((1, 2, machine.post_lanes, rng.randint(1, 3 * machine.post_lanes),
                                     rng.randint(1, 700)))
                clamp = {"zero_point": rng.randint(-128, 127), "low": -128, "high": rng.randint(-128, 127)}
                program.normalise(rng.randint(1, min(12, REGION // length)), length, clamp,
                                  norm=length <= MOST_NORM and rng.random() < 0.5)
        width, rows = rng.randint(1, 9), rng.randint(1, 7)
        kind = rng.choice(("plain", "pooled", "residual", *(("whole",) if machine.whole_sums else ())))
        table = None if kind == "whole" else rng.choice((None, *range(TABLES)))
        layer = program.layer(width=width, residual=kind == "residual", table=table, whole=kind == "whole",
                              pool=random_pool(rng, width, rows) if kind == "pooled" else None)
        layer = replace(layer, table_first=kind == "residual" and rng.random() < 0.5)
        for _ in range(rng.randint(1, 3)):
            if program.fits(layer, layer.pool.rows if layer.pool else rows):
                program.run(layer, rows)
            if layer.pool:  # the tile's padding and rows may change from run to run
                pool = replace(layer.pool, top=rng.randint(0, layer.pool.top), rows=rng.randint(1, layer.pool.rows))
                layer = replace(layer, pool=pool)
                program.commands.append(encode("pool", "window", **vars(layer.pool)))
            else:
                rows = rng.randint(1, 7)
            if rng.random() < 0.3 and not layer.whole:  # another table, or none
                layer = replace(layer, table=rng.choice((None, *range(TABLES))))
            if rng.random() < 0.3:  # before the residual, or behind it; without one it means nothing
                layer = replace(layer, table_first=not layer.table_first)
    return program
