"""The CV-X-IF adapter beside a model of the core's pipeline: random instructions, flushes and back-pressure."""

import pytest

from tests.support.bench import run_bench
from tilewright.rtl.port.xif import XifAdapter


@pytest.mark.parametrize(("stall", "flush"), [(0, 0), (0.3, 0.2), (0.8, 0.05)])
def test_xif(stall, flush):
    run_bench(
        XifAdapter(),
        module="tests.cocotb.bench_xif",
        toplevel="xif_adapter",
        environment={"STALL": stall, "FLUSH": flush, "COUNT": 4000},
        seed=1,
    )
