"""Predicted flip-flops: near those of the presets, and a line through what it was fitted to."""

import random

import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.energy.register_fit import draw_machine, features, fitted, predicted_registers
from tilewright.energy.registers import registers_of
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS


@pytest.mark.parametrize("machine", WINOGRAD_MACHINES.values(), ids=WINOGRAD_MACHINES)
def test_presets_are_near_what_was_counted(machine):
    predicted = predicted_registers(machine)
    for block, counted in registers_of(machine).items():
        assert predicted[block] == pytest.approx(counted, rel=0.05)


def test_a_line_is_found_again():
    chance = random.Random(3)
    machines = [draw_machine(chance) for _ in range(40)]
    for block in ENERGY_BLOCKS:
        rows = [features(block, machine) for machine in machines]
        counts = [round(sum(100 * (place + 1) * value for place, value in enumerate(row.values()))) for row in rows]
        line = fitted(block, machines, counts)
        for row, count in zip(rows, counts, strict=True):
            assert sum(line[name] * value for name, value in row.items()) == pytest.approx(count, rel=0.01)
