"""conv23: 3x3 convolution of stride 1 by Winograd's F(2x2, 3x3), over a block of tiles and all input channels.

    for each lane group, each tile of 2x2 outputs, each input channel:
        every lane: sums += Y of the channel's 4x4 patch and the lane's 3x3 kernel

    U = 2G g (2G)^T,  V = B^T d B,  Y = A^T (U * V) A >> 2

Y is exactly the correlation of patch and kernel (`isa.numerics.conv23_tile`, which a test compares with this), and so
it is computed as one here. The patch of tile (tx, ty) starts at stored pixel (2 tx, 2 ty), 2 rows lower with
``y_half``; lane group g reads channels from g * group_step / 16 on. Kernel q = (g * channels + channel) * lanes per
cluster + lane has its first eight weights in half q % 2 of word weight_base + q // 2, the ninth in byte q % 16 of ninth
word weight_base // 8 + q // 16.
"""

import numpy as np

from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.array_arithmetic import correlate
from tilewright.isa.semantics.buffer_places import blocked_places, inside
from tilewright.isa.semantics.command_errors import OutsideBufferError, UnalignedWeightsError
from tilewright.isa.semantics.coprocessor_state import (
    CoprocessorState,
    Float32,
    Int8,
    Int32,
    MemoryPort,
    Settings,
)
from tilewright.isa.semantics.tile_sums import leave_sums

__all__ = ["convolve_winograd", "kernel_weights"]


def convolve_winograd(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute a conv23; with or without column reuse the sums are the same."""
    del memory, variant
    leave_sums(state, operands, _correlations, winograd=True)


def _correlations(state: CoprocessorState, settings: Settings, operands: dict[str, int]) -> Int32:
    channels, groups = settings["runs"], operands["groups"]
    x = np.arange(2 * settings["tiles_x"] + 2)
    y = 2 * operands["y_half"] + np.arange(2 * operands["tiles_y"] + 2)
    kernels = kernel_weights(state, operands["weight_base"], groups, channels)
    step = settings.get("group_step", 0) // TILE_BYTES

    def group_sums(group: int, weights: Float32) -> Int32:
        places = blocked_places(operands["base"], x, y, np.arange(channels) + group * step, settings["x_step"],
                                settings["y_step"])
        return correlate(state.activations[inside("activation", places, state.activations)], weights)
    if step == 0:
        return group_sums(0, kernels)
    lanes = state.machine.lanes
    return np.concatenate([group_sums(g, kernels[..., g * lanes:(g + 1) * lanes]) for g in range(groups)], axis=2)


def kernel_weights(state: CoprocessorState, base: int, groups: int, channels: int) -> Float32:
    """Return the 3x3 kernels from weight word ``base`` on: (3, 3, channels, groups * lanes)."""
    key = "conv23", base, groups, channels
    if key not in state.unpacked:
        state.unpacked[key] = _unpack(state, base, groups, channels).astype(np.float32)
    return state.unpacked[key]


def _unpack(state: CoprocessorState, base: int, groups: int, channels: int) -> Int8:
    machine = state.machine
    count = groups * channels * machine.lanes_per_cluster
    if base % 8:
        raise UnalignedWeightsError(base)
    words = state.weight_words[base:base + -(-count // 2)]
    ninths = state.ninth_words[base // 8:base // 8 + -(-count // 16)]
    if 2 * len(words) < count or 16 * len(ninths) < count:
        raise OutsideBufferError("kernel", 2 * base + count - 1, 2 * machine.weight_words)
    first = words.reshape(-1, machine.clusters, 2, 8).transpose(0, 2, 1, 3).reshape(-1, machine.clusters, 8)
    ninth = ninths.transpose(0, 2, 1).reshape(-1, machine.clusters, 1)
    kernels = np.concatenate([first[:count], ninth[:count]], axis=2)            # (count, clusters, 9)
    shape = groups, channels, machine.lanes_per_cluster, machine.clusters, 3, 3
    return kernels.reshape(shape).transpose(4, 5, 1, 0, 3, 2).reshape(3, 3, channels, groups * machine.lanes)
