"""The AXI4 master in Verilator, on the memory of cocotbext-axi."""

import pytest

from tests.support.bench import run_bench
from tilewright.rtl.bus.axi import AxiMaster


@pytest.mark.parametrize(("data_bytes", "seed"), [
    (4, 1), (8, 2), (16, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((4, 2), (8, 1), (16, 2)))])
def test_axi_master(data_bytes, seed):
    run_bench(
        AxiMaster(data_bytes),
        module="tests.cocotb.bench_axi",
        toplevel=f"axi_master_{data_bytes}",
        environment={"AXI_DATA_BYTES": data_bytes},
        seed=seed,
    )
