"""sta: store rows of results to memory or back into the activation buffer, and the counters to memory.

A row is ``chunks`` runs of ``chunk_bytes`` bytes; run i of row r comes from result byte base + r * row_step +
i * chunk_step.

    memory    to address + r * target_row_step + i * target_chunk_step
    linear    the same, to the activation buffer
    blocked   a run is (part of) a pixel: channels 16 * channel .. of stored pixel (x + i, y + r) of the blocked layout
    status    the record of the counters
"""

import numpy as np

from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.buffer_places import blocked_places, inside, run_places
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, MemoryPort

__all__ = ["store_results"]


def store_results(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute a sta that is neither a set variant nor a fence."""
    bus = state.machine.bus_bytes
    if variant == "status":
        memory.write_strided(operands["address"], state.counters().view(np.int8).reshape(1, 1, -1), (0, 0), bus)
        return
    settings = state.settings["sta"].require("chunks", "chunk_bytes")
    rows, chunks, size = shape = operands["rows"], settings["chunks"], settings["chunk_bytes"]
    places = run_places(operands["base"], shape, (settings["row_step"], settings["chunk_step"]))
    data = state.results[inside("result", places, state.results)]               # (rows, chunks, chunk_bytes)
    steps = settings["target_row_step"], settings["target_chunk_step"]
    if variant == "memory":
        memory.write_strided(operands["address"], data, steps, bus)
        return
    if variant == "linear":
        target = run_places(operands["target"], shape, steps)
    else:
        channels = TILE_BYTES * operands["channel"] + np.arange(size)
        target = blocked_places(operands["target"], operands["x"] + np.arange(chunks), operands["y"] + np.arange(rows),
                                channels, settings["target_chunk_step"], settings["target_row_step"])
    state.activations[inside("activation", target, state.activations)] = data
