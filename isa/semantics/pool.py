"""pool: sums of windows in the array (average pooling, pass through), maxima of windows behind requantisation.

pool.sum runs as conv does, without weights: lane l, over all clusters, takes byte l of each run with weight 1. On a
machine of more than 16 lanes it takes byte l of ``Machine.lane_runs`` runs that follow one another; ``runs`` must be a
multiple of them.

pool.window sets the windows of the act commands that follow. Window (wy, wx) covers rows wy * stride_y - top .. +
kernel_y - 1 and columns wx * stride_x - left .. + kernel_x - 1 of the output; pixels outside it count for nothing, and
a window without any keeps what the result buffer has.
"""

import numpy as np

from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.conv import read_runs
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, Int8, Int32, MemoryPort, Settings
from tilewright.isa.semantics.tile_sums import leave_sums

__all__ = ["pool_sums", "window_maxima"]


def pool_sums(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute a pool.sum."""
    del memory, variant
    leave_sums(state, operands, _sums, winograd=False)


def _sums(state: CoprocessorState, settings: Settings, operands: dict[str, int]) -> Int32:
    machine = state.machine
    parts = []
    for group in range(operands["groups"]):
        runs = read_runs(state, settings, operands, group)
        bytes_of_lanes = runs.reshape(len(runs), -1, machine.lane_runs * TILE_BYTES)[:, :, :machine.lanes]
        parts.append(bytes_of_lanes.sum(axis=1, dtype=np.int32))
    return np.concatenate(parts, axis=1).reshape(operands["tiles_y"], settings["tiles_x"], -1)


def window_maxima(window: Settings, values: Int8) -> tuple[Int8, np.ndarray]:
    """Return the maxima (rows, width, channels) of ``values`` (rows, columns, channels), and which windows have any."""
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
    return pooled, touched
