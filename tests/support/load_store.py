"""Effects of lda, ldw and sta, read directly off docs/datapath.md; random commands of every variant.

One byte at a time and without any thought of words, so that it shares no idea with the hardware.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.isa.assembler import EncodedCommand, command
from tilewright.isa.coded.weight_code import WeightCode, decode_weights
from tilewright.isa.counters import RECORD_WORDS

BUFFER_BYTES = 1 << 20  # what 20 bits of address reach
MEMORY_BYTES = 1 << 18


def pack(instruction: EncodedCommand) -> int:
    """Return the bits of `tilewright.rtl.stream.commands.Command`."""
    code, flags = instruction.funct7 >> 4, instruction.funct7 & 15
    return instruction.funct3 | code << 3 | flags << 6 | instruction.rs1 << 10 | instruction.rs2 << 42


def blocked_place(base: int, row_step: int, block_step: int, x: int, y: int, c: int) -> int:
    """Return 16 times the word, plus the bank, of channel ``c`` of stored pixel (x, y)."""
    bank = (x % 4 + 4 * (y % 4) + c) % 16
    word = base // 16 + (y // 4) * row_step // 16 + (x // 4) * block_step // 16 + c
    return (16 * word + bank) % BUFFER_BYTES


def write_places(blocked: int, address: int, count: int) -> Iterator[int]:
    """Yield where the bytes of an activation write go (see rtl/buffers/activation_buffer.py)."""
    for i in range(count):
        if blocked:
            yield (16 * (address // 16 + i) + (address + i) % 16) % BUFFER_BYTES
        else:
            yield (address + i) % BUFFER_BYTES


def request(address: int, count: int, bus_bytes: int) -> tuple[int, int]:
    """Return address and number of the aligned bus words that hold ``count`` bytes from ``address``."""
    start = address // bus_bytes * bus_bytes
    return start, -(-(address + count - start) // bus_bytes)


@dataclass
class LoadReference:
    """Memory and the four buffers that the load unit writes; ``execute`` carries out one command.

    ``requests`` and ``written`` tell of the command executed last: bus words asked for, bytes written.
    """

    bus_bytes: int
    memory: bytes
    code: WeightCode | None = None
    activations: bytearray = field(default_factory=lambda: bytearray(BUFFER_BYTES))
    residuals: bytearray = field(default_factory=lambda: bytearray(BUFFER_BYTES))
    words: dict[tuple[str, int], bytes] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)

    def execute(self, instruction: EncodedCommand) -> None:
        self.requests: list[tuple[int, int]] = []
        self.written = 0
        mnemonic, variant = instruction.instruction.mnemonic, instruction.variant.name
        if variant.startswith("set"):
            self.settings |= instruction.operands
        elif variant.startswith("coded"):
            self._coded(variant.removeprefix("coded_"), **instruction.operands)
        elif mnemonic == "ldw":
            self._weights(variant, **instruction.operands)
        elif variant == "residual":
            self._residual(**instruction.operands)
        else:
            self._tile(variant, **instruction.operands)

    def _weights(self, variant: str, address: int, base: int, words: int) -> None:
        self.requests.append((address, words))
        for i in range(words):
            start = address + i * self.bus_bytes
            self.words[variant, base + i] = self.memory[start:start + self.bus_bytes]
        self.written = words * self.bus_bytes

    def _coded(self, variant: str, address: int, base: int, steps: int) -> None:
        self.requests.append((address, self.settings["words"]))
        stream = self.memory[address:address + self.settings["words"] * self.bus_bytes]
        data = decode_weights(self.code, stream, steps).data.tobytes()
        first = base // (words := self.code.step_bytes // self.bus_bytes) * words
        for i in range(len(data) // self.bus_bytes):
            self.words[variant, first + i] = data[i * self.bus_bytes:(i + 1) * self.bus_bytes]
        self.written = len(data)

    def _runs(self, address: int, row: int) -> list[int]:
        """Return the addresses of the runs of a row."""
        s = self.settings
        first = address + row * s["memory_row_step"]
        starts = [first + i * s["memory_chunk_step"] for i in range(s["chunks"])]
        self.requests += [request(start, s["chunk_bytes"], self.bus_bytes) for start in starts]
        return starts

    def _residual(self, address: int, base: int, rows: int) -> None:
        s = self.settings
        for row in range(rows):
            for i, start in enumerate(self._runs(address, row)):
                for k in range(s["chunk_bytes"]):
                    place = base + row * s["row_step"] + i * s["chunk_step"] + k
                    self.residuals[place % BUFFER_BYTES] = self.memory[start + k]
                    self.written += 1

    def _tile(self, variant: str, base: int, rows: int, y: int, address: int | None = None) -> None:
        s = self.settings
        padding = s["value"] % 256
        for row in range(rows):
            if address is None:
                runs = [bytes([padding]) * s["chunk_bytes"]] * s["chunks"]
            else:
                runs = [self.memory[start:start + s["chunk_bytes"]] for start in self._runs(address, row)]
            left, right = ([padding] * s[side] * s["channels"] for side in ("left", "right"))
            if variant.endswith("linear"):
                self._linear_row(base + row * s["row_step"], left, runs, right)
            else:
                pixels = [*left, *b"".join(runs), *right]
                for k, value in enumerate(pixels):
                    x, c = divmod(k, s["channels"])
                    place = blocked_place(base, s["row_step"], 16 * s["channels"], x, y + row, c)
                    self._put(place, value)

    def _linear_row(self, start: int, left: list[int], runs: list[bytes], right: list[int]) -> None:
        s = self.settings
        pieces = [(start, left)]
        pieces += [(start + len(left) + i * s["chunk_step"], run) for i, run in enumerate(runs)]
        pieces.append((pieces[-1][0] + s["chunk_bytes"], right))
        for place, values in pieces:
            for k, value in enumerate(values):
                self._put(place + k, value)

    def _put(self, place: int, value: int) -> None:
        self.activations[place % BUFFER_BYTES] = value
        self.written += 1


@dataclass
class StoreReference:
    """The result buffer and what the store unit writes; ``execute`` carries out one command.

    ``bursts`` and ``written`` tell of the command executed last: requests to memory, bytes written.
    """

    bus_bytes: int
    results: bytes
    memory: bytearray = field(default_factory=lambda: bytearray(MEMORY_BYTES))
    activations: bytearray = field(default_factory=lambda: bytearray(BUFFER_BYTES))
    settings: dict[str, int] = field(default_factory=dict)
    record: tuple[int, ...] = (0,) * RECORD_WORDS

    def execute(self, instruction: EncodedCommand) -> None:
        self.bursts: list[tuple[int, int]] = []
        self.written = 0
        variant = instruction.variant.name
        if variant.startswith("set"):
            self.settings |= instruction.operands
        elif variant == "status":
            address = instruction.operands["address"]
            self.bursts.append((address, 4 * RECORD_WORDS // self.bus_bytes))
            data = b"".join(word.to_bytes(4, "little") for word in self.record)
            self.memory[address:address + len(data)] = data
            self.written = len(data)
        else:
            getattr(self, f"_{variant}")(**instruction.operands)

    def _runs(self, base: int, rows: int) -> Iterator[tuple[int, int, list[int]]]:
        """Yield row, run, and the run's bytes."""
        s = self.settings
        for row in range(rows):
            for i in range(s["chunks"]):
                start = base + row * s["row_step"] + i * s["chunk_step"]
                yield row, i, [self.results[(start + k) % len(self.results)] for k in range(s["chunk_bytes"])]
                self.written += s["chunk_bytes"]

    def _memory(self, address: int, base: int, rows: int) -> None:
        s = self.settings
        for row, i, run in self._runs(base, rows):
            start = address + row * s["target_row_step"] + i * s["target_chunk_step"]
            self.memory[start:start + len(run)] = bytes(run)
            self.bursts.append(request(start, len(run), self.bus_bytes))

    def _linear(self, target: int, base: int, rows: int) -> None:
        s = self.settings
        for row, i, run in self._runs(base, rows):
            start = target + row * s["target_row_step"] + i * s["target_chunk_step"]
            for k, value in enumerate(run):
                self.activations[(start + k) % BUFFER_BYTES] = value

    def _blocked(self, target: int, x: int, channel: int, y: int, base: int, rows: int) -> None:
        s = self.settings
        for row, i, run in self._runs(base, rows):
            for k, value in enumerate(run):
                place = blocked_place(target, s["target_row_step"], s["target_chunk_step"], x + i, y + row,
                                      16 * channel + k)
                self.activations[place] = value


def flags_of(rng: random.Random, mnemonic: str, variant: str) -> list[str]:
    """Return a random choice of the variant's flags."""
    bare = command(mnemonic, variant)
    return [each.name for each in bare.variant.flags if each is not None and rng.random() < 0.5]


def random_load_commands(rng: random.Random, groups: int, bus_bytes: int, *,
                         coded: bool = False) -> list[EncodedCommand]:
    """Return ``groups`` times a layout and a few commands that use it, in the buffer's lower half."""
    commands = []
    for _ in range(groups):
        channels = rng.choice([rng.randint(1, 8), rng.randint(1, 70)])
        chunks = rng.choice([1, 1, 2, 3])
        pixels = rng.randint(1, max(1, 160 // channels))
        layout = rng.choice(["linear", "blocked"])
        chunk_bytes = channels * pixels if layout == "blocked" else rng.randint(1, 120)
        left, right = rng.randint(0, 3), rng.randint(0, 3)
        blocks = (left + right + chunks * pixels + 3) // 4
        row_step = 16 * rng.randint(channels * blocks, channels * blocks + 20) if layout == "blocked" \
            else chunks * (chunk_bytes + 40) + (left + right) * channels + rng.randint(0, 40)
        commands += [
            command("lda", "set_row", chunk_bytes=chunk_bytes, chunks=chunks,
                    memory_chunk_step=chunk_bytes + rng.randint(0, 40)),
            command("lda", "set_step", memory_row_step=rng.randint(0, 1000), row_step=row_step),
            command("lda", "set_layout", chunk_step=chunk_bytes + rng.randint(0, 40), channels=channels,
                    left=left, right=right, value=rng.randint(-128, 127)),
        ]
        for _ in range(rng.randint(1, 4)):
            commands.append(_random_load(rng, layout, bus_bytes))
            if coded:
                commands += _random_coded(rng, bus_bytes)
    return commands


def _random_coded(rng: random.Random, bus_bytes: int) -> list[EncodedCommand]:
    """Return the load of some bytes that are taken for coded weights, longer or shorter than they need be."""
    variant = rng.choice(["coded_main", "coded_ninths"])
    return [command("ldw", "set_coded", words=rng.choice([1, rng.randint(2, 60)])),
            command("ldw", variant, flags_of(rng, "ldw", variant), base=rng.randrange(1 << 15),
                    address=rng.randrange(MEMORY_BYTES // 2) // bus_bytes * bus_bytes,
                    steps=rng.choice([1, 2, rng.randint(1, 40)]))]


def _random_load(rng: random.Random, layout: str, bus_bytes: int) -> EncodedCommand:
    address, base = rng.randrange(MEMORY_BYTES // 2), rng.randrange(BUFFER_BYTES // 4)
    kind = rng.choice(["tile", "tile", "tile", "fill", "residual", "ldw", "ldw"])
    if kind == "ldw":
        variant = rng.choice(["main", "ninths", "parameters", "table"])
        return command("ldw", variant, flags_of(rng, "ldw", variant), address=address // bus_bytes * bus_bytes,
                       base=rng.randrange(1 << 15), words=rng.choice([1, 2, rng.randint(1, 40)]))
    rows = rng.choice([1, 2, rng.randint(1, 5)])
    if kind == "residual":
        return command("lda", kind, flags_of(rng, "lda", kind), address=address, base=base, rows=rows)
    variant = layout if kind == "tile" else f"fill_{layout}"
    place = {"base": base // 16 * 16 if layout == "blocked" else base, "rows": rows, "y": rng.randrange(4)}
    if kind == "tile":
        place["address"] = address
    return command("lda", variant, flags_of(rng, "lda", variant), **place)


def random_store_commands(rng: random.Random, groups: int) -> list[EncodedCommand]:
    """Return ``groups`` times a shape and a few commands that use it; targets in the buffer's upper half."""
    commands = []
    for _ in range(groups):
        variant = rng.choice(["memory", "memory", "linear", "blocked"])
        chunk_bytes = rng.choice([rng.randint(1, 16), rng.randint(1, 70)])
        chunks = rng.choice([1, rng.randint(1, 12)])
        aligned = 16 if variant == "blocked" else 1
        run_step = chunk_bytes + rng.randint(0, 20)
        commands += [
            command("sta", "set_row", chunk_bytes=chunk_bytes, chunks=chunks, chunk_step=run_step),
            command("sta", "set_source", row_step=rng.randint(0, 1000)),
            command("sta", "set_target",
                    target_chunk_step=16 * chunk_bytes if aligned == 16 else chunk_bytes + rng.randint(0, 20),
                    target_row_step=aligned * (chunk_bytes + 20) * (chunks + 4) + aligned * rng.randint(0, 50)),
        ]
        for _ in range(rng.randint(1, 4)):
            base, rows = rng.randrange(BUFFER_BYTES), rng.choice([1, rng.randint(1, 6)])
            operands = {"base": base, "rows": rows}
            if variant == "memory":
                operands["address"] = rng.randrange(MEMORY_BYTES // 2)
            else:
                operands["target"] = (BUFFER_BYTES // 2 + rng.randrange(BUFFER_BYTES // 4)) // aligned * aligned
            if variant == "blocked":
                operands |= {"x": rng.randrange(4), "y": rng.randrange(4), "channel": rng.randrange(3)}
            commands.append(command("sta", variant, flags_of(rng, "sta", variant), **operands))
        if rng.random() < 0.2:
            commands.append(command("sta", "status", address=rng.randrange(MEMORY_BYTES // 16) // 16 * 16))
    return commands
