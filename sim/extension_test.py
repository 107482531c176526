"""Test an extension: compare its component in simulation with its NumPy function, on random vectors."""

from dataclasses import dataclass

import numpy as np

from tilewright.isa.extension import ExtendedMachine, ExtensionError, PostStage, StageInForce, StageVector, extended
from tilewright.isa.machine import PRESETS, TABLE_BYTES, TABLE_SLOTS
from tilewright.sim.verilog.elaborate import stage_outputs

__all__ = ["StageDifference", "StageTest", "check_stage"]

_MACHINES = ("nano", "base", "large")


class StageDifference(ExtensionError):
    """The component computes something else than the file's NumPy function."""


@dataclass(frozen=True, slots=True)
class StageTest:
    """Record of what has been compared, all of it equal: vectors and values on machines of so many values per cycle."""

    vectors: int
    values: int
    lanes: tuple[int, ...]


def check_stage(stage: PostStage, *, seed: int = 0, settings: int = 4, vectors: int = 500) -> StageTest:
    """Compare RTL and NumPy on random parameters, fields and values, on the machines nano, base and large.

    Vectors come back to back and after random gaps. Nothing holds them up, for no stage of post-processing is ever
    held: what waits, waits before the sums are requested (rtl/post/post.py).

    Raises
    ------
    StageDifference
        At the first vector that differs: it is shown with its parameters and fields.
    ExtensionError
        If the component has not the members of the contract, or the function returns something else than int8.
    """
    random = np.random.default_rng(seed)
    lanes = []
    for name in _MACHINES:
        machine = extended(PRESETS[name], stage)
        assert isinstance(machine, ExtendedMachine)
        lanes.append(machine.post_lanes)
        for _ in range(settings):
            _check(machine, random, vectors)
    count = len(lanes) * settings * vectors
    return StageTest(count, sum(lanes) * settings * vectors, tuple(lanes))


def _check(machine: ExtendedMachine, random: np.random.Generator, count: int) -> None:
    stage, lanes = machine.extension, machine.post_lanes
    assert isinstance(stage, PostStage)
    slots = random.integers(-128, 128, (TABLE_SLOTS, TABLE_BYTES)).astype(np.int8)
    fields = {each.name: int(random.integers(each.range.start, each.range.stop))
              for each in (*stage.first, *stage.second)}
    groups = stage.channels // lanes
    if not groups:
        raise ExtensionError(f"Extension {stage.path}: a table slot must hold the parameters of {lanes} channels on "
                             f"{machine.name}, not of {stage.channels}: use fewer parameter_bytes")
    channel = int(random.integers(groups)) * lanes
    slot, vectors = 0, []
    for _ in range(count):
        gap = int(random.choice([0, 0, 0, 1, 2, 7]))
        if gap == 7:
            slot = int(random.integers(TABLE_SLOTS))
        values = random.choice([-128, -1, 0, 1, 127], lanes) if random.integers(4) == 0 \
            else random.integers(-128, 128, lanes)
        vectors.append(StageVector(gap, slot, int(random.integers(groups - channel // lanes)), tuple(map(int, values))))
    found = stage_outputs(machine, slots.tobytes(), fields, channel, vectors)
    for index, (vector, got) in enumerate(zip(vectors, found, strict=True)):
        force = StageInForce(stage, fields, channel + vector.index * lanes)
        wanted = force.compute(np.array(vector.values, np.int8), slots[vector.slot]).tolist()
        if got != wanted:
            rows = stage.parameters(slots[vector.slot])[force.channel:force.channel + lanes]
            raise StageDifference(
                f"Extension {stage.path}: vector {index} on {machine.name} must become {wanted}, as compute says, but "
                f"the component returns {got}: values {list(vector.values)}, parameters {rows.tolist()}, "
                f"fields {fields}")
