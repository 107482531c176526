# amaranth: UnusedElaboratable=no
"""The whole coprocessor in Verilator, on a memory that stalls: programs end with the functional engine's memory."""

import pytest

from tests.support.bench import run_bench
from tests.support.machines import MACHINES
from tilewright.rtl.coprocessor import Coprocessor


@pytest.mark.parametrize("name", ["nano", *(pytest.param(name, marks=pytest.mark.slow)
                                            for name in MACHINES if name != "nano")])
def test_programs(name):
    run_bench(Coprocessor(MACHINES[name]), module="tests.cocotb.bench_coprocessor", toplevel=f"coprocessor_{name}",
              environment={"COPROCESSOR_MACHINE": name})
