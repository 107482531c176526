"""Executes commands one after the other, values only: docs/datapath.md as code.

Buffers are flat byte arrays indexed by physical place (bank + 16 * word), so that both layouts of the activation
buffer are index arithmetic on the same bytes. Sums are exact: float32 matrix products of at most 1,023 terms of
|int8 * int8| <= 2**14 stay below 2**24.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.isa.assembler import Command
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.encoding import SEMAPHORE_WIDTH
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine
from tilewright.sim.values.array_arithmetic import add_residual, correlate, dot, requantize
from tilewright.sim.values.memory import MainMemory

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]


class ExecutionError(SimulationError):
    """A command cannot be executed: what it asks for is outside the machine, or its inputs are missing."""


@dataclass(slots=True)
class Tile:
    """Sums of one mac command on their way to ``act``: int32, (rows, columns, lanes * groups)."""

    sums: Int32
    winograd: bool


@dataclass
class Functional:
    """The coprocessor's state: buffers, configuration, semaphores, sums between mac and post.

    ``status`` is called by ``sta.status`` and returns the record to store; the cycle model supplies it.
    """

    machine: Machine
    memory: MainMemory
    status: Callable[[], NDArray[np.uint32]] = lambda: np.zeros(RECORD_WORDS, np.uint32)
    semaphores: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        machine = self.machine
        self.activations = np.zeros(machine.activation_bytes, np.int8)
        self.results = np.zeros(machine.result_bytes, np.int8)
        self.main = np.zeros((machine.weight_words, machine.clusters, TILE_BYTES), np.int8)
        self.ninths = np.zeros((machine.weight_words // 8, machine.clusters, TILE_BYTES), np.int8)
        self.parameters = np.zeros(8 * machine.parameter_channels, np.int8)
        self.tables = np.zeros((TABLE_SLOTS, TABLE_BYTES), np.int8)
        self.config: dict[str, dict[str, int]] = {}
        self.sums: deque[Tile] = deque()
        self.held: Int32 | None = None
        self._unpacked: dict[tuple[str, int, int, int], Float32] = {}

    def run(self, commands: Iterable[Command]) -> None:
        """Execute ``commands`` in order."""
        for each in commands:
            self.execute(each)

    def execute(self, command: Command) -> None:
        """Execute one command.

        Raises
        ------
        ExecutionError
            If it waits for a semaphore at zero, needs sums that are not there, or leaves a buffer.
        """
        mnemonic, variant, operands = command.instruction.mnemonic, command.variant, command.operands
        flags = command.flags
        for flag in flags:
            if flag.startswith("wait_"):
                self._wait(flag.removeprefix("wait_"), command)
        if variant.name.startswith("set_") or variant.name == "window":
            self.config.setdefault(mnemonic, {}).update(operands)
        elif variant.name != "fence":
            if zero := [name for name in _COUNTS if operands.get(name) == 0]:
                raise ExecutionError(f"Command {command} must have {zero[0]} of at least 1, not 0")
            try:
                _HANDLERS[mnemonic](self, variant.name, operands)
            except IndexError as error:
                raise ExecutionError(f"Command {command} must stay inside its buffers, not reach {error}") from error
            except KeyError as error:
                raise ExecutionError(f"Command {command} must find everything set before it, not use "
                                     f"{error.args[0]}") from error
        for flag in flags:
            if flag.startswith("signal_"):
                name = flag.removeprefix("signal_")
                self.semaphores[name] += 1
                if self.semaphores[name] >= 1 << SEMAPHORE_WIDTH:
                    raise ExecutionError(f"Semaphore {name} must stay below {1 << SEMAPHORE_WIDTH}; "
                                         f"{command} overflows it")

    def _configured(self, mnemonic: str, *counts: str) -> dict[str, int]:
        """Return what the set variants of ``mnemonic`` have set; ``counts`` among them are not zero."""
        config = self.config[mnemonic]
        for name in counts:
            if not config[name]:
                raise KeyError(f"{name}, which is zero")
        return config

    def _wait(self, name: str, command: Command) -> None:
        if self.semaphores[name] <= 0:
            raise ExecutionError(f"Command {command} waits for {name}, which no command before it has signalled")
        self.semaphores[name] -= 1

    # ---- load

    def _lda(self, variant: str, op: dict[str, int]) -> None:
        cfg = self._configured("lda", "chunks", "chunk_bytes", *(("channels",) if variant.endswith("blocked") else ()))
        rows = op["rows"]
        if variant == "residual":
            data = self._read_rows(op["address"], rows)
            places = (op["base"] + cfg["row_step"] * np.arange(rows)[:, None, None]
                      + cfg["chunk_step"] * np.arange(cfg["chunks"])[:, None] + np.arange(cfg["chunk_bytes"]))
            self.results[_inside("result", places, self.results)] = data
            return
        pixels = None if variant.startswith("fill") else self._read_rows(op["address"], rows)
        if variant.endswith("linear"):
            self._write_linear(op, pixels)
        else:
            self._write_blocked(op, pixels)

    def _read_rows(self, address: int, rows: int) -> Int8:
        """Return (rows, chunks, chunk_bytes) from memory."""
        cfg = self.config["lda"]
        return self.memory.read_strided(address, (rows, cfg["chunks"], cfg["chunk_bytes"]),
                                        (cfg["memory_row_step"], cfg["memory_chunk_step"]), self.machine.bus_bytes)

    def _write_linear(self, op: dict[str, int], data: Int8 | None) -> None:
        cfg = self.config["lda"]
        left, right = cfg["left"] * cfg["channels"], cfg["right"] * cfg["channels"]
        starts = op["base"] + cfg["row_step"] * np.arange(op["rows"])[:, None]
        runs = left + cfg["chunk_step"] * np.arange(cfg["chunks"])[:, None] + np.arange(cfg["chunk_bytes"])
        end = left + cfg["chunk_step"] * (cfg["chunks"] - 1) + cfg["chunk_bytes"]
        _inside("activation", starts + end + right - 1, self.activations)
        self.activations[starts + np.arange(left)] = cfg["value"]
        self.activations[starts + runs.ravel()] = cfg["value"] if data is None else data.reshape(op["rows"], -1)
        self.activations[starts + end + np.arange(right)] = cfg["value"]

    def _write_blocked(self, op: dict[str, int], data: Int8 | None) -> None:
        cfg = self.config["lda"]
        channels = cfg["channels"]
        if cfg["chunk_bytes"] % channels:
            raise KeyError(f"chunk_bytes {cfg['chunk_bytes']}, which is no multiple of channels {channels}")
        pixels = cfg["chunks"] * cfg["chunk_bytes"] // channels
        row = np.full((op["rows"], cfg["left"] + pixels + cfg["right"], channels), cfg["value"], np.int8)
        if data is not None:
            row[:, cfg["left"]:cfg["left"] + pixels] = data.reshape(op["rows"], pixels, channels)
        x, y = np.arange(row.shape[1]), op["y"] + np.arange(op["rows"])
        places = blocked_places(op["base"], x, y, np.arange(channels), TILE_BYTES * channels, cfg["row_step"])
        self.activations[_inside("activation", places, self.activations)] = row

    def _ldw(self, variant: str, op: dict[str, int]) -> None:
        count = op["words"] * self.machine.bus_bytes
        address = op["address"] // self.machine.bus_bytes * self.machine.bus_bytes
        data = self.memory.read_strided(address, (1, 1, count), (0, 0), self.machine.bus_bytes).reshape(-1)
        first = op["base"] * self.machine.bus_bytes
        # Bus words go to the clusters in turn, 16 bytes each: the order of these arrays.
        store = {"main": self.main, "ninths": self.ninths, "parameters": self.parameters,
                 "table": self.tables}[variant].reshape(-1)
        if first + count > store.size:
            raise IndexError(f"{variant} byte {first + count - 1} of {store.size}")
        store[first:first + count] = data
        self._unpacked.clear()

    # ---- mac

    def _mac(self, mnemonic: str, op: dict[str, int]) -> None:
        cfg = self._configured("conv", "tiles_x", "runs", "kernel_x", "kernel_y")
        if op["accumulate"] and self.held is None:
            raise KeyError("sums held by an earlier command")
        tiles = cfg["tiles_x"] * op["tiles_y"]
        if (op["accumulate"] or op["hold"]) and (op["groups"] != 1 or tiles > self.machine.tiles):
            raise IndexError(f"tile {tiles - 1} of the {self.machine.tiles} whose sums can be held, of one lane group")
        kernel = {"conv23": self._conv23, "conv": self._conv, "pool": self._pool_sum}[mnemonic]
        sums = kernel(op, cfg)                                                  # (rows, columns, lanes * groups)
        if op["accumulate"] and self.held is not None:
            with np.errstate(over="ignore"):
                sums = sums + self.held
        self.held = sums if op["hold"] else None
        if not op["hold"]:
            self.sums.append(Tile(sums, mnemonic == "conv23"))

    def _conv23(self, op: dict[str, int], cfg: dict[str, int]) -> Int32:
        channels, groups = cfg["runs"], op["groups"]
        x, y = np.arange(2 * cfg["tiles_x"] + 2), 2 * op["y_half"] + np.arange(2 * op["tiles_y"] + 2)
        kernels = self.weights("conv23", op["weight_base"], groups, channels)  # (3, 3, channels, groups * lanes)
        step = cfg.get("group_step", 0) // TILE_BYTES

        def group(g: int, weights: Float32) -> Int32:
            places = blocked_places(op["base"], x, y, np.arange(channels) + g * step, cfg["x_step"], cfg["y_step"])
            return correlate(self.activations[_inside("activation", places, self.activations)], weights)
        if step == 0:
            return group(0, kernels)
        lanes = self.machine.lanes
        return np.concatenate([group(g, kernels[..., g * lanes:(g + 1) * lanes]) for g in range(groups)], axis=2)

    def weights(self, kind: str, base: int, groups: int, steps: int) -> Float32:
        """Return weights as an array, last axis output channels; kept until other weights are loaded."""
        key = kind, base, groups, steps
        if key not in self._unpacked:
            unpack = self._unpack_kernels if kind == "conv23" else self._unpack_runs
            self._unpacked[key] = unpack(base, groups, steps).astype(np.float32)
        return self._unpacked[key]

    def _unpack_kernels(self, base: int, groups: int, channels: int) -> Int8:
        """Return the 3x3 kernels at ``base``: (3, 3, channels, groups * lanes)."""
        machine = self.machine
        count = groups * channels * machine.lanes_per_cluster
        if base % 8:
            raise IndexError(f"weight_base {base}, which is no multiple of 8")
        words, ninths = self.main[base:base + -(-count // 2)], self.ninths[base // 8:base // 8 + -(-count // 16)]
        if 2 * len(words) < count or 16 * len(ninths) < count:
            raise IndexError(f"kernel {count - 1} from word {base} of {machine.weight_words}")
        first = words.reshape(-1, machine.clusters, 2, 8).transpose(0, 2, 1, 3).reshape(-1, machine.clusters, 8)
        ninth = ninths.transpose(0, 2, 1).reshape(-1, machine.clusters, 1)
        kernels = np.concatenate([first[:count], ninth[:count]], axis=2)        # (count, clusters, 9)
        shape = groups, channels, machine.lanes_per_cluster, machine.clusters, 3, 3
        return kernels.reshape(shape).transpose(4, 5, 1, 0, 3, 2).reshape(3, 3, channels, groups * machine.lanes)

    def _unpack_runs(self, base: int, groups: int, steps: int) -> Int8:
        """Return the weights of 16-byte runs at ``base``: (steps * 16, groups * lanes)."""
        machine = self.machine
        words = self.main[base:base + groups * steps * machine.lanes_per_cluster]
        shape = groups, steps, machine.lanes_per_cluster, machine.clusters, TILE_BYTES
        if len(words) < groups * steps * machine.lanes_per_cluster:
            raise IndexError(f"weight word {base + groups * steps * machine.lanes_per_cluster - 1} "
                             f"of {machine.weight_words}")
        return words.reshape(shape).transpose(1, 4, 0, 3, 2).reshape(steps * TILE_BYTES, groups * machine.lanes)

    def _runs(self, op: dict[str, int], cfg: dict[str, int], group: int) -> Int8:
        """Return the 16-byte runs of every tile: (tiles, K, 16)."""
        sizes: tuple[int, ...] = (
            op["tiles_y"], cfg["tiles_x"], cfg["kernel_y"], cfg["kernel_x"], cfg["runs"], TILE_BYTES)
        steps: tuple[int, ...] = (
            cfg["y_step"], cfg["x_step"], cfg["kernel_y_step"], cfg["kernel_x_step"], TILE_BYTES, 1)
        if pair := TILE_BYTES * cfg.get("pair_words", 0):
            # The halves of a run are two steps of 8 bytes each.
            half = TILE_BYTES // 2
            sizes, steps = (*sizes[:-1], 2, half), (*steps[:-1], pair + half, 1)
        base = op["base"] + group * cfg.get("group_step", 0)
        shape = sizes[0] * sizes[1], sizes[2] * sizes[3] * sizes[4], TILE_BYTES
        last = base + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        if last < self.activations.size:
            return as_strided(self.activations[base:], sizes, steps).reshape(shape)
        # The last run may reach beyond the buffer; its weights there are zero, and the hardware wraps.
        places = np.array(base)
        for size, step in zip(sizes, steps, strict=True):
            places = places[..., None] + step * np.arange(size)
        return self.activations[places % self.activations.size].reshape(shape)

    def _conv(self, op: dict[str, int], cfg: dict[str, int]) -> Int32:
        machine, groups = self.machine, op["groups"]
        weights = self.weights("conv", op["weight_base"], groups, cfg["kernel_y"] * cfg["kernel_x"] * cfg["runs"])
        shape = (op["tiles_y"], cfg["tiles_x"], machine.lanes * groups)
        if not cfg.get("group_step", 0):
            runs = self._runs(op, cfg, 0)
            return dot(runs.reshape(len(runs), -1), weights).reshape(shape)
        parts = []
        for group in range(groups):
            runs = self._runs(op, cfg, group)
            parts.append(dot(runs.reshape(len(runs), -1),
                             weights[:, group * machine.lanes:(group + 1) * machine.lanes]))
        return np.concatenate(parts, axis=1).reshape(shape)

    def _pool_sum(self, op: dict[str, int], cfg: dict[str, int]) -> Int32:
        lanes = self.machine.lanes
        parts = [self._runs(op, cfg, group)[:, :, :lanes].sum(axis=1, dtype=np.int32) for group in range(op["groups"])]
        return np.concatenate(parts, axis=1).reshape(op["tiles_y"], cfg["tiles_x"], -1)

    # ---- post

    def _act(self, op: dict[str, int]) -> None:
        cfg = self._configured("act", "width")
        if not self.sums:
            raise KeyError("sums that no mac command has left")
        tile = self.sums.popleft()
        rows, width, channels = op["rows"], cfg["width"], op["channels"]
        lanes = -(-channels // self.machine.lanes) * self.machine.lanes
        even = 2 if op["winograd"] else 1
        shape = -(-rows // even) * even, -(-width // even) * even, lanes
        if tile.winograd != bool(op["winograd"]) or tile.sums.shape != shape:
            raise KeyError(f"sums of shape {shape} (there are {tile.sums.shape}, winograd {int(tile.winograd)})")
        if op["residual"] and op["pooled"]:
            raise KeyError("residual and pooled together, which exclude each other")
        bias, scale = self._channel_parameters(op["parameter_base"], channels)
        sums = tile.sums[:rows, :width, :channels]
        values = requantize(sums, bias, scale, cfg["zero_point"], cfg["low"], cfg["high"])
        if op["residual"]:
            other = self.results[self._result_places(op["base"], rows, width, channels)]
            values = add_residual(values, other, cfg)
        if op["table"]:
            values = self.tables[op["table_slot"]][values.astype(np.int16) + 128]
        if not op["pooled"]:
            self.results[self._result_places(op["base"], rows, width, channels)] = values
            return
        self._pool_max(op["base"], values)

    def _pool_max(self, base: int, values: Int8) -> None:
        """Write the maxima of the windows that ``values`` (rows, columns, channels) touches."""
        window = self.config["pool"]
        rows, width, channels = values.shape
        pooled = np.full((window["rows"], window["width"], channels), -128, np.int8)
        touched = np.zeros(pooled.shape[:2], bool)
        for ky in range(window["kernel_y"]):
            for kx in range(window["kernel_x"]):
                y = np.arange(window["rows"]) * window["stride_y"] - window["top"] + ky
                x = np.arange(window["width"]) * window["stride_x"] - window["left"] + kx
                iy, ix = np.flatnonzero((y >= 0) & (y < rows)), np.flatnonzero((x >= 0) & (x < width))
                here = np.ix_(iy, ix)
                pooled[here] = np.maximum(pooled[here], values[np.ix_(y[iy], x[ix])])
                touched[here] = True
        places = self._result_places(base, window["rows"], window["width"], channels)
        self.results[places[touched]] = pooled[touched]

    def _channel_parameters(self, first: int, channels: int) -> tuple[Int32, NDArray[np.float32]]:
        """Return bias (channels,) and scale (channels,)."""
        words = self.parameters[8 * first:8 * (first + channels)].view("<u4").reshape(-1, 2)
        if len(words) != channels:
            raise IndexError(f"parameters of channel {first + channels - 1} of {self.machine.parameter_channels}")
        mantissa, shift = words[:, 1] & 0xFFFFFF, words[:, 1] >> 24
        scale = np.ldexp(mantissa.astype(np.float64), -shift.astype(np.int32)).astype(np.float32)
        return words[:, 0].copy().view(np.int32), scale

    def _result_places(self, base: int, rows: int, width: int, channels: int) -> NDArray[np.int64]:
        cfg = self.config["act"]
        places = (base + cfg["row_step"] * np.arange(rows)[:, None, None]
                  + cfg["pixel_step"] * np.arange(width)[:, None] + np.arange(channels))
        return _inside("result", places, self.results)

    # ---- store

    def _sta(self, variant: str, op: dict[str, int]) -> None:
        if variant == "status":
            self.memory.write_strided(op["address"], self.status().view(np.int8).reshape(1, 1, -1), (0, 0),
                                      self.machine.bus_bytes)
            return
        cfg = self._configured("sta", "chunks", "chunk_bytes")
        rows, chunks, size = op["rows"], cfg["chunks"], cfg["chunk_bytes"]
        places = (op["base"] + cfg["row_step"] * np.arange(rows)[:, None, None]
                  + cfg["chunk_step"] * np.arange(chunks)[:, None] + np.arange(size))
        data = self.results[_inside("result", places, self.results)]            # (rows, chunks, chunk_bytes)
        if variant == "memory":
            self.memory.write_strided(op["address"], data, (cfg["target_row_step"], cfg["target_chunk_step"]),
                                      self.machine.bus_bytes)
        elif variant == "linear":
            target = (op["target"] + cfg["target_row_step"] * np.arange(rows)[:, None, None]
                      + cfg["target_chunk_step"] * np.arange(chunks)[:, None] + np.arange(size))
            self.activations[_inside("activation", target, self.activations)] = data
        else:
            channels = 16 * op["channel"] + np.arange(size)
            target = blocked_places(op["target"], op["x"] + np.arange(chunks), op["y"] + np.arange(rows), channels,
                                    cfg["target_chunk_step"], cfg["target_row_step"])
            self.activations[_inside("activation", target, self.activations)] = data


def _inside(buffer: str, places: NDArray[np.int64], array: Int8) -> NDArray[np.int64]:
    """Return ``places`` if all of them are in the buffer that ``array`` holds."""
    if (last := int(places.max())) >= array.size:
        raise IndexError(f"{buffer} byte {last} of {array.size}")
    return places


def blocked_places(base: int, x: NDArray[np.int64], y: NDArray[np.int64], channels: NDArray[np.int64],
                   block_step: int, row_step: int) -> NDArray[np.int64]:
    """Return the physical places of the pixels (y, x, channel) of a blocked layout: (len(y), len(x), len(channels)).

    ``block_step`` and ``row_step`` are the bytes from one 4x4 block to the next and to the next block row.
    """
    position = (x % 4)[None, :, None] + 4 * (y % 4)[:, None, None] + channels
    word = base + (y // 4)[:, None, None] * row_step + (x // 4)[None, :, None] * block_step + TILE_BYTES * channels
    return word + position % TILE_BYTES


_COUNTS = ("rows", "words", "tiles_y", "groups", "channels")
"""Operands that hardware counts down from, and so must not be zero."""

_HANDLERS: dict[str, Callable[[Functional, str, dict[str, int]], None]] = {
    "lda": Functional._lda,
    "ldw": Functional._ldw,
    "conv23": lambda self, variant, op: self._mac("conv23", op),
    "conv": lambda self, variant, op: self._mac("conv", op),
    "pool": lambda self, variant, op: self._mac("pool", op),
    "act": lambda self, variant, op: self._act(op),
    "sta": Functional._sta,
}
