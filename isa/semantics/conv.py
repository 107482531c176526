"""conv: every other convolution and matrix product, as dot products of 16-byte runs of the linear layout.

    for each lane group g, each tile (tx, ty) of one output, each ky, kx, run:
        every lane: sums += the 16 bytes of the run · the 16 weights of word weight_base + (g * K + k) * LPC + lane

K is the number of (ky, kx, run), k counts them with runs fastest, LPC is lanes per cluster. The run begins at byte

    base + g * group_step + ty * y_step + tx * x_step + ky * kernel_y_step + kx * kernel_x_step + run * 16

of any alignment; its upper half lies a further 16 * pair_words on.

An array of inner products leaves eta of the weights in its sums (`isa.semantics.inner_product`); weight_base is even.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.array_arithmetic import dot
from tilewright.isa.semantics.command_errors import OutsideBufferError, UnalignedWeightsError
from tilewright.isa.semantics.coprocessor_state import (
    CoprocessorState,
    Float32,
    Int8,
    Int32,
    MemoryPort,
    Settings,
)
from tilewright.isa.semantics.inner_product import run_eta
from tilewright.isa.semantics.tile_sums import leave_sums

__all__ = ["convolve", "read_runs", "run_weights"]


def convolve(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute a conv.run."""
    del memory, variant
    leave_sums(state, operands, _products, winograd=False)


def _products(state: CoprocessorState, settings: Settings, operands: dict[str, int]) -> Int32:
    lanes, groups = state.machine.lanes, operands["groups"]
    steps = settings["kernel_y"] * settings["kernel_x"] * settings["runs"]
    weights = run_weights(state, operands["weight_base"], groups, steps)
    shape = operands["tiles_y"], settings["tiles_x"], lanes * groups
    if not settings.get("group_step", 0):
        runs = read_runs(state, settings, operands, 0)
        sums = dot(runs.reshape(len(runs), -1), weights)
    else:
        parts = []
        for group in range(groups):
            runs = read_runs(state, settings, operands, group)
            parts.append(dot(runs.reshape(len(runs), -1), weights[:, group * lanes:(group + 1) * lanes]))
        sums = np.concatenate(parts, axis=1)
    if state.machine.inner:
        with np.errstate(over="ignore"):
            sums += _eta(state, operands["weight_base"], groups, steps)
    return sums.reshape(shape)


def _eta(state: CoprocessorState, base: int, groups: int, steps: int) -> Int32:
    """Return eta (groups * lanes,) of the weights of a command."""
    key = "eta", base, groups, steps
    if key not in state.unpacked:
        state.unpacked[key] = run_eta(_unpack(state, base, groups, steps).T).astype(np.int32)
    return state.unpacked[key]


def read_runs(state: CoprocessorState, settings: Settings, operands: dict[str, int], group: int) -> Int8:
    """Return the 16-byte runs of every tile: (tiles, K, 16)."""
    sizes: tuple[int, ...] = (operands["tiles_y"], settings["tiles_x"], settings["kernel_y"], settings["kernel_x"],
                              settings["runs"], TILE_BYTES)
    steps: tuple[int, ...] = (settings["y_step"], settings["x_step"], settings["kernel_y_step"],
                              settings["kernel_x_step"], TILE_BYTES, 1)
    if pair := TILE_BYTES * settings.get("pair_words", 0):
        # The halves of a run are two steps of 8 bytes each.
        half = TILE_BYTES // 2
        sizes, steps = (*sizes[:-1], 2, half), (*steps[:-1], pair + half, 1)
    base = operands["base"] + group * settings.get("group_step", 0)
    shape = sizes[0] * sizes[1], sizes[2] * sizes[3] * sizes[4], TILE_BYTES
    last = base + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if last < state.activations.size:
        return as_strided(state.activations[base:], sizes, steps).reshape(shape)
    # The last run may reach beyond the buffer; its weights there are zero, and the hardware wraps.
    places = np.array(base)
    for size, step in zip(sizes, steps, strict=True):
        places = places[..., None] + step * np.arange(size)
    return state.activations[places % state.activations.size].reshape(shape)


def run_weights(state: CoprocessorState, base: int, groups: int, steps: int) -> Float32:
    """Return the weights of ``steps`` runs per lane group from word ``base`` on: (steps * 16, groups * lanes)."""
    key = "conv", base, groups, steps
    if key not in state.unpacked:
        state.unpacked[key] = _unpack(state, base, groups, steps).astype(np.float32)
    return state.unpacked[key]


def _unpack(state: CoprocessorState, base: int, groups: int, steps: int) -> Int8:
    machine = state.machine
    if base % machine.lanes_per_fetch:
        raise UnalignedWeightsError(base, machine.lanes_per_fetch)
    count = groups * steps * machine.lanes_per_cluster
    words = state.weight_words[base:base + count]
    if len(words) < count:
        raise OutsideBufferError("weight word", base + count - 1, machine.weight_words)
    shape = groups, steps, machine.lanes_per_cluster, machine.clusters, TILE_BYTES
    return words.reshape(shape).transpose(1, 4, 0, 3, 2).reshape(steps * TILE_BYTES, groups * machine.lanes)
