"""The requantiser and the residual adder in bulk, on their Verilator models."""

import pytest

from tests.cocotb.bench_requantise import BATCHES, META_BITS
from tests.support.bench import run_bench


@pytest.mark.parametrize("name", BATCHES)
def test_matches_reference_in_bulk(name):
    unit, _ = BATCHES[name]
    run_bench(
        unit(META_BITS),
        module="tests.cocotb.bench_requantise",
        toplevel=name,
        environment={"UNIT": name, "COUNT": 20_000},
    )
