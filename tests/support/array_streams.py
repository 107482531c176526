"""One layer driven into netlists of arrays: what stands at their borders in every cycle, by NumPy, and what that costs.

Winograd takes a 4x4 patch of one channel in a slot, channels one after the other; dot products take 16 channels of a
pixel, kernel positions and then channels; both run four tiles for each weight fetched, as `rtl.array.sequencer` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.support.plain_array import PlainLane
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.gates.electrical import Electrical, electrical_of
from tilewright.hardware.gates.events import Stimulus, simulate
from tilewright.hardware.gates.mapping import map_verilog, plain_verilog
from tilewright.hardware.gates.netlist import Netlist, read_netlist
from tilewright.hardware.gates.power import energy_of
from tilewright.hardware.gates.stimulus import UNKNOWN
from tilewright.rtl.arithmetic.winograd import InputTransform, WeightTransform
from tilewright.rtl.array.lane import Lane
from tilewright.rtl.array.sequencer.slots import Slot
from tilewright.sim.verilog.elaborate import verilog
from tilewright.tools.debian import debian_data

TILES = LANES = 4
DRAIN = 8
"""Cycles behind the last slot, until its sums are written."""

COMPONENTS = {"lane": lambda: Lane(TILES), "plain": lambda: PlainLane(TILES),
              "inputs": lambda: InputTransform(Slot), "weights": WeightTransform}

INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
WEIGHT = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
OUTPUT_OF_DOT = np.array([[1, 1, 1, 0], [0, 0, 0, -1]])


@dataclass(frozen=True)
class Work:
    """Slots and weights of some steps, and the sums that they come to.

    Attributes
    ----------
    patches : ndarray
        (steps, TILES, 16): what the activation buffer gives.
    weights : ndarray
        (steps, LANES, 16): what the weight memory gives.
    group : int
        Steps of a tile group: its sums are finished behind the last.
    winograd : bool
        Patches and kernels, not dot products.
    """

    patches: np.ndarray
    weights: np.ndarray
    group: int
    winograd: bool

    @property
    def macs(self) -> int:
        """Multiplications of the convolution that this is, in all lanes."""
        return self.patches.shape[0] * TILES * LANES * (36 if self.winograd else 16)


@dataclass(frozen=True)
class Mapped:
    """A netlist and its loads."""

    netlist: Netlist
    electrical: Electrical


@cache
def mapped(name: str) -> Mapped:
    """Return one of `COMPONENTS` in osu018's cells, memories cut out."""
    library = debian_data("osu018_stdcells.lib")
    text = plain_verilog(verilog(COMPONENTS[name](), name))
    path = map_verilog(text, name, library, gated=False)
    netlist = read_netlist(path, name, read_library(library))
    return Mapped(netlist, electrical_of(netlist))


def winograd_work(x: np.ndarray, weights: np.ndarray, row: int, column: int) -> Work:
    """Return four tiles side by side from output (row, column) on; ``x`` is padded: (channels, height, width)."""
    patches = np.stack([x[:, row:row + 4, column + 2 * tile:column + 2 * tile + 4] for tile in range(TILES)], axis=1)
    kernels = weights[:LANES].transpose(1, 0, 2, 3).reshape(len(x), LANES, 9)
    filled = np.concatenate([kernels, np.zeros((len(x), LANES, 7), kernels.dtype)], axis=2)
    return Work(patches.reshape(len(x), TILES, 16).astype(int), filled.astype(int), len(x), winograd=True)


def dot_work(x: np.ndarray, weights: np.ndarray, row: int, column: int) -> Work:
    """Return the first four outputs of ``row`` from ``column`` on, and the last four of the eight in the next row."""
    runs = range(0, len(x), 16)
    steps = [(y, x_, run) for y in range(3) for x_ in range(3) for run in runs]
    patches = [[x[run:run + 16, top + ky, left + tile + kx] for tile in range(TILES)]
               for top, left in ((row, column), (row + 1, column + 4)) for ky, kx, run in steps]
    fetched = [weights[:LANES, run:run + 16, ky, kx] for ky, kx, run in steps] * 2
    return Work(np.array(patches, int), np.array(fetched, int), len(steps), winograd=False)


def energy(name: str, given: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """Return pJ of dynamic energy of a netlist over all cycles; its outputs are compared with ``expected``.

    Values have shape (cycles, bits), lowest bit first; -1 in ``expected`` is unknown.
    """
    block = mapped(name)
    cycles = len(next(iter(given.values())))

    def column(names, known, otherwise):
        for signal, index in names:
            if signal in known:
                return known[signal][:, index]
        if otherwise is None:
            raise AssertionError(f"{name} has an input of which nothing is given: {names}")
        return np.full(cycles, otherwise)

    netlist = block.netlist
    # Nothing may be at an input without a value: a name that has changed must not go unnoticed.
    inputs = np.stack([column(names, given, None) for _, names in netlist.inputs], axis=1)
    outputs = np.stack([column(names, expected, UNKNOWN) for _, names in netlist.outputs], axis=1)
    missing = set(expected) - {signal for _, names in netlist.outputs for signal, _ in names}
    assert not missing, f"{name} has no outputs {missing}"
    driven = Stimulus(inputs.astype(np.uint8), outputs.astype(np.int8), np.zeros(len(netlist.flops), np.uint8))
    return energy_of(netlist, simulate(netlist, driven, block.electrical), block.electrical).dynamic


def bits(values: np.ndarray, width: int) -> np.ndarray:
    """Return two's complement, lowest bit first, the numbers of a row side by side: (cycles, numbers * width)."""
    values = np.asarray(values, np.int64).reshape(len(values), -1)
    return ((values[:, :, None] >> np.arange(width)) & 1).reshape(len(values), -1)


def input_transform(work: Work) -> float:
    """Return pJ of the transform of patches, one of all lanes, over the work's cycles."""
    patches, slots, valid = _stream(work)
    v = transformed(work).reshape(-1, 16)
    out = np.zeros((len(valid), 16), int)
    out[1:len(v) + 1] = v
    out[len(v) + 1:] = v[-1]
    slot_out = np.concatenate([np.zeros_like(slots[:1]), _held(slots, valid)[:-1]])
    payload = np.concatenate([bits(patches, 8), valid[:, None], _dot(work, valid), slots], axis=1)
    return energy("inputs", {"i__payload": payload, "i__valid": valid[:, None], "rst": _zeros(valid)},
                  {"o__payload": np.concatenate([bits(out, 10), slot_out], axis=1)})


def weight_transform(work: Work) -> float:
    """Return pJ of the transform of weights, one of all lanes, over the work's cycles."""
    _, _, valid = _stream(work)
    weights = work.weights.reshape(-1, 16)
    u = lane_weights(work).reshape(-1, 16)
    fetched, out = np.zeros((len(valid), 16), int), np.zeros((len(valid), 16), int)
    fetched[:len(u)], fetched[len(u):] = weights, weights[-1]
    out[2:len(u) + 2], out[len(u) + 2:] = u, u[-1]
    known = np.concatenate([np.full((2, 192), UNKNOWN), bits(out, 12)[2:]])
    payload = np.concatenate([bits(fetched, 8), _dot(work, valid)], axis=1)
    return energy("weights", {"i__payload": payload, "i__valid": valid[:, None], "rst": _zeros(valid)},
                  {"o__payload": known})


def transformed(work: Work) -> np.ndarray:
    """Return what the lanes get of the patches: (steps, TILES, 16)."""
    if not work.winograd:
        return work.patches
    tiles = work.patches.reshape(-1, 4, 4)
    return (INPUT @ tiles @ INPUT.T).reshape(work.patches.shape)


def lane_weights(work: Work) -> np.ndarray:
    """Return what the lanes get of the weights: (steps, LANES, 16)."""
    if not work.winograd:
        return work.weights
    kernels = work.weights[:, :, :9].reshape(-1, 3, 3)
    return (WEIGHT @ kernels @ WEIGHT.T).reshape(work.weights.shape)


def contributions(work: Work, lane: int, *, plain: bool) -> np.ndarray:
    """Return what each slot adds to its tile's sums in a lane: (steps, TILES, sums)."""
    products = transformed(work) * lane_weights(work)[:, lane, None, :]
    if plain:
        return products.sum(axis=2, keepdims=True)
    matrix = OUTPUT if work.winograd else OUTPUT_OF_DOT
    y = (matrix @ products.reshape(*products.shape[:2], 4, 4) @ matrix.T).reshape(*products.shape[:2], 4)
    return y >> 2 if work.winograd else y


def lane_energy(work: Work, lane: int, *, plain: bool) -> tuple[float, np.ndarray]:
    """Return pJ of a lane over the work's cycles, and the finished sums of its tile groups: (groups, TILES, sums)."""
    _, slots, valid = _stream(work)
    v, u = (each.reshape(-1, 16) for each in (transformed(work), lane_weights(work)))
    data, weights = (np.zeros((len(valid), 16), int) for _ in range(2))
    data[:len(v)], data[len(v):], weights[:len(u)], weights[len(u):] = v, v[-1], u, u[-1]
    # Its slots come later than the first lane's by its number: seen from its first slot, weights come earlier.
    weights = np.roll(weights, -lane, axis=0)
    memory = _Memory(work, contributions(work, lane, plain=plain), len(valid))
    width = 8 if plain else 10
    given = {"i__payload": np.concatenate([bits(data, width), slots], axis=1), "i__valid": valid[:, None],
             "u": bits(weights, 8 if plain else 12), "rst": _zeros(valid), "sums_address": np.zeros((len(valid), 4)),
             "sums": np.zeros((len(valid), 32 if plain else 128))}
    held = np.concatenate([np.zeros((1, 16), int), np.where(valid[:, None] == 1, data, v[-1])[:-1]])
    slot_out = np.concatenate([np.zeros_like(slots[:1]), _held(slots, valid)[:-1]])
    expected = {"o__payload": np.concatenate([bits(held, width), slot_out], axis=1)}
    name = "plain" if plain else "lane"
    old = {signal for _, names in mapped(name).netlist.inputs for signal, _ in names
           if signal.startswith("_24_signature__data")}
    # Amaranth calls the memories' ports alike and numbers them; in another order they would give other totals.
    for number, signal in enumerate(sorted(old, key=lambda signal: (len(signal), signal))):
        given[signal] = bits(memory.old[:, number], 32)
    for number in range(memory.totals.shape[1]):
        expected[f"total_{number}"] = np.where(memory.written[:, None], bits(memory.totals[:, number], 32), UNKNOWN)
    return energy(name, given, expected), memory.finished


class _Memory:
    """Sums that a lane's memories give and take: ``old``, ``totals`` (cycles, sums); ``finished``."""

    def __init__(self, work: Work, added: np.ndarray, cycles: int) -> None:
        sums = added.shape[2]
        self.old, self.totals = np.zeros((cycles, sums), int), np.zeros((cycles, sums), int)
        self.written = np.zeros(cycles, bool)
        running, finished = np.zeros((TILES, sums), int), []
        for number, value in enumerate(added.reshape(-1, sums)):
            (step, tile), cycle = divmod(number, TILES), number + Lane.LATENCY
            self.old[cycle] = running[tile]
            total = (0 if step % work.group == 0 else running[tile]) + value
            self.totals[cycle], self.written[cycle] = total, True
            if step % work.group == work.group - 1:
                finished.append(total)
            else:
                running[tile] = total
        self.old[number + Lane.LATENCY + 1:] = running[TILES - 1]
        self.old[:Lane.LATENCY] = 0
        self.finished = np.array(finished).reshape(-1, TILES, sums)


def _stream(work: Work) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return patches (cycles, 16), slots (cycles, bits of `Slot`) and whether there is one (cycles,)."""
    steps = len(work.patches)
    cycles = steps * TILES + DRAIN
    number = np.arange(cycles)
    valid = (number < steps * TILES).astype(np.int64)
    step, tile = np.divmod(np.minimum(number, steps * TILES - 1), TILES)
    last = step % work.group == work.group - 1
    # Fields in the order of `Slot`.
    fields = [np.ones(cycles), tile & 1, tile >> 1, tile == 0, step % work.group == 0, last, last & (tile == TILES - 1),
              np.full(cycles, not work.winograd)]
    slots = np.stack([np.asarray(each, np.int64) for each in fields], axis=1)
    return work.patches[step, tile], slots, valid


def _held(slots: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return slots as a register holds them that loads only where there is one: the last stays."""
    return slots[np.maximum.accumulate(np.where(valid == 1, np.arange(len(valid)), 0))]


def _dot(work: Work, valid: np.ndarray) -> np.ndarray:
    return np.full((len(valid), 1), int(not work.winograd))


def _zeros(valid: np.ndarray) -> np.ndarray:
    return np.zeros((len(valid), 1), np.int64)
