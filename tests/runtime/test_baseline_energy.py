"""Baselines are priced by the same technology as runs, with the same two ranges."""

import numpy as np
import pytest

from tilewright.runtime.baseline import BaselineResult
from tilewright.runtime.baseline_energy import XPULP_FACTOR, energy_of_baseline
from tilewright.runtime.errors import InputError
from tilewright.runtime.pricing import Pricing
from tilewright.sim.energy import Technology
from tilewright.sim.registers import CORE_REGISTERS

GENERIC45 = Technology.load("generic45")


def result(core, cycles=10_000, instructions=8_000):
    return BaselineResult(core=core, cycles=cycles, instructions=instructions, layers=(),
                          tensors={"a": np.zeros(1, np.int8)}, matches=True)


def test_instructions_fetches_clock_and_leakage_of_the_core():
    energy = energy_of_baseline(result("cv32e40x"))
    registers = CORE_REGISTERS["cv32e40x"]
    time = 10_000 * 1000 / GENERIC45.clock_mhz
    expected = (8_000 * GENERIC45.price("riscv_core.instruction").picojoules
                + 8_000 * GENERIC45.price("riscv_core.read@32768x32").picojoules
                + 10_000 * registers * GENERIC45.price("riscv_core.register_cycle").picojoules
                + time * registers * GENERIC45.price("riscv_core.leakage_ns").picojoules
                + time * GENERIC45.price("riscv_core.leakage_ns@32768x32").picojoules) * 1e-6
    assert energy.by_component == {"riscv_core": pytest.approx(expected)}
    total = energy.total
    assert (total.absolute_low_uj < total.relative_low_uj < total.uj < total.relative_high_uj
            < total.absolute_high_uj)


def test_xpulps_instructions_cost_more_and_are_less_certain():
    plain, xpulp = (energy_of_baseline(result(core)).total for core in ("cv32e40x", "cv32e40p"))
    price = GENERIC45.price("riscv_core.instruction").picojoules
    registers = CORE_REGISTERS["cv32e40p"] - CORE_REGISTERS["cv32e40x"]
    clocked = (10_000 * GENERIC45.price("riscv_core.register_cycle").picojoules
               + 10_000 * 1000 / GENERIC45.clock_mhz * GENERIC45.price("riscv_core.leakage_ns").picojoules)
    assert xpulp.uj - plain.uj == pytest.approx(((XPULP_FACTOR - 1) * 8_000 * price + registers * clocked) * 1e-6)
    assert xpulp.relative_high_uj / xpulp.uj > plain.relative_high_uj / plain.uj
    assert xpulp.relative_low_uj / xpulp.uj < plain.relative_low_uj / plain.uj


def test_an_unknown_technology_or_memory_is_refused():
    with pytest.raises(InputError, match=r"^Technology must be one of .*generic45.*, not 'generic7'$"):
        energy_of_baseline(result("cv32e40x"), Pricing(technology="generic7"))
    with pytest.raises(InputError, match=r"^Main memory must be one of .*, not 'drum'$"):
        energy_of_baseline(result("cv32e40x"), Pricing(dram="drum"))
