"""Random commands through the post-processing unit's Verilator model."""

from dataclasses import replace

import pytest

from tests.support.bench import run_bench
from tilewright.isa.machine import preset
from tilewright.rtl.post.post import PostUnit

SUMS_LATENCY = {"nano": 2, "base": 3, "large": 6}


@pytest.mark.parametrize("rows", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", ["nano", pytest.param("base", marks=pytest.mark.slow),
                                  pytest.param("large", marks=pytest.mark.slow)])
def test_random_commands(name, rows):
    machine = replace(preset(name), row_unit=rows, channel_kernels=rows,
                      integer_requantise=rows)
    latency = SUMS_LATENCY[machine.name]
    run_bench(
        PostUnit(machine, sums_latency=latency),
        module="tests.cocotb.bench_post",
        toplevel="post",
        environment={"MACHINE": machine.name, "SUMS_LATENCY": latency, "LAYERS": 12, "ROWS": int(rows)},
        seed=1,
    )
