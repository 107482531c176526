"""The load and the store unit in Verilator, with the port to the activation buffer that they share."""

import pytest

from tests.support.bench import run_bench
from tests.support.load_store_dut import LoadStore
from tilewright.isa.machine import preset


@pytest.mark.parametrize("name", [pytest.param("nano", marks=pytest.mark.slow), "base",
                                  pytest.param("large", marks=pytest.mark.slow)])
def test_load_and_store(name):
    machine = preset(name)
    run_bench(
        LoadStore(machine),
        module="tests.cocotb.bench_load_store",
        toplevel=f"load_store_{name}",
        environment={"BUS_BYTES": machine.bus_bytes},
    )
