"""The CV-X-IF 1.0 adapter beside a core that does whatever the specification allows."""

from tests.support.bench import run_bench
from tilewright.rtl.port.split_xif import SplitXifAdapter


def test_split_xif():
    run_bench(SplitXifAdapter(), module="tests.cocotb.bench_split_xif", toplevel="split_xif_adapter",
              environment={"COUNT": 400}, seed=1)
