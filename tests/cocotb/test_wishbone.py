"""The Wishbone bridge in Verilator, behind the AXI master."""

import pytest

from tests.support.bench import run_bench
from tests.support.wishbone_dut import WishboneMaster


@pytest.mark.parametrize("data_bytes", [4, 8, pytest.param(16, marks=pytest.mark.slow)])
def test_wishbone_bridge(data_bytes):
    run_bench(WishboneMaster(data_bytes), module="tests.cocotb.bench_wishbone",
              toplevel=f"wishbone_master_{data_bytes}", environment={"AXI_DATA_BYTES": data_bytes}, seed=data_bytes)
