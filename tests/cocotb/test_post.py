"""Random commands through the post-processing unit's Verilator model."""

import pytest

from tests.support.bench import run_bench
from tests.support.machines import with_units
from tilewright.isa.machine import preset
from tilewright.rtl.post.post import PostUnit

SUMS_LATENCY = {"nano": 2, "base": 3, "large": 6}


@pytest.mark.parametrize("units", ["rows", *(pytest.param(each, marks=pytest.mark.slow) for each in (
    "preset", "alone"))])
@pytest.mark.parametrize("name", ["nano", pytest.param("base", marks=pytest.mark.slow),
                                  pytest.param("large", marks=pytest.mark.slow)])
def test_random_commands(name, units):
    machine = with_units(preset(name), units)
    latency = SUMS_LATENCY[machine.name]
    run_bench(
        PostUnit(machine, sums_latency=latency),
        module="tests.cocotb.bench_post",
        toplevel="post",
        environment={"MACHINE": machine.name, "SUMS_LATENCY": latency, "LAYERS": 12, "UNITS": units},
        seed=1,
    )
