"""The multiply-accumulate unit on Verilator: every layer's sums, and what they cost in cycles and bytes."""

import pytest

from tests.support.bench import run_bench
from tilewright.isa.machine import preset
from tilewright.rtl.array.mac import MacUnit


@pytest.mark.parametrize("name", ["nano", "base", pytest.param("large", marks=pytest.mark.slow)])
def test_layers_give_the_sums_of_plain_convolutions(name):
    run_bench(MacUnit(preset(name)), module="tests.cocotb.bench_mac", toplevel=f"mac_{name}",
              environment={"MAC_MACHINE": name, "MAC_SEED": 1})
