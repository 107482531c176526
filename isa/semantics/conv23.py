"""conv23: 3x3 convolution of stride 1 by Winograd's F(2x2, 3x3), over a block of tiles and all input channels.

    for each lane group, each tile of 2x2 outputs, each input channel:
        every lane: sums += Y of the channel's 4x4 patch and the lane's 3x3 kernel

    U = 2G g (2G)^T,  V = B^T d B,  Y = A^T (U * V) A >> 2

Y is exactly the correlation of patch and kernel (`isa.numerics.conv23_tile`, which a test compares with this), and so
it is computed as one here. The patch of tile (tx, ty) starts at stored pixel (2 tx, 2 ty), 2 rows lower with
``y_half``; lane group g reads channels from g * group_step / 16 on. Kernel q = (g * channels + channel) * lanes per
cluster + lane has its first eight weights in half q % 2 of word weight_base + q // 2, the ninth in byte q % 16 of ninth
word weight_base // 8 + q // 16.

An array that takes channels in pairs takes one more if they are odd, with kernels as they lie there. It leaves
floor(eta / 4) of the kernels in each pixel's sum (`isa.semantics.inner_product`). Kernels of a lane group come pair by
pair of channels, in a pair first those of the even outputs, then of the odd ones, each of both channels in turn.

``run_by_channel`` is for depthwise layers: lane l of a lane group sees only channel l, of as many channels as there are
lanes. Kernel q = g * lanes per cluster + lane is then that of the lane's channel, in any array. ``run_four_patches``
computes the same from blocks that begin with words at multiples of the lanes of a cluster: each step of its loops, over
clusters (``kernel_x``) and over lanes that take turns (``runs``), has the patches of four channels.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from tilewright.isa.encoding import BY_CHANNEL
from tilewright.isa.machine import PATCHES, TILE_BYTES
from tilewright.isa.semantics.array_arithmetic import correlate
from tilewright.isa.semantics.buffer_places import blocked_places, inside
from tilewright.isa.semantics.command_errors import (
    LaneChannelsError,
    OutsideBufferError,
    PatchBlocksError,
    UnalignedWeightsError,
)
from tilewright.isa.semantics.coprocessor_state import (
    CoprocessorState,
    Float32,
    Int8,
    Int32,
    Int64,
    MemoryPort,
    Settings,
)
from tilewright.isa.semantics.inner_product import tile_eta
from tilewright.isa.semantics.tile_sums import leave_sums

__all__ = ["channel_kernels", "convolve_winograd", "kernel_weights"]


def convolve_winograd(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute a conv23; with or without column reuse the sums are the same."""
    del memory
    if variant in BY_CHANNEL:
        channels = _lane_channels(state, variant, operands)
        # A kernel beside one of zeros has no eta.
        sums = _four_times if state.machine.pairs_channels else _by_channel
        leave_sums(state, operands, partial(sums, channels=channels), winograd=True)
        return
    leave_sums(state, operands, _pairs if state.machine.pairs_channels else _correlations, winograd=True)


def _lane_channels(state: CoprocessorState, variant: str, operands: dict[str, int]) -> int:
    """Return how many lanes of a lane group see channels of their own: all, or fewer in the only group, by fours.

    Four channels of a block lie at one word of four memories of a bank where the block begins with a multiple of them.
    """
    settings, machine = state.settings["conv"].require("runs", "kernel_x"), state.machine
    channels = settings["runs"]
    if variant == "run_four_patches":
        channels *= PATCHES * settings["kernel_x"]
        unit, places = machine.input_unit, [settings[name] for name in ("x_step", "y_step", "group_step")]
        if (settings["runs"], settings["kernel_x_step"], settings.get("plane_step", 0)) != (
                machine.lanes_per_fetch, unit, 0) or any(place % unit for place in (operands["base"], *places)):
            raise PatchBlocksError(unit)
        if operands["groups"] == 1 and channels < machine.lanes:
            return channels
    if channels != machine.lanes:
        raise LaneChannelsError(channels, machine.lanes)
    return channels


def _by_channel(state: CoprocessorState, settings: Settings, operands: dict[str, int], channels: int) -> Int32:
    """Return the sums of lanes that see a channel each."""
    return _correlations(state, settings, operands, channel_kernels, channels)


def _four_times(state: CoprocessorState, settings: Settings, operands: dict[str, int], channels: int) -> Int64:
    return 4 * _by_channel(state, settings, operands, channels).astype(np.int64)


def _pairs(state: CoprocessorState, settings: Settings, operands: dict[str, int]) -> Int64:
    """Return four times the sums, and eta besides."""
    kernels = kernel_weights(state, operands["weight_base"], operands["groups"], _channels(state, settings))
    eta = tile_eta(kernels.astype(np.int8).transpose(3, 2, 0, 1)).transpose(1, 2, 0)     # (2, 2, outputs)
    sums = 4 * _correlations(state, settings, operands).astype(np.int64)
    return sums + np.tile(eta, (operands["tiles_y"], settings["tiles_x"], 1))


def _channels(state: CoprocessorState, settings: Settings) -> int:
    return settings["runs"] + (settings["runs"] % 2 if state.machine.pairs_channels else 0)


_Kernels = Callable[[CoprocessorState, int, int, int], Float32]
"""Returns the kernels from a weight word on, of so many lane groups and channels."""


def _correlations(state: CoprocessorState, settings: Settings, operands: dict[str, int],
                  kernels_of: _Kernels | None = None, channels: int = 0) -> Int32:
    channels, groups = channels or _channels(state, settings), operands["groups"]
    x = np.arange(2 * settings["tiles_x"] + 2)
    y = 2 * operands["y_half"] + np.arange(2 * operands["tiles_y"] + 2)
    kernels = (kernels_of or kernel_weights)(state, operands["weight_base"], groups, channels)
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


def channel_kernels(state: CoprocessorState, base: int, groups: int, channels: int) -> Float32:
    """Return kernels as `kernel_weights` does, where each lane has one, with zeros for the channels of other lanes.

    Those of a cluster lie one behind the other, as its lanes count through the lane groups.
    """
    key = "by channel", base, groups, channels
    if key not in state.unpacked:
        machine = state.machine
        count = groups * machine.lanes_per_cluster
        kernels = _kernels(state, base, count).reshape(groups, -1, machine.clusters, 3, 3)
        found = np.zeros((3, 3, channels, groups * machine.lanes), np.float32)
        for lane in range(channels):
            cluster, inside_it = divmod(lane, machine.lanes_per_cluster)
            found[:, :, lane, lane::machine.lanes] = kernels[:, inside_it, cluster].transpose(1, 2, 0)
        state.unpacked[key] = found
    return state.unpacked[key]


def _unpack(state: CoprocessorState, base: int, groups: int, channels: int) -> Int8:
    machine = state.machine
    kernels = _kernels(state, base, groups * channels * machine.lanes_per_cluster)
    if machine.pairs_channels:
        pairs = groups, channels // 2, 2, machine.lanes_per_cluster // 2, 2, machine.clusters, 3, 3
        order = 6, 7, 1, 4, 0, 5, 3, 2
        return kernels.reshape(pairs).transpose(order).reshape(3, 3, channels, groups * machine.lanes)
    shape = groups, channels, machine.lanes_per_cluster, machine.clusters, 3, 3
    return kernels.reshape(shape).transpose(4, 5, 1, 0, 3, 2).reshape(3, 3, channels, groups * machine.lanes)


def _kernels(state: CoprocessorState, base: int, count: int) -> Int8:
    """Return ``count`` kernels of each cluster from weight word ``base`` on: (count, clusters, 9)."""
    machine = state.machine
    if base % 8:
        raise UnalignedWeightsError(base)
    words = state.weight_words[base:base + -(-count // 2)]
    ninths = state.ninth_words[base // 8:base // 8 + -(-count // 16)]
    if 2 * len(words) < count or 16 * len(ninths) < count:
        raise OutsideBufferError("kernel", 2 * base + count - 1, 2 * machine.weight_words)
    first = words.reshape(-1, machine.clusters, 2, 8).transpose(0, 2, 1, 3).reshape(-1, machine.clusters, 8)
    ninth = ninths.transpose(0, 2, 1).reshape(-1, machine.clusters, 1)
    return np.concatenate([first[:count], ninth[:count]], axis=2)
