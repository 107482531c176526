"""Sampled changes of the array's operands from slot to slot: a few slots of each layer, as in hardware.

Toggles of a register depend on the data: quiet images, zero weights and depthwise layers can take half of what dense
ones do. So a sample of every mac command's slots goes through the array's registers in NumPy: patch, its transform, the
operands and products of each lane, the inverse transform; and bits that differ between neighbouring slots are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.encoding import BY_CHANNEL
from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine
from tilewright.isa.semantics.buffer_places import blocked_places
from tilewright.isa.semantics.conv import run_weights
from tilewright.isa.semantics.conv23 import channel_kernels, kernel_weights
from tilewright.isa.semantics.coprocessor_state import CoprocessorState
from tilewright.sim.values.pair_samples import DATA_BITS, held_pairs, pair_registers

__all__ = ["FIRST", "OperandSampler", "OperandToggles"]

_MNEMONICS = ("conv23", "conv", "pool")
_STEPS = 8
"""Steps of a command that are looked at, one after the other: each takes as many slots as there are tiles in flight."""

FIRST, _EVERY = 8, 32
"""Of a layer's commands the first so many are looked at, and then every so manyth."""

@dataclass(frozen=True, slots=True)
class _Widths:
    """Widths of the array's registers; ``row`` and ``sum`` are those of the two stages behind the products.

    ``operand`` is that of the sums which an array of inner products multiplies.
    """

    weight: int
    product: int
    row: int
    sum: int
    data: int
    operand: int = 0


_WIDTHS = {"winograd": _Widths(12, 21, 22, 20, 10), "plain": _Widths(8, 16, 18, 20, 8),
           "inner": _Widths(8, 18, 20, 21, 8, 9), "winograd_inner": _Widths(12, 23, 24, 24, DATA_BITS, 12)}
"""By kind of array, as in rtl/arithmetic/winograd.py, rtl/array/plain_lane.py, inner_lane.py and the like."""

_XI_WIDTHS = _Widths(8, 16, 18, 19, 8)
"""Of the lane of xi in an array of inner products."""

_ADDRESS_BITS = 16
"""More than a bank's address has."""

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OperandToggles:
    """Bits that change in a tile slot, on average.

    Attributes
    ----------
    patch : float
        Of the 128 bits of the patch or run.
    data : float
        Of its 160 bits after the transform, or the 128 without one, which every lane passes on.
    array : float
        Of the registers of all lanes that a slot goes through: operands, products, inverse transform or adders.
    weights : float
        Of the 128 bits of weights, from one lane's to the next one's, all that the clusters fetch.
    banks : float
        Of the 128 bits that the banks of the activation buffer put out, had each of them read.
    addresses : float
        Of the banks' word addresses.
    """

    patch: float = 0.0
    data: float = 0.0
    array: float = 0.0
    weights: float = 0.0
    banks: float = 0.0
    addresses: float = 0.0


@dataclass
class _Sum:
    """Changes seen in a layer, weighted by the slots of the commands they stand for."""

    commands: int = 0
    slots: int = 0
    changes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(fields(OperandToggles))))

    def mean(self) -> OperandToggles:
        return OperandToggles(*(self.changes / self.slots).tolist()) if self.slots else OperandToggles()


class OperandSampler:
    """Looks at mac commands that have just been executed; ``state`` still holds what they have read."""

    def __init__(self, state: CoprocessorState) -> None:
        self._state = state
        self._layers: dict[int, _Sum] = {}
        self._random = np.random.default_rng(0)

    def see(self, layer: int, command: EncodedCommand) -> None:
        """Note ``command`` of the program's function ``layer``."""
        mnemonic, variant = command.instruction.mnemonic, command.variant.name
        if mnemonic not in _MNEMONICS or variant == "window" or variant.startswith("set_"):
            return
        seen = self._layers.setdefault(layer, _Sum())
        seen.commands += 1
        if seen.commands > FIRST and seen.commands % _EVERY:
            return
        sample = _SlotSample.draw(self._state, command, self._random)
        seen.slots += sample.slots
        seen.changes += sample.slots * sample.changes()

    def means(self, layers: int) -> tuple[OperandToggles, ...]:
        """Return the samples of each of the first ``layers`` functions."""
        return tuple(self._layers.get(index, _Sum()).mean() for index in range(layers))


@dataclass(frozen=True, slots=True)
class _SlotSample:
    """Neighbouring slots of a command.

    Attributes
    ----------
    slots : int
        Of the whole command.
    places : int64, (steps, tiles, 16)
        Where in the activation buffer each slot reads: byte ``16 * word + bank``.
    patches : int64, (steps, tiles, 16)
        The values that it reads there.
    weights : int64, (steps, 16, lanes)
        int8 values; of a kernel the nine, then zeros.
    dot : bool
    machine : Machine
    at_once : int
        Patches of a slot, of which each lane takes one.
    """

    slots: int
    places: _Ints
    patches: _Ints
    weights: _Ints
    dot: bool
    machine: Machine
    at_once: int = 1

    @classmethod
    def draw(cls, state: CoprocessorState, command: EncodedCommand, random: np.random.Generator) -> "_SlotSample":
        machine, cfg = state.machine, state.settings["conv"]
        mnemonic, op = command.instruction.mnemonic, command.operands
        winograd = mnemonic == "conv23"
        four = PATCHES if command.variant.name == "run_four_patches" else 1
        steps = cfg["runs"] if winograd and four == 1 else four * cfg["kernel_y"] * cfg["kernel_x"] * cfg["runs"]
        tiles = cfg["tiles_x"] * op["tiles_y"]
        # A short group of tiles is drawn as seldom as it has few slots.
        first = int(random.integers(tiles)) // machine.tiles * machine.tiles
        tile = np.arange(first, min(first + machine.tiles, tiles))
        steps += steps % 2 if winograd and machine.pairs_channels else 0
        step = int(random.integers(max(1, steps - _STEPS + 1))) + np.arange(min(_STEPS, steps))
        if winograd and machine.pairs_channels:
            step -= step[0] % 2
        group = int(random.integers(op["groups"]))
        places = (_patches if winograd else _runs)(op, cfg, group, tile, step) % state.activations.size
        weights = np.zeros((len(step), TILE_BYTES, machine.lanes), np.int64)
        if mnemonic == "pool":
            lane = np.arange(machine.lanes)
            runs, mine = np.nonzero(step[:, None] % machine.lane_runs == lane // TILE_BYTES)
            weights[runs, mine % TILE_BYTES, mine] = 1
        else:
            weights_of: Callable[[CoprocessorState, int, int, int], NDArray[np.float32]] = run_weights
            if winograd:
                weights_of = channel_kernels if command.variant.name in BY_CHANNEL else kernel_weights
            all_weights = weights_of(state, op["weight_base"], op["groups"], steps)
            lanes = slice(group * machine.lanes, (group + 1) * machine.lanes)
            if winograd:
                weights[:, :9] = all_weights[:, :, step, lanes].reshape(9, len(step), -1).transpose(1, 0, 2)
            else:
                weights[:] = all_weights.reshape(steps, TILE_BYTES, -1)[step, :, lanes]
        planes = 2 if cfg.get("plane_step", 0) else 1   # the first is looked at
        return cls(planes * op["groups"] * steps * tiles, places, state.activations[places].astype(np.int64), weights,
                   not winograd, machine, four)

    def changes(self) -> NDArray[np.float64]:
        """Return the bits that change per slot, in the order of `OperandToggles`."""
        steps, tiles, _ = self.patches.shape
        count = steps * tiles
        patches = self.patches.reshape(count, 4, 4)
        data = patches if self.dot else _transform_data(patches)
        weights = self.weights if self.dot else _transform_weights(self.weights[:, :9])
        widths = _WIDTHS[self.machine.array]
        between = max(1, count - 1)
        passed = _differing(data, widths.data) / between
        held = self.machine.lanes // self.machine.lanes_per_fetch + self.machine.inner   # xi's lane holds data, too
        slotwise = data.reshape(steps, tiles, TILE_BYTES, 1)
        kept = passed
        if self.machine.pairs_channels:
            pairs = held_pairs(data.reshape(steps, tiles, TILE_BYTES), dot=self.dot)
            kept, held = _differing(pairs, DATA_BITS) / between, held + 1   # before the lanes they stand together, too
            stages = pair_registers(pairs, weights, tiles, dot=self.dot)
        else:
            stages = (_inner_registers(slotwise, weights[:, None], widths) if self.machine.inner else
                      self._registers(slotwise * weights[:, None], widths))
        lanes = sum(_differing(each.reshape(len(each), -1) if self.machine.pairs_channels else each.reshape(count, -1),
                               bits) / between for each, bits in stages)
        # A lane takes its weights once in a step, in whose slots it keeps them.
        operands = _differing(weights, widths.weight) / max(1, steps - 1) / tiles
        in_lanes = self.weights.transpose(0, 2, 1).reshape(steps, self.machine.clusters, -1, TILE_BYTES)
        fetches = in_lanes.transpose(0, 2, 1, 3).reshape(steps * self.machine.fetch_slots, -1)
        fetched = _differing(fetches, 8) / max(1, len(fetches) - 1)
        by_bank = np.argsort(self.places % TILE_BYTES, axis=2)
        banks, words = (np.take_along_axis(each, by_bank, axis=2).reshape(count, -1)
                        for each in (self.patches, self.places // TILE_BYTES))
        return np.array([_differing(patches, 8) / between, passed, kept * held / self.at_once + lanes + operands,
                         fetched * self.machine.fetch_slots / tiles, _differing(banks, 8) / between,
                         _differing(words, _ADDRESS_BITS) / between])

    def _registers(self, products: _Ints, widths: _Widths) -> list[tuple[_Ints, int]]:
        """Return what the registers behind the multipliers hold, and their widths, of (steps, tiles, 16, lanes)."""
        square = products.reshape(-1, 4, 4, products.shape[-1])
        rows, sums = _inverse(square, dot=self.dot) if self.machine.winograd else _adder_tree(square)
        return [(products, widths.product), (rows, widths.row), (sums, widths.sum)]


def _patches(op: dict[str, int], cfg: dict[str, int], group: int, tile: _Ints, step: _Ints) -> _Ints:
    """Return the places of the 4x4 patches of ``tile`` in the channels ``step``: (steps, tiles, 16)."""
    first = group * cfg.get("group_step", 0) // TILE_BYTES
    found = []
    for number in tile.tolist():
        ty, tx = divmod(number, cfg["tiles_x"])
        places = blocked_places(op["base"], 2 * tx + np.arange(4), 2 * (op["y_half"] + ty) + np.arange(4), step + first,
                                cfg["x_step"], cfg["y_step"])
        found.append(places.reshape(TILE_BYTES, -1).T)
    return np.stack(found, axis=1)


def _runs(op: dict[str, int], cfg: dict[str, int], group: int, tile: _Ints, step: _Ints) -> _Ints:
    """Return the places of the 16-byte runs of ``tile`` in each of the steps ``step``: (steps, tiles, 16)."""
    ty, tx = np.divmod(tile, cfg["tiles_x"])
    kernel, run = np.divmod(step, cfg["runs"])
    ky, kx = np.divmod(kernel, cfg["kernel_x"])
    start = op["base"] + group * cfg.get("group_step", 0)
    of_tile = ty * cfg["y_step"] + tx * cfg["x_step"]
    of_step = ky * cfg["kernel_y_step"] + kx * cfg["kernel_x_step"] + run * TILE_BYTES
    byte = np.arange(TILE_BYTES)
    of_byte = byte + TILE_BYTES * cfg.get("pair_words", 0) * (byte >= TILE_BYTES // 2)
    return start + of_step[:, None, None] + of_tile[None, :, None] + of_byte


def _transform_data(d: _Ints) -> _Ints:
    """Return Bᵀ d B of patches (n, 4, 4)."""
    for _ in range(2):
        d = np.stack([d[:, 0] - d[:, 2], d[:, 1] + d[:, 2], d[:, 2] - d[:, 1], d[:, 1] - d[:, 3]], axis=1)
        d = d.transpose(0, 2, 1)
    return d


def _transform_weights(g: _Ints) -> _Ints:
    """Return 2G g 2Gᵀ of kernels (n, 9, lanes): (n, 16, lanes)."""
    g = g.reshape(len(g), 3, 3, -1)
    for _ in range(2):
        outer = g[:, 0] + g[:, 2]
        g = np.stack([2 * g[:, 0], outer + g[:, 1], outer - g[:, 1], 2 * g[:, 2]], axis=1).transpose(0, 2, 1, 3)
    return g.reshape(len(g), 16, -1)


def _inverse(p: _Ints, *, dot: bool) -> tuple[_Ints, _Ints]:
    """Return the registers of the inverse transform of products (n, 4, 4, lanes): rows (n, 8 · lanes) and sums."""
    rows = np.stack([p[:, 0] + p[:, 1] + p[:, 2], (0 if dot else p[:, 1] - p[:, 2]) - p[:, 3]], axis=1)
    sums = np.stack([rows[:, :, 0] + rows[:, :, 1] + rows[:, :, 2],
                     (0 if dot else rows[:, :, 1] - rows[:, :, 2]) - rows[:, :, 3]], axis=2)
    return rows.reshape(len(p), -1), (sums if dot else sums >> 2).reshape(len(p), -1)


def _inner_registers(data: _Ints, weights: _Ints, widths: _Widths) -> list[tuple[_Ints, int]]:
    """Return what the registers of lanes of inner products, and of xi's, hold behind those of the operands.

    ``data`` is (steps, tiles, 16, 1), ``weights`` (steps, 1, 16, lanes).
    """
    even, odd = data[:, :, 0::2], data[:, :, 1::2]
    a, b = even + weights[:, :, 1::2], odd + weights[:, :, 0::2]
    found = [(a, widths.operand), (b, widths.operand)]
    for products, bits in ((a * b, widths), (even * odd, _XI_WIDTHS)):
        quarters = products.reshape(-1, 2, 4, products.shape[-1]).sum(axis=2)
        found += [(products, bits.product), (quarters, bits.row), (quarters.sum(axis=1), bits.sum)]
    return found


def _adder_tree(p: _Ints) -> tuple[_Ints, _Ints]:
    """Return the registers of the adder tree of a plain lane: four sums of four products (n, 4 · lanes), and theirs."""
    quarters = p.sum(axis=2)
    return quarters.reshape(len(p), -1), quarters.sum(axis=1)


def _differing(values: _Ints, bits: int) -> int:
    """Return how many of the lowest ``bits`` differ between each of ``values`` and the next, along the first axis."""
    return int(np.bitwise_count((values[1:] ^ values[:-1]) & ((1 << bits) - 1)).sum())
