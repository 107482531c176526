"""Baselines are priced by the same technology as runs, with the same two ranges."""

import numpy as np
import pytest

from tilewright.energy.baseline_energy import energy_of_baseline
from tilewright.energy.estimate import Technology
from tilewright.energy.pricing import Pricing
from tilewright.energy.registers import CORE_REGISTERS
from tilewright.errors import InputError
from tilewright.runtime.baseline.core_alone import BaselineResult

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


def test_xpulps_instructions_have_their_own_price():
    plain, xpulp = (energy_of_baseline(result(core)).total for core in ("cv32e40x", "cv32e40p"))
    price, other = (GENERIC45.price(f"{name}.instruction").picojoules for name in ("riscv_core", "xpulp_core"))
    assert 1.2 * price < other < 2 * price
    registers = CORE_REGISTERS["cv32e40p"] - CORE_REGISTERS["cv32e40x"]
    clocked = (10_000 * GENERIC45.price("riscv_core.register_cycle").picojoules
               + 10_000 * 1000 / GENERIC45.clock_mhz * GENERIC45.price("riscv_core.leakage_ns").picojoules)
    assert xpulp.uj - plain.uj == pytest.approx((8_000 * (other - price) + registers * clocked) * 1e-6)


def test_an_unknown_technology_or_memory_is_refused():
    with pytest.raises(InputError, match=r"Technology.*not 'generic7'"):
        energy_of_baseline(result("cv32e40x"), Pricing(technology="generic7"))
    with pytest.raises(InputError, match=r"Main memory.*not 'drum'"):
        energy_of_baseline(result("cv32e40x"), Pricing(dram="drum"))
