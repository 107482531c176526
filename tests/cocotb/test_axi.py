"""The AXI4 master in Verilator, on the memory of cocotbext-axi."""

import pytest

from tests.support.bench import run_bench
from tilewright.rtl.bus.axi import AxiMaster


@pytest.mark.parametrize("data_bytes", [4, 8, 16])
@pytest.mark.parametrize("seed", [1, 2])
def test_axi_master(data_bytes, seed):
    run_bench(
        AxiMaster(data_bytes),
        module="tests.cocotb.bench_axi",
        toplevel=f"axi_master_{data_bytes}",
        environment={"AXI_DATA_BYTES": data_bytes},
        seed=seed,
    )
