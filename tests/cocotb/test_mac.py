"""The multiply-accumulate unit on Verilator: every layer's sums, and what they cost in cycles and bytes."""

from dataclasses import replace

import pytest

from tests.support.bench import run_bench
from tilewright.isa.machine import preset
from tilewright.rtl.array.mac import MacUnit


@pytest.mark.parametrize(("name", "by_channel"), [
    ("nano", False), ("base", True), pytest.param("large", True, marks=pytest.mark.slow)])
def test_layers_give_the_sums_of_plain_convolutions(name, by_channel):
    machine = replace(preset(name), channel_kernels=by_channel, four_patches=by_channel)
    run_bench(MacUnit(machine), module="tests.cocotb.bench_mac", toplevel=f"mac_{name}",
              environment={"MAC_MACHINE": name, "MAC_CHANNELS": int(by_channel), "MAC_SEED": 1})
