"""A coprocessor whose state is full of random bytes, commands by their names, and settings that tests share."""

import numpy as np
import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.assembler import command
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory

MACHINES = pytest.mark.parametrize("machine", WINOGRAD_MACHINES.values(), ids=lambda machine: machine.name)
SIZE = 1 << 16


def engine_of(machine, seed=0):
    """Return an engine whose memory and buffers hold random bytes."""
    rng = np.random.default_rng(seed)
    memory = MainMemory(SIZE, [AddressWindow(MAIN_BASE, MAIN_BASE + SIZE, Permission.READ_WRITE)])
    engine = Executor(machine, memory)
    state = engine.state
    for array in (memory.bytes, state.activations, state.results, state.weight_words, state.ninth_words):
        array[...] = rng.integers(-128, 128, array.shape)
    return engine


def run(engine, *commands):
    engine.run(command(*name.split("."), flags, **operands) for name, operands, *flags in commands)


def blocked(base, x, y, c, block_step, row_step):
    """Return the physical place of a byte: 16 * word + bank."""
    bank = (x % 4 + 4 * (y % 4) + c) % 16
    return 16 * (base // 16 + (y // 4) * row_step // 16 + (x // 4) * block_step // 16 + c) + bank


def weight(engine, cluster, word, byte, ninth=False):
    return int((engine.state.ninth_words if ninth else engine.state.weight_words)[word, cluster, byte])


def tiles_of(op, cfg, machine):
    """Yield (lane group, tile number in its group, ty, tx)."""
    for g in range(op["groups"]):
        for index in range(op["tiles_y"] * cfg["tiles_x"]):
            yield g, index % machine.tiles, *divmod(index, cfg["tiles_x"])


CONV = {"tiles_x": 5, "runs": 2, "kernel_x": 2, "kernel_y": 3, "x_step": 19, "y_step": 400, "kernel_x_step": 37,
        "kernel_y_step": 401}
SETS = {"set_shape": ("tiles_x", "runs", "kernel_x", "kernel_y"), "set_tile_step": ("x_step", "y_step"),
        "set_kernel_step": ("kernel_x_step", "kernel_y_step", "pair_words"), "set_group_step": ("group_step",)}


def set_conv(cfg):
    return [(f"conv.{name}", {field: cfg.get(field, 0) for field in fields}) for name, fields in SETS.items()]


def set_parameters(engine, count, seed=1):
    """Give the channels random parameters of sensible size and return them."""
    rng = np.random.default_rng(seed)
    parameters = []
    for channel in range(count):
        bias, mantissa, shift = int(rng.integers(-9000, 9000)), int(rng.integers(1 << 23, 1 << 24)), 34
        words = np.array([bias & 0xFFFF_FFFF, mantissa | shift << 24], "<u4")
        engine.state.parameters[8 * channel:8 * channel + 8] = words.view(np.int8)
        parameters.append({"bias": bias, "mantissa": mantissa, "shift": shift})
    return parameters


WHOLE = {"zero_point": 0, "low": -128, "high": 127}
CLAMP = {"zero_point": 3, "low": -100, "high": 90}
OUTPUT = {"width": 5, "pixel_step": 13, "row_step": 120}


def sums_for(engine, winograd, rows, channels):
    """Leave the sums of a mac command of that many output rows, ``OUTPUT["width"]`` wide; return them."""
    groups = -(-channels // engine.state.machine.lanes)
    if winograd:
        cfg = {"tiles_x": 3, "runs": 2, "kernel_x": 1, "kernel_y": 1, "x_step": 32, "y_step": 64}
        run(engine, *set_conv(cfg), ("conv23.run", {"tiles_y": -(-rows // 2), "groups": groups}))
    else:
        run(engine, *set_conv(CONV), ("conv.run", {"tiles_y": rows, "groups": groups}))
    return engine.state.sums[-1].sums


STA = {"chunk_bytes": 7, "chunks": 3, "chunk_step": 20}


def set_store(chunk_step, row_step):
    return (("sta.set_row", STA), ("sta.set_source", {"row_step": 90}),
            ("sta.set_target", {"target_chunk_step": chunk_step, "target_row_step": row_step}))
