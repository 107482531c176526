# amaranth: UnusedElaboratable=no
"""Two programs one after the other on both ports: the second reads nothing of the first, if an abort has erased it."""

from dataclasses import replace

import pytest

from tests.cocotb.stop.__main__ import COPROCESSORS
from tests.support.bench import run_bench
from tests.support.machines import TINY
from tilewright.isa.erasure import ERASED_ALWAYS, ERASED_ON_REQUEST


@pytest.mark.parametrize(("port", "erasure", "erases"), [
    ("axi4lite", ERASED_ON_REQUEST, 1), ("axi4lite", ERASED_ON_REQUEST, 0),
    pytest.param("cvxif", ERASED_ALWAYS, 1, marks=pytest.mark.slow)])
def test_the_second_program_reads_nothing_where_an_abort_erases(port, erasure, erases):
    run_bench(COPROCESSORS[port](replace(TINY, erasure=erasure)), module="tests.cocotb.stop.bench_tenants",
              toplevel=f"tenants_{port}", environment={"PORT": port, "COUNT": 1, "ERASES": erases,
                                                      "COPROCESSOR_MACHINE": "tiny"})
