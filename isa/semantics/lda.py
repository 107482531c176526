"""lda: load rows of an activation tile, or of a residual, with strided requests to memory.

A row is ``chunks`` runs of ``chunk_bytes`` bytes, ``memory_chunk_step`` apart in memory, with ``left`` and ``right``
padding pixels of ``channels`` bytes of ``value`` around it.

    linear     run i of row r behind the left padding, at base + r * row_step + left + i * chunk_step; the right padding
               behind the last run
    blocked    the runs together are the pixels of row y + r, each of whose bytes has its place in a 4x4 block
    residual   run i of row r at base + r * row_step + i * chunk_step of the result buffer; no padding
    fill_*     whole rows of the padding value, as many bytes as a loaded row takes
"""

import numpy as np

from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.buffer_places import blocked_places, inside, run_places
from tilewright.isa.semantics.command_errors import PartialPixelError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, Int8, MemoryPort, Settings

__all__ = ["load_activations"]


def load_activations(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute an lda that is no set variant."""
    blocked = variant.endswith("blocked")
    settings = state.settings["lda"].require("chunks", "chunk_bytes", *(("channels",) if blocked else ()))
    rows = operands["rows"]
    shape = rows, settings["chunks"], settings["chunk_bytes"]
    data = None
    if not variant.startswith("fill"):
        steps = settings["memory_row_step"], settings["memory_chunk_step"]
        data = memory.read_strided(operands["address"], shape, steps, state.machine.bus_bytes)
    if data is not None and variant == "residual":
        places = run_places(operands["base"], shape, (settings["row_step"], settings["chunk_step"]))
        state.results[inside("result", places, state.results)] = data
    elif blocked:
        _write_blocked(state.activations, settings, operands, data)
    else:
        _write_linear(state.activations, settings, operands, data)


def _write_linear(activations: Int8, settings: Settings, operands: dict[str, int], data: Int8 | None) -> None:
    rows, value = operands["rows"], settings["value"]
    left, right = settings["left"] * settings["channels"], settings["right"] * settings["channels"]
    starts = operands["base"] + settings["row_step"] * np.arange(rows)[:, None]
    runs = run_places(left, (1, settings["chunks"], settings["chunk_bytes"]), (0, settings["chunk_step"]))
    end = left + settings["chunk_step"] * (settings["chunks"] - 1) + settings["chunk_bytes"]
    inside("activation", starts + end + right - 1, activations)
    activations[starts + np.arange(left)] = value
    activations[starts + runs.ravel()] = value if data is None else data.reshape(rows, -1)
    activations[starts + end + np.arange(right)] = value


def _write_blocked(activations: Int8, settings: Settings, operands: dict[str, int], data: Int8 | None) -> None:
    rows, channels, left = operands["rows"], settings["channels"], settings["left"]
    if settings["chunk_bytes"] % channels:
        raise PartialPixelError(settings["chunk_bytes"], channels)
    pixels = settings["chunks"] * settings["chunk_bytes"] // channels
    row = np.full((rows, left + pixels + settings["right"], channels), settings["value"], np.int8)
    if data is not None:
        row[:, left:left + pixels] = data.reshape(rows, pixels, channels)
    x, y = np.arange(row.shape[1]), operands["y"] + np.arange(rows)
    places = blocked_places(operands["base"], x, y, np.arange(channels), TILE_BYTES * channels, settings["row_step"])
    activations[inside("activation", places, activations)] = row
